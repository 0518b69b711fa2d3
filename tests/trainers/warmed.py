"""What all ranks need, imported and compiled before they are forked."""

import importlib

import indexplan as ip

for name in ("indexplan_torch", "torch._dynamo"):  # the latter by an optimizer's first step: 2.5 s
    importlib.import_module(name)

for order in (ip.Shuffle(8), ip.BlockShuffle(8, block_size=2)):
    ip.Plan(order, batch_size=2, world_size=2).batch(0, step=0, rank=0)
