"""Megatron's loop over its external and its own loaders; its checkpoint is consumed_samples.

`pretrain` wants CUDA, so the loop is its data's part: RerunDataIterator, which `train_step` asks
for each micro-batch, and the count of `args.consumed_train_samples`.

Beside row.py it needs `pip install torch numpy megatron-core==0.16.1` and, without what it depends
on, megatron-bridge.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import torch

from tests.runs.row import Leg, Steps, name_packages

name_packages("megatron.bridge", "megatron.bridge.data")  # whose __init__ wants transformer_engine

from megatron.bridge.data.samplers import build_pretraining_data_loader  # noqa: E402
from megatron.core.rerun_state_machine import RerunDataIterator  # noqa: E402

ENDLESS = True
MICRO_BATCH = 2


def ours(leg: Leg) -> Steps:
    """Read a PlanIterator."""
    import indexplan as ip
    from indexplan_torch.megatron import PlanIterator

    order = ip.Shuffle(leg.samples, seed=1)
    given = {"consumed_samples": _consumed(leg), "micro_batch_size": MICRO_BATCH}
    ranks = {"rank": leg.rank, "world_size": leg.world_size}
    dataset = torch.arange(leg.samples)
    external = _loader(leg, PlanIterator(dataset, order, **given, **ranks), "external")
    return _train(leg, external)


def theirs(leg: Leg) -> Steps:
    """Read what `--dataloader-type single` builds, over a dataset that has shuffled each epoch."""
    random = np.random.default_rng(1)
    epochs = [random.permutation(leg.samples) for _ in range(leg.epoch + 1)]
    shuffled = torch.from_numpy(np.concatenate(epochs))
    return _train(leg, iter(_loader(leg, shuffled, "single")))


def _loader(leg: Leg, dataset: Any, kind: str) -> Any:
    return build_pretraining_data_loader(
        dataset,
        _consumed(leg),
        kind,
        micro_batch_size=MICRO_BATCH,
        num_workers=0,
        pin_memory=False,
        data_sharding=True,
        data_parallel_rank=leg.rank,
        data_parallel_size=leg.world_size,
    )


def _consumed(leg: Leg) -> int:
    consumed: int = json.loads(leg.checkpoint.read_text()) if leg.checkpoint else 0
    return consumed


def _train(leg: Leg, batches: Any) -> Steps:
    """Take steps, and count what they consume."""
    iterator = RerunDataIterator(batches)
    each = leg.global_batch // (MICRO_BATCH * leg.world_size)
    read = []
    for _ in range(leg.before + (leg.steps or 0)):
        read.append([x for _ in range(each) for x in next(iterator).tolist()])
        iterator.advance()
    if leg.save and leg.rank == 0:
        leg.save.write_text(json.dumps(_consumed(leg) + len(read) * leg.global_batch))
    return read[leg.before :]
