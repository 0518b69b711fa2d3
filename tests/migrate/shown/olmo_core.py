"""What the page on coming from OLMo-core says of its loader."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from olmo_core.data import NumpyFSLDataLoader


def check(page: dict[str, Any]) -> None:
    """Hold the page to what it says."""

    def loader_of(world_size: int, rank: int, size: int = 24, seed: int = 1) -> Any:
        return NumpyFSLDataLoader(
            page["dataset"],
            collator=page["collator"],
            global_batch_size=size * 4,
            work_dir=".",
            seed=seed,
            dp_world_size=world_size,
            dp_rank=rank,
            num_threads=0,  # its daemon threads abort a process that ends while they read
        )

    another_batch_size(loader_of)
    sizes_on_the_way(loader_of, page["loader_of"])
    seeds(loader_of, page["loader_of"])


def another_batch_size(loader_of: Any) -> None:
    """Resumed as on the page, it reads 12 samples twice."""
    read: list[int] = []
    state = None
    for world_size, size, stop in ((4, 24, 5), (3, 36, None)):
        loaders = [loader_of(world_size, rank, size) for rank in range(world_size)]
        for loader in loaders:
            if state is not None:
                loader.load_state_dict(state)
            loader.reshuffle(1)
            for batch in islice(loader, stop):
                read += batch["input_ids"][:, 0].tolist()
        state = loaders[0].state_dict()
    assert (984, 972) == (len(read), len(set(read)))


def sizes_on_the_way(theirs: Any, ours: Any) -> None:
    """After a step of 24 samples, the sizes that each takes."""
    before, after = theirs(4, 0), ours(4, 0)
    for loader in (before, after):
        loader.reshuffle(1)
        next(iter(loader))
    for size in (36, 48):
        with pytest.raises(RuntimeError):
            before.global_batch_size = size * 4
    for size in (36, 48, 20):
        after.global_batch_size = size * 4
    assert 5 == len(next(iter(after))["input_ids"])  # of 20 samples on 4 ranks
    assert (41, 42) == (before.total_batches, ours(4, 0).total_batches)


def seeds(theirs: Any, ours: Any) -> None:
    """Epoch 2 of seed 1, and epoch 1 of seed 2."""
    equal = []
    for make in (theirs, ours):
        first = []
        for seed, epoch in ((1, 2), (2, 1)):
            loader = make(1, 0, seed=seed)
            loader.reshuffle(epoch)
            first.append(next(iter(loader))["input_ids"][:, 0].tolist())
        equal.append(first[0] == first[1])
    assert [True, False] == equal
