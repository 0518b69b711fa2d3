"""MosaicML Streaming: MDS shards, a StreamingDataset, and a StreamingDataLoader's state.

https://docs.mosaicml.com/projects/streaming/en/stable/distributed_training/elastic_determinism.html
and fast_resumption.html next to it: batch_size given to both, a global batch that stays, the same
num_canonical_nodes (the default is the number of nodes, which is one here), and the state of the
first rank for all.

With row.py in the same folder, and no more of this repository:

    pip install torch mosaicml-streaming==0.13.0
    python row.py mosaicml_streaming.py
"""

from __future__ import annotations

import importlib.util
import sys
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import Dataset

if "streaming" not in sys.modules:  # its own also imports torchvision, which nothing here needs
    _found = importlib.util.find_spec("streaming")
    if _found is None or _found.submodule_search_locations is None:
        raise ModuleNotFoundError("No module named 'streaming'")
    sys.modules["streaming"] = ModuleType("streaming")
    sys.modules["streaming"].__path__ = list(_found.submodule_search_locations)

from streaming.base.dataloader import StreamingDataLoader
from streaming.base.dataset import StreamingDataset
from streaming.base.format import MDSWriter
from streaming.base.util import clean_stale_shared_memory

if TYPE_CHECKING:
    from tests.runs.row import Leg, Steps

ENDLESS = False
LATER = True
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
    import indexplan as ip
    from indexplan_torch import PlanLoader

    clean_stale_shared_memory()
    plan = ip.Plan(ip.Shuffle(leg.samples, seed=1), global_batch_size=leg.global_batch)
    loader: Any = PlanLoader(Numbers(leg.data), plan)
    if leg.checkpoint:
        loader.load_state_dict(torch.load(leg.checkpoint))
    loader.set_epoch(leg.epoch)
    steps = [batch.tolist() for batch in islice(loader, leg.steps)]
    if leg.save and leg.rank == 0:
        torch.save(loader.state_dict(), leg.save)
    return steps


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
