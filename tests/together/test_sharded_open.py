"""How many shards a worker keeps open: as many as its plan reads at a time, and memory holds."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan_fetch import ShardFile, held
from indexplan_torch import PlanLoader, ShardedDataset, open_parquet
from tests.together.sharded_runs import write_shards


class Opener:
    """Opens arrays, and writes down which."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def __call__(self, file: ShardFile) -> Any:
        """Return the rows of a file."""
        with self.log.open("a") as log:
            log.write(f"{file.number}\n")
        return np.load(file.path)

    def opened(self) -> Counter[int]:
        """Return how often each shard was opened, by all processes."""
        return Counter(int(line) for line in self.log.read_text().split())


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> ip.Shards:
    """Shards of different sizes, whose values count through them all."""
    folder = tmp_path_factory.mktemp("data")
    first = 0
    for number, size in enumerate(np.random.default_rng(0).lognormal(4, 0.7, 150).astype(int)):
        np.save(folder / f"{number:03}.npy", np.arange(first, first + size))
        first += int(size)
    return ip.shard_sizes(folder / "*.npy")


def plan_of(shards: ip.Shards) -> ip.Plan:
    """Return a plan of eight ranks of one node, each of which reads eight lanes."""
    order = ip.ShardShuffle(shards, lanes=64, stripe=512, seed=1)
    return ip.Plan(order, world_size=8, batch_size=8, remainder="drop")


@pytest.mark.parametrize("num_workers", [0, 2])
def test_each_shard_is_opened_once(
    shards: ip.Shards, made: list[ShardedDataset], tmp_path: Path, num_workers: int
) -> None:
    """A rank of eight reads dozens of shards at a time: each of its workers opens each once."""
    opener, plan = Opener(tmp_path / "log"), plan_of(shards)
    made.append(
        ShardedDataset(
            shards, opener, cache_dir=tmp_path, cache_bytes=10**9, ranks_per_node=8, ahead=150
        )
    )
    loader = PlanLoader(made[0], plan, rank=3, world_size=8, num_workers=num_workers)
    expected: Counter[int] = Counter()
    each = max(1, num_workers)
    read: list[set[int]] = [set() for _ in range(each)]
    for step, batch in enumerate(loader):
        drawn = plan.batch(0, step=step, rank=3)
        assert drawn.tolist() == batch.tolist()
        read[step % each] |= set(shards.locate(drawn)[0].tolist())
    for some in read:
        expected.update(some)
    assert expected == opener.opened()
    assert 16 < 2 * held.read_at_a_time(plan, shards, (0, 0), 3, each)


def test_counts_what_is_live(shards: ip.Shards) -> None:
    """What a worker reads at a time is what sets say, batch by batch."""
    plan = plan_of(shards)
    for each in (1, 3):
        steps = [
            set(shards.locate(plan.batch(0, step=step, rank=3))[0].tolist())
            for step in range(0, plan.steps(0).stop, each)
        ]
        live = [
            len(set().union(*steps[: t + 1]) & set().union(*steps[t:])) for t in range(len(steps))
        ]
        assert max(live) == held.read_at_a_time(plan, shards, (0, 0), 3, each)


def test_fewer_than_are_read(shards: ip.Shards, made: list[ShardedDataset], tmp_path: Path) -> None:
    """Who says to keep fewer open than are read at a time hears how many would do."""
    plan = plan_of(shards)
    live = held.read_at_a_time(plan, shards, (0, 0), 3, 1)
    options: dict[str, Any] = {"cache_dir": tmp_path, "cache_bytes": 10**9, "ranks_per_node": 8}
    made.append(ShardedDataset(shards, Opener(tmp_path / "log"), keep_open=live - 1, **options))
    expected = (
        f"keep_open must be at least {live}, the shards that each worker reads at a time; got "
        f"{live - 1}; pass {2 * live}, or leave it out: now shards are opened again and again"
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(expected)}$"):
        next(iter(PlanLoader(made[0], plan, rank=3, world_size=8)))
    made.append(ShardedDataset(shards, Opener(tmp_path / "log"), keep_open=live, **options))
    next(iter(PlanLoader(made[1], plan, rank=3, world_size=8)))


def test_more_than_memory_holds(
    made: list[ShardedDataset], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where memory does not hold the tables that are read at a time, fewer are kept, and said."""
    shards = write_shards(tmp_path / "data", num=8)
    order = ip.ShardShuffle(shards, lanes=4, stripe=64, seed=3)
    plan = ip.Plan(order, world_size=1, batch_size=16)
    live = held.read_at_a_time(plan, shards, (0, 0), 0, 1)
    made.append(
        ShardedDataset(shards, open_parquet, cache_dir=tmp_path / "cache", cache_bytes=10**9)
    )
    monkeypatch.setattr(held, "memory", lambda: 6000)  # of which half is for open shards
    with pytest.warns(UserWarning, match="^memory must hold") as said:
        found = [batch["id"].tolist() for batch in PlanLoader(made[0], plan)]
    assert [each.tolist() for each in plan.batches(0, rank=0)] == found
    assert 1 == len(said)
    assert re.fullmatch(
        rf"memory must hold the {live} shards that each worker reads at a time, some [\d.]+ kB "
        r"once they are opened; got 3 kB, half of this machine's memory divided by 1 process; "
        r"\d are kept open, and others are opened again and again: use smaller row groups, fewer "
        "columns, lanes or workers, or pass keep_open",
        str(said[0].message),
    )
