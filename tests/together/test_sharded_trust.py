"""What lies in cache_dir: damaged shards, others' links; tests/stores/test_cache.py has more."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import indexplan as ip
from indexplan_fetch import ShardFile
from indexplan_torch import ShardedDataset
from tests.support.children import NOBODY, become_nobody, in_child
from tests.together.sharded_runs import Opened, refused, write_numbers

ROWS = 500  # in each of two files


def made(data: Path, cache: Path) -> ShardedDataset:
    """Make a dataset of the files in a folder, whose values count through them all."""
    return Opened(cache)(ip.shard_sizes(data / "*.*"), tries=1)


@pytest.fixture(params=["npy"])
def data(place: Path, request: pytest.FixtureRequest) -> Path:
    """Two arrays, or tars, in a folder that everybody may read."""
    (place / "data").mkdir()
    for number in range(2):
        numbers = range(number * ROWS, (number + 1) * ROWS)
        write_numbers(place / f"data/{number}.{request.param}", numbers)
    return place / "data"


@pytest.fixture
def cache(place: Path) -> Path:
    """A folder like /tmp, where everybody has folders of their own."""
    (place / "cache").mkdir()
    (place / "cache").chmod(0o1777)
    return place / "cache"


@pytest.fixture
def dataset(data: Path, cache: Path) -> Iterator[ShardedDataset]:
    """A dataset of which nothing is there yet."""
    dataset = made(data, cache)
    yield dataset
    dataset.stop()


@pytest.mark.parametrize("data", ["npy", "tar"], indirect=True)
@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize("damage", ["flipped", "cut", "no digest", "other digest", "empty digest"])
def test_damaged_shard(
    dataset: ShardedDataset, data: Path, cache: Path, damage: str, again: bool
) -> None:
    """A shard whose bytes have changed is dropped, and fetched again; in the next run, too."""
    assert 3 == dataset[3]
    (shard,), (digest,) = cache.glob("*/shards/*"), cache.glob("*/sums/*")
    whole = shard.read_bytes()
    if damage == "flipped":
        with shard.open("rb+") as file:  # the last value; of a tar, two blocks of zeros follow it
            at = len(whole.rstrip(b"\0")) if shard.suffix == ".tar" else len(whole)
            file.seek(at - 4)
            file.write(b"6" * 4)
    elif damage == "cut":
        os.truncate(shard, 1000)
    elif damage == "no digest":
        digest.unlink()
    else:
        digest.write_bytes(b"" if damage == "empty digest" else digest.read_bytes()[::-1])
    if again:
        dataset.stop()
        dataset = made(data, cache)
    else:
        dataset._forget()  # as in another process of the node
        dataset.folder.sums._whole.clear()
    last = dataset[ROWS - 1]
    dataset.stop()
    assert ROWS - 1 == last
    assert whole == shard.read_bytes()


def test_read_once(dataset: ShardedDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes of a shard are read for their digest once in a process, however often it opens."""
    from indexplan_fetch import sums

    asked: list[Any] = []

    def noting(*of: Any, real: Any = sums._digest) -> Any:
        asked.append(of)
        return real(*of)

    monkeypatch.setattr(sums, "_digest", noting)
    for _ in range(3):
        assert 3 == dataset[3]
        dataset._rows.close(0)
    assert 2 == len(asked)  # by who fetched it, and by who read it


def broken(_: ShardFile) -> Any:
    """Open no file."""
    raise OSError("Couldn't deserialize thrift")


def test_shard_that_cannot_be_opened(data: Path, cache: Path) -> None:
    """It is fetched again once; then the error says what came of it, twice."""
    dataset = made(data, cache)
    dataset.open_shard = broken
    assert "must be a file that open_shard opens; got OSError(" in (said := refused(dataset, ROWS))
    assert ", twice; " in said
    dataset.stop()
    assert 2 == dataset.report().num_fetches


@pytest.mark.parametrize("name", ["shards/00000000.npy", "fetcher", "failed"])
def test_planted_links(dataset: ShardedDataset, precious: Path, name: str) -> None:
    """No link inside is followed, to read or to write."""
    dataset.folder.make()
    path = dataset.folder.path / name
    path.unlink(missing_ok=True)
    path.symlink_to(precious)
    rule = f"file that only you, user {os.geteuid()}, can write to; got a link"
    assert f"{path} must be a {rule}; delete it, or pass another cache_dir" == refused(dataset)
    path.unlink()
    assert 3 == dataset[3]


def read_as_nobody(data: Path, cache: Path) -> tuple[int, str]:
    """Read a sample as another user; return it, and the folder."""
    become_nobody()
    dataset = made(data, cache)
    found = int(dataset[3])
    dataset.stop()
    return found, dataset.folder.path.name


def test_users_who_share_a_place(dataset: ShardedDataset, data: Path, cache: Path) -> None:
    """Each user has a folder of their own there, and fetches for it."""
    assert 3 == dataset[3]
    dataset.stop()
    found, name = in_child(read_as_nobody, data, cache)
    assert 3 == found
    if os.geteuid() == 0:
        assert name == dataset.folder.path.name.replace("-0", f"-{NOBODY}")
        assert NOBODY == (cache / name).stat().st_uid
