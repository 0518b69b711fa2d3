"""What all ranks need, imported and compiled before they are forked."""

import indexplan as ip
import indexplan_torch  # noqa: F401

for order in (ip.Shuffle(8), ip.BlockShuffle(8, block_size=2)):
    ip.Plan(order, batch_size=2, world_size=2).batch(0, step=0, rank=0)
