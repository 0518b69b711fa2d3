"""MosaicML Streaming: MDS shards, a StreamingDataset, and a StreamingDataLoader's state.

https://docs.mosaicml.com/projects/streaming/en/stable/distributed_training/fast_resumption.html and
elastic_determinism.html beside it: `state_dict` and `load_state_dict` of the loader, batch_size
given to both, the same num_canonical_nodes, a global batch that stays and that the ranks divide.
"""

from collections.abc import Iterator
from typing import Any

from tests.runs.frameworks.mosaicml_streaming import (
    StreamingDataLoader,
    StreamingDataset,
    clean_stale_shared_memory,
    write,
)
from tests.runs.running import Place, Saved, Stateful

__all__ = ["Loader", "write"]


class Loader(Stateful):
    """One rank's, in a process of its own."""

    def __init__(self, place: Place, saved: Saved | None) -> None:
        clean_stale_shared_memory()  # of a leg that was ended, as its errors say to
        dataset = StreamingDataset(
            local=place.folder,
            batch_size=place.batch,
            shuffle=True,
            shuffle_seed=place.seed,
            num_canonical_nodes=1,
        )
        super().__init__(
            StreamingDataLoader(dataset, batch_size=place.batch, num_workers=place.workers), saved
        )

    def batches(self, epoch: int) -> Iterator[Any]:
        """Iterate."""
        for batch in super().batches(epoch):
            yield batch["n"].tolist()
