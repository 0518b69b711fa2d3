"""LitData: chunks written by `optimize`, a StreamingDataset, and a StreamingDataLoader's state.

https://github.com/Lightning-AI/litData/blob/main/README.md (pause and resume): `state_dict` and
`load_state_dict` of the loader. `drop_last` is True, as it is by default on more than one rank: it
keeps the ranks in step, where some have batches to spare without it, and states check it.
"""

from collections.abc import Iterator
from typing import Any

from tests.runs.frameworks.litdata_streaming import StreamingDataLoader, StreamingDataset, write
from tests.runs.histories import EPOCHS
from tests.runs.running import Place, Saved, Stateful

__all__ = ["Loader", "write"]


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
