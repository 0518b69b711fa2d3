"""ShardLoader: the samples of a plan's steps, fetched from shards, where no torch is needed."""

from __future__ import annotations

import gc
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan_fetch import ShardFile, ShardLoader
from indexplan_fetch.folder import Folder
from indexplan_fetch.locks import hold, is_held
from tests.support.forked import until
from tests.support.in_a_fork import refused_in_a_fork
from tests.support.strategies import steps_of

SIZES = [30, 1, 52, 44, 17, 60, 38, 25, 33, 48]
NUM = sum(SIZES)

Made = Callable[..., ShardLoader]


def rows_of(file: ShardFile) -> Any:
    """Return the rows of an array in a file, which are their own indices."""
    return np.load(file.path).tolist()


@pytest.fixture
def shards(tmp_path: Path) -> ip.Shards:
    """Ten arrays in files, whose rows count through them all."""
    (tmp_path / "data").mkdir()
    starts = np.cumsum([0, *SIZES])
    for number, (start, stop) in enumerate(pairwise(starts)):
        np.save(tmp_path / "data" / f"{number:02}.npy", np.arange(start, stop))
    return ip.shard_sizes(tmp_path / "data" / "*.npy")


@pytest.fixture
def loader_of(shards: ip.Shards, tmp_path: Path) -> Iterator[Made]:
    """Make loaders, and close them at the end."""
    made: list[ShardLoader] = []

    def make(plan: ip.Plan, of: ip.Shards = shards, **changes: Any) -> ShardLoader:
        options = {"rank": 0, "num_epochs": 1, "cache_dir": tmp_path / "cache", **changes}
        rows = options.pop("open_shard", rows_of)
        each = options.pop("ranks_per_node", plan.world_size)
        made.append(ShardLoader(of, rows, plan, ranks_per_node=each, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def plan_of(shards: ip.Shards, world_size: int = 1, **changes: Any) -> ip.Plan:
    """Return a plan that reads few shards at a time."""
    order = ip.ShardShuffle(shards, lanes=2, stripe=24, seed=3)
    return ip.Plan(order, **{"world_size": world_size, "global_batch_size": 24, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"remainder": "drop"},
        {"remainder": "pad", "sub_epochs": 3},
        {"remainder": "carry"},
        {"global_batch_size": [ip.Phase(at=0, size=24), ip.Phase(at=(1, 0), size=32)]},
        {"order": ip.Shuffle(NUM, seed=1)},
    ],
)
@pytest.mark.parametrize("rank", [0, 1])
def test_samples_and_cursors(
    loader_of: Made, shards: ip.Shards, changes: dict[str, Any], rank: int
) -> None:
    """Each step has the plan's samples; the cursor counts steps as the plan does."""
    plan = plan_of(shards, 2).replace(**changes)
    loader = loader_of(plan, rank=rank, num_epochs=2)
    assert plan.start == loader.cursor
    for epoch, sub_epoch, step in steps_of(plan, 2):
        expected = plan.batch(epoch, sub_epoch, step=step, rank=rank).tolist()
        assert expected == next(loader)
        assert plan.cursor(epoch, sub_epoch, step=step + 1) == loader.cursor
    assert [] == list(loader)
    assert [] == list(loader)


def test_bins(loader_of: Made) -> None:
    """A bin is a list of its own; of samples that are cut, the parts are told."""
    lengths = np.random.default_rng(0).integers(1, 30, NUM)
    packed = ip.Plan(ip.Packed(lengths, 64, seed=1), world_size=1, batch_size=8)
    found = list(loader_of(packed))
    assert [[each.tolist() for each in batch.bins] for batch in units_of(packed)] == found
    cut = ip.Plan(ip.DocumentWindows(lengths, 64, seed=1), world_size=1, batch_size=8)
    found = list(loader_of(cut))
    expected = [[[tuple(piece) for piece in b.tolist()] for b in u.bins] for u in units_of(cut)]
    assert expected == found
    assert 3 == len(found[0][0][0])


def units_of(plan: ip.Plan) -> Iterator[Any]:
    """Yield what one rank reads in the first epoch."""
    return plan.batches(0, rank=0, units=True)


def test_a_format_of_ones_own(loader_of: Made, shards: ip.Shards) -> None:
    """Whole files are fetched of any format, though no index or footer says what is in them."""
    own = ip.Shards.from_dict({**shards.to_dict(), "kind": "records"}, shards.path)
    plan = plan_of(own)
    assert [batch.tolist() for batch in plan.batches(0, rank=0)] == list(loader_of(plan, own))


def test_resumed_by_others(loader_of: Made, shards: ip.Shards) -> None:
    """Two ranks begin, three go on from the saved text: each sample is read once an epoch."""
    plan, read, saved = plan_of(shards, 2), [], set()
    for rank in range(2):
        with loader_of(plan, rank=rank, num_epochs=2) as loader:
            for samples in islice(loader, 20):
                read += samples
            saved.add(loader.cursor.to_json())
    (text,) = saved
    rest = plan.replace(world_size=3).resume(ip.Cursor.from_json(text))
    assert 1 == rest.start.epoch
    for rank in range(3):
        with loader_of(rest, rank=rank, num_epochs=2) as loader:
            for samples in loader:
                read += samples
    assert sorted([*range(NUM)] * 2) == sorted(read)


def test_nothing_left(loader_of: Made, shards: ip.Shards, tmp_path: Path) -> None:
    """A run that is resumed at its end reads nothing, and fetches nothing."""
    plan = plan_of(shards)
    loader = loader_of(plan.resume(plan.cursor(1, step=0)))
    assert [] == list(loader)
    assert plan.cursor(1, step=0) == loader.cursor
    assert not (tmp_path / "cache").exists()


def test_fetching_begins_at_once(loader_of: Made, shards: ip.Shards) -> None:
    """While a model is compiled, the first shards come."""
    plan = plan_of(shards)
    loader = loader_of(plan)
    until(lambda: loader.report().num_fetches == len(SIZES))
    assert [each.tolist() for each in plan.batches(0, rank=0)] == list(loader)
    assert 0 == loader.report().num_stalls


def test_changed_file(loader_of: Made, shards: ip.Shards, tmp_path: Path) -> None:
    """A file that has changed is refused by the step that reads it; put back, the step is read."""
    plan = plan_of(shards)
    first = plan.batch(0, step=0, rank=0)
    number = int(shards.locate(first)[0][0])
    path = tmp_path / "data" / shards.files[number]
    size = path.stat().st_size
    path.rename(tmp_path / "away")
    np.save(path, np.arange(SIZES[number] + 1))
    loader = loader_of(plan, tries=1)
    with pytest.raises(ip.IndexPlanError) as raised:
        next(loader)
    error = raised.value
    assert (f"{shards.path}/{path.name}", "more") == (error.what, error.got)
    assert f"must hold {size} bytes, as shards says" == error.rule
    cure = "restore it, or read the sizes again with shard_sizes and build a new plan"
    assert cure == error.cure
    assert plan.start == loader.cursor
    (tmp_path / "away").rename(path)
    assert first.tolist() == next(loader)


def test_closed(loader_of: Made, shards: ip.Shards, tmp_path: Path) -> None:
    """A loader that was closed fetches no more, so that others can; what is whole stays."""
    plan = plan_of(shards)
    with loader_of(plan) as loader:
        next(loader)
        (fetcher,) = (tmp_path / "cache").glob("*/fetcher")
        assert is_held(fetcher)
    assert not is_held(fetcher)
    loader.close()
    with pytest.raises(ip.IndexPlanError, match=r"^a loader must be read before it is closed; "):
        next(loader)
    rest = plan.resume(loader.cursor)
    assert [each.tolist() for each in rest.batches(0, rank=0)] == list(loader_of(rest))


def test_closed_then_rewritten(
    loader_of: Made, shards: ip.Shards, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loader that finds the shards of an earlier loader, since rewritten, reads those of now.

    Its thread has listed them when its loop drops the first: a call of the disk between the two.
    """
    plan, there, listed = plan_of(shards), Folder.there, threading.Event()
    with loader_of(plan) as loader:
        assert NUM == len(sum(loader, []))
    for path in (tmp_path / "data").iterdir():
        np.save(path, np.load(path) + NUM)
        os.utime(path, (0, 0))

    def list_them(folder: Folder) -> dict[int, Path]:
        found = there(folder)
        listed.set()
        until(lambda: not all(path.exists() for path in found.values()))
        return found

    monkeypatch.setattr(Folder, "there", list_them)
    loader = loader_of(plan, ip.shard_sizes(tmp_path / "data" / "*.npy"))
    assert listed.wait(60)
    assert [(each + NUM).tolist() for each in plan.batches(0, rank=0)] == list(loader)


def test_closed_while_it_waits(loader_of: Made, shards: ip.Shards, tmp_path: Path) -> None:
    """A thread that waits for a shard ends when the loader is closed."""
    folder = Folder(tmp_path / "cache", shards)
    folder.make()
    fetching = hold(folder.fetcher)  # as a process that fetches, and brings nothing
    loader, said = loader_of(plan_of(shards)), []

    def wait() -> None:
        try:
            next(loader)
        except ip.IndexPlanError as error:
            said.append(str(error))

    thread = threading.Thread(target=wait)
    thread.start()
    until(lambda: [*(tmp_path / "cache").glob("*/wanted/*")])
    loader.close()
    thread.join(60)
    assert fetching is not None
    fetching.close()
    assert said == [
        "a loader must be read before it is closed; got one that was closed; make another, of "
        "plan.resume(loader.cursor)"
    ]


def test_forgotten(shards: ip.Shards, tmp_path: Path) -> None:
    """A loader that nobody has any more fetches no more, though nobody closed it."""
    cache = tmp_path / "cache"
    loader = ShardLoader(shards, rows_of, plan_of(shards), rank=0, num_epochs=1, cache_dir=cache)
    next(loader)
    (fetcher,) = cache.glob("*/fetcher")
    assert is_held(fetcher)
    del loader
    gc.collect()
    assert not is_held(fetcher)


def test_threads(loader_of: Made, shards: ip.Shards) -> None:
    """Of threads that call next, each gets other steps, and none is lost."""
    plan, found = plan_of(shards), []
    loader = loader_of(plan)
    threads = [threading.Thread(target=lambda: found.extend(loader)) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert sorted(each.tolist() for each in plan.batches(0, rank=0)) == sorted(found)


def test_other_processes(loader_of: Made, shards: ip.Shards) -> None:
    """In a fork, it would read what this process reads; nor does it travel."""
    loader = loader_of(plan_of(shards))
    rule = "a ShardLoader must be read in the process that made it; got "
    cure = "; make one in each process, with the rank of that process"
    with pytest.raises(ip.IndexPlanError) as raised:
        pickle.dumps(loader)
    assert f"{rule}one to be pickled{cure}" == str(raised.value)
    assert f"{rule}a fork of that process{cure}" == refused_in_a_fork(lambda: next(loader))
    assert plan_of(shards).batch(0, step=0, rank=0).tolist() == next(loader)


def test_too_few_are_kept_open(loader_of: Made, shards: ip.Shards) -> None:
    """What is opened again and again is warned of, at the line of the loop."""
    loader = loader_of(plan_of(shards), keep_open=1)
    with pytest.warns(UserWarning, match=r"^keep_open must be at least ") as warned:
        next(loader)
    assert [__file__] == [each.filename for each in warned]
