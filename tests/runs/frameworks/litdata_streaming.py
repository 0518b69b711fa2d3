"""LitData: chunks, a StreamingDataset, and a StreamingDataLoader's state.

https://github.com/Lightning-AI/litData/blob/main/README.md, on pausing and resuming: the same seed
and shuffle, a global batch that stays; ranks may change. `num_canonical_nodes` is kept by the
state. `drop_last` is True, as it asks for in training on several ranks.

With row.py in the same folder:

    pip install torch litdata==0.2.76
    python row.py litdata_streaming.py
"""

from __future__ import annotations

import json
import os
from itertools import islice
from pathlib import Path
from typing import Any

import torch

os.environ["LITDATA_DISABLE_VERSION_CHECK"] = "1"  # it asks the network at each construction
from litdata import StreamingDataLoader, StreamingDataset
from litdata.streaming.cache import Cache
from torch.utils.data import Dataset

from tests.runs.row import Leg, Steps, by_plan

ENDLESS = False
CHUNK = 64
"""Samples."""


def theirs(leg: Leg) -> Steps:
    """Read a StreamingDataset, and load the state that its loader had on the first rank."""
    dataset = StreamingDataset(str(leg.data), shuffle=True, drop_last=True)
    loader: Any = StreamingDataLoader(dataset, batch_size=leg.global_batch // leg.world_size)
    if leg.checkpoint:
        loader.load_state_dict(torch.load(leg.checkpoint))
    else:
        for _ in range(leg.epoch):
            for _ in loader:
                pass
    steps = [batch.tolist() for batch in islice(loader, leg.steps)]
    if leg.save and leg.rank == 0:
        torch.save(loader.state_dict(), leg.save)
    return steps


def ours(leg: Leg) -> Steps:
    """Read the same chunks by a plan."""
    return by_plan(leg, Numbers(leg.data))


def write(folder: Path, n: int) -> None:
    """Write the samples, each its own number, with the writer that `optimize` runs in workers."""
    cache = Cache(str(folder), chunk_size=CHUNK)
    for number in range(n):
        cache[number] = number
    cache.done()
    cache.merge()


class Numbers(Dataset[int]):
    """What a plan reads: the samples by their numbers."""

    def __init__(self, folder: Path) -> None:
        self.rows: Any = StreamingDataset(str(folder))
        chunks = json.loads((folder / "index.json").read_text())["chunks"]
        self.length = sum(chunk["chunk_size"] for chunk in chunks)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> int:
        return int(self.rows[index])
