"""MosaicML Streaming: MDS shards, a StreamingDataset, and a StreamingDataLoader's state.

https://docs.mosaicml.com/projects/streaming/en/stable/distributed_training/elastic_determinism.html
and fast_resumption.html next to it: batch_size given to both, a global batch that stays, the same
num_canonical_nodes (the default is the number of nodes, which is one here), and the state of the
first rank for all.

Beside row.py it needs `pip install torch mosaicml-streaming==0.13.0`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.runs.row import Leg, Numbered, Steps, by_plan, by_state, name_packages

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
    loader = StreamingDataLoader(dataset, batch_size=batch)
    return by_state(leg, loader, lambda rows: rows["n"].tolist())


def ours(leg: Leg) -> Steps:
    """Read the same shards by a plan."""
    clean_stale_shared_memory()
    rows = StreamingDataset(local=str(leg.data), batch_size=1)
    return by_plan(leg, Numbered(leg.samples, lambda index: int(rows[index]["n"])))


def write(folder: Path | str, n: int) -> None:
    """Write the samples, each its own number."""
    with MDSWriter(out=str(folder), columns={"n": "int"}, size_limit=SHARD_BYTES) as writer:
        for number in range(n):
            writer.write({"n": number})


def drawn() -> Any:
    """MosaicML Streaming: MDS shards, a StreamingDataset, and a StreamingDataLoader's state.

    As its page and fast_resumption.html beside it say: batch_size given to both, the same
    num_canonical_nodes, a global batch that stays and that the ranks divide.
    """
    from tests.runs.running import Place, Saved, Stateful

    class OfShards(Stateful):
        def __init__(self, place: Place, saved: Saved | None) -> None:
            clean_stale_shared_memory()  # of a leg that was ended, as its errors say to
            dataset = StreamingDataset(
                local=place.folder,
                batch_size=place.batch,
                shuffle=True,
                shuffle_seed=place.seed,
                num_canonical_nodes=1,
            )
            options = {"batch_size": place.batch, "num_workers": place.workers}
            super().__init__(StreamingDataLoader(dataset, **options), saved)

        def batches(self, epoch: int) -> Iterator[Any]:
            """Iterate."""
            yield from (batch["n"].tolist() for batch in super().batches(epoch))

    return OfShards
