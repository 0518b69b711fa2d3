"""MosaicML Streaming: MDS shards, a StreamingDataset, and a StreamingDataLoader's state.

https://docs.mosaicml.com/projects/streaming/en/stable/distributed_training/elastic_determinism.html
and fast_resumption.html next to it: batch_size given to both, a global batch that stays, the same
num_canonical_nodes (the default is the number of nodes, which is one here), and the state of the
first rank for all.

With row.py in the same folder:

    pip install torch mosaicml-streaming==0.13.0
    python row.py mosaicml_streaming.py
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset

from tests.runs.row import Leg, Steps, by_plan, name_packages

name_packages("streaming")  # whose own also imports torchvision, which nothing here needs

from streaming.base.dataloader import StreamingDataLoader  # noqa: E402
from streaming.base.dataset import StreamingDataset  # noqa: E402
from streaming.base.format import MDSWriter  # noqa: E402
from streaming.base.util import clean_stale_shared_memory  # noqa: E402

ENDLESS = False
SHARD_BYTES = 1024


def theirs(leg: Leg) -> Steps:
    """Read a StreamingDataset, and load the state that its loader had on the first rank."""
    clean_stale_shared_memory()  # of the run before, as its errors say to
    batch = leg.global_batch // leg.world_size
    dataset = StreamingDataset(local=str(leg.data), batch_size=batch, shuffle=True)
    loader: Any = StreamingDataLoader(dataset, batch_size=batch)
    if leg.checkpoint:
        loader.load_state_dict(torch.load(leg.checkpoint))
    else:
        for _ in range(leg.epoch):
            for _ in loader:
                pass
    steps = [batch["n"].tolist() for batch in islice(loader, leg.steps)]
    if leg.save and leg.rank == 0:
        torch.save(loader.state_dict(), leg.save)
    return steps


def ours(leg: Leg) -> Steps:
    """Read the same shards by a plan."""
    clean_stale_shared_memory()
    return by_plan(leg, Numbers(leg.data))


def write(folder: Path, n: int) -> None:
    """Write the samples, each its own number."""
    with MDSWriter(out=str(folder), columns={"n": "int"}, size_limit=SHARD_BYTES) as writer:
        for number in range(n):
            writer.write({"n": number})


class Numbers(Dataset[int]):
    """What a plan reads: the samples by their numbers."""

    def __init__(self, folder: Path) -> None:
        self.rows: Any = StreamingDataset(local=str(folder), batch_size=1)

    def __len__(self) -> int:
        return int(self.rows.num_samples)

    def __getitem__(self, index: int) -> int:
        return int(self.rows[index]["n"])
