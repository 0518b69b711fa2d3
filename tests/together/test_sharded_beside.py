"""Who else reads the shards of a ShardedDataset, or its folder: other data, loaders and runs."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch

import indexplan as ip
from indexplan_fetch import samples, turn
from indexplan_fetch.awaited import Awaited
from indexplan_fetch.source import Source
from indexplan_fetch.stock import Stock
from indexplan_torch import PlanLoader, ShardedDataset
from tests.support.forked import results
from tests.together.sharded_runs import Opened, expected, forks, ids_of, write_numbers, write_shards


def write(folder: Path, first: int = 0) -> ip.Shards:
    """Write forty small arrays whose values count through them all."""
    return write_shards(folder, num=40, rows=50, kind="npy", first=first)


def test_files_that_say_the_same(dataset_of: Opened, tmp_path: Path) -> None:
    """Files of one shape and name in two folders share a cache, but none of their samples."""
    ids, others = write(tmp_path / "ids"), write(tmp_path / "others", first=10**6)
    assert ids == others
    assert (3, 10**6 + 3) == (dataset_of(ids)[3], dataset_of(others)[3])


def test_working_directory(
    dataset_of: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path stays what it was when the dataset was made."""
    for name, first in (("a", 0), ("b", 10**6)):
        write(tmp_path / name, first=first)
    monkeypatch.chdir(tmp_path / "a")
    data = dataset_of(ip.shard_sizes("*.npy"))
    monkeypatch.chdir(tmp_path / "b")
    assert 3 == data[3]


def plans(shards: ip.Shards) -> tuple[ip.Plan, ip.Plan]:
    """Return a plan to train on, and one to validate on."""
    training = ip.Plan(ip.ShardShuffle(shards, lanes=1), world_size=1, batch_size=10)
    return training, ip.Plan(ip.Sequential(shards.num_samples), world_size=1, batch_size=10)


def test_validation_inside_a_loop(
    dataset_of: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loader of another dataset reads the same folder while the loop of the first stands still.

    It reads shards that the loop's plan comes to much later, as does who asks for any sample.
    """
    monkeypatch.setattr(turn, "STILL", 0.5)
    shards = write(tmp_path / "data")
    training, validation = plans(shards)
    options: dict[str, Any] = {"cache_bytes": 7 * 4096, "ahead": 2}  # those read at a time
    data, beside = dataset_of(shards, **options), dataset_of(shards, **options)
    for step, batch in enumerate(PlanLoader(data, training)):
        assert training.batch(0, step=step, rank=0).tolist() == batch.tolist()
        if step == 20:
            last = int(training.batch(0, step=training.steps(0).stop - 1, rank=0)[0])
            assert last == data[last]
            assert expected(validation, 0) == ids_of(PlanLoader(beside, validation))


def test_any_sample_after_a_pass(dataset_of: Opened, tmp_path: Path) -> None:
    """Who asks for samples after a pass gets them, with room for what a plan reads at a time."""
    shards = write(tmp_path / "data")
    training, _ = plans(shards)
    data = dataset_of(shards, cache_bytes=7 * 4096)
    assert training.steps(0).stop == len([*PlanLoader(data, training)])
    indices = range(0, len(data), 50)
    assert [*indices] == [int(data[index]) for index in indices]


def test_failures_of_a_machine_that_ran_longer(
    dataset_of: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure is forgotten in the next run, though the clock has begun anew with the machine."""
    shards = write(tmp_path / "data")
    (tmp_path / "data").rename(tmp_path / "away")
    with pytest.raises(ip.IndexPlanError, match="got FileNotFoundError, 1 time;"):
        dataset_of(shards, tries=1)[0]
    dataset_of.end()
    (tmp_path / "away").rename(tmp_path / "data")
    begun = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda real=time.monotonic: real() - begun)
    assert 3 == dataset_of(shards)[3]


def test_more_failures_than_are_told(dataset_of: Opened, tmp_path: Path) -> None:
    """What somebody waits for is told, though much that is fetched ahead fails after it."""
    data = dataset_of(write(tmp_path / "data"))
    data._fetching().stop()
    awaited = Awaited(data.folder)
    with data.folder.waiting(0):
        for shard in range(20):
            awaited.fail(shard, ip.IndexPlanError("a shard", "must be there", None, "go"))
        assert 0 in [failure.shard for failure in data.folder.failures()]


@pytest.mark.parametrize("num_workers", [0, 1])
def test_part_of_a_dataset(dataset_of: Opened, tmp_path: Path, num_workers: int) -> None:
    """A torch Subset is read by a plan of its own samples."""
    part = torch.utils.data.Subset(dataset_of(write(tmp_path / "data")), range(100, 300))
    plan = ip.Plan(ip.Shuffle(200), world_size=1, batch_size=50)
    found = ids_of(PlanLoader(part, plan, num_workers=num_workers))
    assert [(100 + batch).tolist() for batch in plan.batches(0, rank=0)] == found


