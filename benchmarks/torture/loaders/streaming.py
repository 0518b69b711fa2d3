"""MosaicML Streaming: MDS shards, a StreamingDataset, and a StreamingDataLoader's state.

https://docs.mosaicml.com/projects/streaming/en/stable/distributed_training/fast_resumption.html and
elastic_determinism.html beside it: `state_dict` and `load_state_dict` of the loader, batch_size
given to both, the same num_canonical_nodes, a global batch that stays and that the ranks divide.

`import streaming` also imports its text, vision and multimodal datasets, and with them torchvision;
the package is named here without being run, and what is used below it is the published code.
"""

import importlib.util
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from benchmarks.torture.running import Place, Saved, going_on


def name_package() -> None:
    """Let `streaming.base` be imported without running `streaming/__init__.py`."""
    found = importlib.util.find_spec("streaming") if "streaming" not in sys.modules else None
    if "streaming" not in sys.modules:
        if found is None or not found.submodule_search_locations:
            raise ModuleNotFoundError("No module named 'streaming'")
        package = ModuleType("streaming")
        package.__path__ = list(found.submodule_search_locations)
        sys.modules["streaming"] = package


name_package()
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


class Loader:
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
        self.loader = StreamingDataLoader(
            dataset, batch_size=place.batch, num_workers=place.workers
        )
        self.resumed = saved.epoch if saved and saved.after_pass else -1
        if saved:
            self.loader.load_state_dict(saved.state(0))

    def batches(self, epoch: int) -> Iterator[Any]:
        """Iterate."""
        for batch in going_on(self.loader, after_pass=epoch == self.resumed):
            yield batch["id"].tolist()

    def state(self) -> Any:
        """Return the loader's own."""
        return self.loader.state_dict()
