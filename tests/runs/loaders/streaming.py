"""MosaicML Streaming: MDS shards, a StreamingDataset, and a StreamingDataLoader's state.

https://docs.mosaicml.com/projects/streaming/en/stable/distributed_training/fast_resumption.html and
elastic_determinism.html beside it: `state_dict` and `load_state_dict` of the loader, batch_size
given to both, the same num_canonical_nodes, a global batch that stays and that the ranks divide.

`import streaming` also imports its text, vision and multimodal datasets, and with them torchvision;
the package is named here without being run, and what is used below it is the published code.
"""

from collections.abc import Iterator
from typing import Any

from benchmarks.contenders import name_packages
from tests.runs.running import Place, Saved, Stateful

name_packages("streaming")
from streaming.base.dataloader import StreamingDataLoader  # noqa: E402 (needs the name above)
from streaming.base.dataset import StreamingDataset  # noqa: E402
from streaming.base.format import MDSWriter  # noqa: E402
from streaming.base.util import clean_stale_shared_memory  # noqa: E402

SHARD_BYTES = 1024


def write(folder: str, n: int) -> None:
    """Write n samples, each its own number."""
    with MDSWriter(out=folder, columns={"id": "int"}, size_limit=SHARD_BYTES) as writer:
        for number in range(n):
            writer.write({"id": number})


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
            yield batch["id"].tolist()
