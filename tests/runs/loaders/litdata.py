"""LitData: chunks written by `optimize`, a StreamingDataset, and a StreamingDataLoader's state.

https://github.com/Lightning-AI/litData/blob/main/README.md (pause and resume): `state_dict` and
`load_state_dict` of the loader. `drop_last` is True, as it is by default on more than one rank: it
keeps the ranks in step, where some have batches to spare without it, and states check it.
"""

import os
from collections.abc import Iterator
from typing import Any

os.environ["LITDATA_DISABLE_VERSION_CHECK"] = "1"  # it asks the network at each construction
from litdata import StreamingDataLoader, StreamingDataset
from litdata.streaming.cache import Cache

from tests.runs.histories import EPOCHS
from tests.runs.running import Place, Saved, Stateful

CHUNK = 64
"""Samples."""


def write(folder: str, n: int) -> None:
    """Write n samples, each its own number, with the writer that `optimize` runs in workers."""
    cache = Cache(folder, chunk_size=CHUNK)
    for number in range(n):
        cache[number] = number
    cache.done()
    cache.merge()


class Loader(Stateful):
    """One rank's, in a process of its own."""

    def __init__(self, place: Place, saved: Saved | None) -> None:
        dataset = StreamingDataset(place.folder, shuffle=True, drop_last=True, seed=place.seed)
        super().__init__(
            StreamingDataLoader(dataset, batch_size=place.batch, num_workers=place.workers), saved
        )

    def batches(self, epoch: int) -> Iterator[Any]:
        """Iterate."""
        for batch in super().batches(epoch):
            if self.epoch >= EPOCHS:
                return
            yield batch.tolist()

    @property
    def epoch(self) -> int:
        """Return which pass it is in: after a state of a pass's last batch, it is the next one."""
        return int(self.loader.current_epoch) - 1
