"""LanceDB's StreamingDataset, elastic and resumable since 0.40, in torch's DataLoader.

https://docs.lancedb.com/training/resuming: a dataset for each epoch, a fixed number of splits that
the ranks divide, and the states of all ranks merged for all of the next run. The global batch is a
multiple of the splits, as https://docs.lancedb.com/training/checkpointing asks. Rows beyond a
multiple of the splits are dropped, as it says.

Beside row.py it needs `pip install torch numpy lancedb==0.40.0`.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import lancedb
import pyarrow as pa
import torch
import torch.distributed as dist
from lancedb.streaming import StreamingDataset
from torch.utils.data import DataLoader

from tests.runs.row import Leg, Steps, by_plan

ENDLESS = False
SPLITS = 12
"""What 4, 3 and 2 ranks divide, and what divides the global batch."""


def theirs(leg: Leg) -> Steps:
    """Read a StreamingDataset; each rank loads the state that the rank of its number saved."""
    return read(leg, merged=False)


def recommended(leg: Leg) -> Steps:
    """Read it with the states of all ranks merged."""
    return read(leg, merged=True)


def ours(leg: Leg) -> Steps:
    """Read the table by a plan."""
    return by_plan(
        leg, table(leg), lambda rows: rows["n"].to_pylist(), collate_fn=lambda rows: rows
    )


def table(leg: Leg) -> Any:
    """Return the table, which the first rank writes."""
    database = lancedb.connect(leg.data)
    if leg.rank == 0 and not leg.checkpoint:
        database.create_table("numbers", pa.table({"n": range(leg.samples)}))
    dist.barrier()
    return database.open_table("numbers")


def read(leg: Leg, *, merged: bool) -> Steps:
    """Load the state, read the steps, and save."""
    rows = table(leg)

    def epoch(number: int) -> tuple[StreamingDataset, DataLoader[Any]]:
        dataset = StreamingDataset(
            rows,
            num_splits=SPLITS,
            shuffle_seed=1,
            epoch=number,
            rank=leg.rank,
            world_size=leg.world_size,
        )
        return dataset, DataLoader(dataset, leg.global_batch // leg.world_size)

    for before in range(0 if leg.checkpoint else leg.epoch):
        for _ in epoch(before)[1]:
            pass
    dataset, loader = epoch(leg.epoch)
    if leg.checkpoint:
        states = torch.load(leg.checkpoint)
        own = states[leg.rank]
        dataset.load_state_dict(StreamingDataset.merge_state_dicts(states) if merged else own)
    batches = islice(loader, leg.steps)
    steps = [batch["n"].tolist() for batch in batches]
    states = [None] * leg.world_size
    dist.all_gather_object(states, dataset.state_dict())
    if leg.save and leg.rank == 0:
        torch.save(states, leg.save)
    return steps
