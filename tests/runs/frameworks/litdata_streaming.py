"""LitData: chunks, a StreamingDataset, and a StreamingDataLoader's state.

https://github.com/Lightning-AI/litData/blob/main/README.md, on pausing and resuming: the same seed
and shuffle, a global batch that stays; ranks may change. `num_canonical_nodes` is kept by the
state. `drop_last` is True, as it asks for in training on several ranks.

Beside row.py it needs `pip install torch litdata==0.2.76`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["LITDATA_DISABLE_VERSION_CHECK"] = "1"  # it asks the network at each construction
from litdata import StreamingDataLoader, StreamingDataset
from litdata.streaming.cache import Cache

from tests.runs.row import Leg, Numbered, Steps, by_plan, by_state

ENDLESS = False
CHUNK = 64
"""Samples."""


def theirs(leg: Leg) -> Steps:
    """Read a StreamingDataset, and load the state that its loader had on the first rank."""
    dataset = StreamingDataset(str(leg.data), shuffle=True, drop_last=True)
    size = leg.global_batch // leg.world_size
    return by_state(leg, StreamingDataLoader(dataset, batch_size=size))


def ours(leg: Leg) -> Steps:
    """Read the same chunks by a plan."""
    rows = StreamingDataset(str(leg.data))
    return by_plan(leg, Numbered(leg.samples, lambda index: int(rows[index])))


def write(folder: Path | str, n: int) -> None:
    """Write the samples, each its own number, with the writer that `optimize` runs in workers."""
    cache = Cache(str(folder), chunk_size=CHUNK)
    for number in range(n):
        cache[number] = number
    cache.done()
    cache.merge()


def drawn() -> Any:
    """LitData: chunks written by `optimize`, a StreamingDataset, a StreamingDataLoader's state.

    `drop_last` is True, as it is by default on more than one rank: it keeps the ranks in step,
    where some have batches to spare without it, and states check it.
    """
    from tests.runs.histories import EPOCHS
    from tests.runs.running import Place, Saved, Stateful

    class OfChunks(Stateful):
        def __init__(self, place: Place, saved: Saved | None) -> None:
            dataset = StreamingDataset(place.folder, shuffle=True, drop_last=True, seed=place.seed)
            options = {"batch_size": place.batch, "num_workers": place.workers}
            super().__init__(StreamingDataLoader(dataset, **options), saved)

        def batches(self, epoch: int) -> Iterator[Any]:
            """Iterate."""
            for batch in super().batches(epoch):
                if self.epoch >= EPOCHS:
                    return
                yield batch.tolist()

        @property
        def epoch(self) -> int:
            """Return which pass it is in: after a state of a pass's last batch, it's the next."""
            return int(self.loader.current_epoch) - 1

    return OfChunks