def test_report_of_what_was_read(
    dataset_of: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What somebody has read is counted, though the thread that fetches was not there since."""
    shards, asked = write(tmp_path / "data"), threading.Event()
    data = dataset_of(shards)

    def look_later(its: turn.Turn, look: Callable[[turn.Turn], None] = turn.Turn._reap) -> None:
        if its._fetches:
            asked.wait(60)
        look(its)

    monkeypatch.setattr(turn.Turn, "_reap", look_later)
    assert (3, (1, shards.sizes.array[0], shards.num_bytes[0])) == (data[3], data.report()[:3])
    asked.set()


@pytest.mark.parametrize(
    ("rank", "local_rank", "on_node", "ranks"), [(3, 3, 4, range(4)), (5, 1, 8, range(4, 12))]
)
def test_nodes_of_different_sizes(
    dataset_of: Opened,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rank: int,
    local_rank: int,
    on_node: int,
    ranks: range,
) -> None:
    """Of nodes of four and of eight ranks, each fetches for its own, as torchrun tells."""
    variables = {"WORLD_SIZE": 12, "LOCAL_WORLD_SIZE": on_node}
    for name, value in {**variables, "RANK": rank, "LOCAL_RANK": local_rank}.items():
        monkeypatch.setenv(name, str(value))
    data = dataset_of(write(tmp_path / "data"))
    plan = ip.Plan(ip.Shuffle(len(data)), world_size=12, batch_size=5)
    assert ranks == data.ranks(plan, rank)


def read_in_a_fork(path: str, cache: str) -> int:
    """Read a sample in a child of a process that fetched, and fetches no more."""
    data = Opened(Path(cache))(ip.shard_sizes(path))
    assert 3 == data[3]
    assert data._fetcher is not None
    data._fetcher.stop()
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)  # ends it
        os._exit(int(data[100] == 100))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_fork_of_who_fetched(tmp_path: Path) -> None:
    """A process that was forked from one that has fetched fetches for itself."""
    write(tmp_path / "data")
    name = "tests.together.test_sharded_beside:read_in_a_fork"
    arguments = f"{tmp_path}/data/*.npy", str(tmp_path / "cache")
    assert [1] == results([forks().start(name, tmp_path / "log", *arguments)])


# Shards that another process drops, or fetches again, while one reads or counts them.


def disturbed(do: Callable[[], Any], at: int, *disturb: Callable[[], Any]) -> tuple[Any, bool]:
    """Call a function, with something before its system call `at`, and before those after it.

    Returns
    -------
    found : object
        What it returned.
    reached : bool
        Whether it made as many calls.
    """
    calls = count()

    def before(_frame: object, what: str, function: Any) -> None:
        if what == "c_call" and getattr(function, "__module__", None) == "posix":
            number = next(calls) - at
            if 0 <= number < len(disturb):
                disturb[number]()

    sys.setprofile(before)
    try:
        found = do()
    finally:
        sys.setprofile(None)
    return found, next(calls) >= at + len(disturb)


@pytest.fixture(params=["npy"])
def data(
    dataset_of: Opened,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> ShardedDataset:
    """A dataset whose two shards are there, and in a copy of its folder."""
    monkeypatch.setattr(samples, "PATIENCE", 0.0)  # it says at once what it waits for
    for start in (0, 100):
        write_numbers(tmp_path / f"{start:03}.{request.param}", range(start, start + 100))
    shards = ip.shard_sizes(tmp_path / f"*.{request.param}")
    made = dataset_of(shards, tries=1)
    assert [7, 107] == [made[index] for index in (7, 107)]
    shutil.copytree(made.folder.path, tmp_path / "away")
    return made


def put(data: ShardedDataset, name: str, away: Path, *, damaged: bool = False) -> None:
    """Put a shard in its place, as a process does that fetches it."""
    new = away / "new"
    content = (away / "shards" / name).read_bytes()
    new.write_bytes(content[::-1] if damaged else content)
    shutil.copy(away / "sums" / name, data.folder.sums.folder / name)
    new.replace(data.folder.shards / name)


@pytest.mark.parametrize("data", ["npy", "tar"], indirect=True)
@pytest.mark.parametrize("damaged", [False, True])
@pytest.mark.parametrize("how", ["dropped", "fetched again", "dropped, and fetched again"])
def test_while_it_is_read(data: ShardedDataset, tmp_path: Path, damaged: bool, how: str) -> None:
    """A reader has the right rows whatever others do to a shard, before any call of the system."""
    name, away = f"00000000.{data.shards.kind}", tmp_path / "away"
    shard = data.folder.shards / name
    drop, fetch = lambda: shard.unlink(missing_ok=True), lambda: put(data, name, away)
    others = {"dropped": [drop], "fetched again": [fetch]}.get(how, [drop, fetch])
    for at in count():
        put(data, name, away, damaged=damaged)
        data.close_all()
        found, reached = disturbed(lambda: data[7], at, *others)
        assert 7 == found
        if not reached:
            break
    assert at > 5


@pytest.mark.parametrize("damaged", [False, True])
def test_while_it_is_counted(data: ShardedDataset, tmp_path: Path, damaged: bool) -> None:
    """Who begins to fetch takes what a reader drops just then for a shard that is not there."""
    data.stop()
    name, away, folder = "00000000.npy", tmp_path / "away", data.folder
    for at in count():
        put(data, name, away)
        if damaged:
            (folder.sums.folder / name).unlink()
        stock, reached = disturbed(
            lambda: Stock(folder, data.shards, Source(data.shards, folder.place)),
            at,
            lambda: (folder.shards / name).unlink(missing_ok=True),
        )
        there = {int(path.stem) for path in folder.shards.iterdir()}
        assert {1} <= there <= stock.whole.keys()
        if not reached:
            break
    assert at > 5
    assert ({1} if damaged else {0, 1}) == there
