"""Shards that another process drops, or fetches again, while one reads them or begins to fetch."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import indexplan as ip
from indexplan_fetch import samples
from indexplan_fetch.source import Source
from indexplan_fetch.stock import Stock
from indexplan_torch import ShardedDataset
from tests.together.sharded_runs import rows_of, write_numbers


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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[ShardedDataset]:
    """A dataset whose two shards are there, and in a copy of its folder."""
    monkeypatch.setattr(samples, "PATIENCE", 0.0)  # it says at once what it waits for
    for start in (0, 100):
        write_numbers(tmp_path / f"{start:03}.{request.param}", range(start, start + 100))
    shards = ip.shard_sizes(tmp_path / f"*.{request.param}")
    made = ShardedDataset(shards, rows_of, cache_dir=tmp_path / "cache", tries=1)
    assert [7, 107] == [made[index] for index in (7, 107)]
    shutil.copytree(made.folder.path, tmp_path / "away")
    yield made
    made.stop()


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
    assert {1} if damaged else {0, 1} == there
