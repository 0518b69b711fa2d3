"""Shards that are fetched from a real object store as the plan needs them, by ranks of one node."""

from __future__ import annotations

import json
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import indexplan as ip
from indexplan_torch import PlanLoader, ShardedDataset, open_parquet
from tests.support.forked import results
from tests.support.remote import server, store
from tests.together.sharded_runs import (
    at,
    expected,
    forks,
    live_bytes,
    plan_of,
    start_alone,
    until,
    write_shards,
)

__all__ = ["server"]  # a fixture


@pytest.fixture(scope="module", params=["parquet"])
def shards(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> ip.Shards:
    """Thirty files of Parquet, or tars, in a folder."""
    return write_shards(tmp_path_factory.mktemp("shards") / "data", kind=request.param)


@pytest.fixture
def place(server: str, shards: ip.Shards, request: pytest.FixtureRequest) -> str:
    """Where a store has them, under a name of its own for each test; its param is a part of it."""
    assert server
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    url = f"bucket/{name}-{getattr(request, 'param', '')}"
    store().put(f"{shards.path}/", f"{url}/", recursive=True)
    return f"s3://{url}"


def sent(server: str, place: str) -> int:
    """How many bytes the server has sent of what lies in a place."""
    with urllib.request.urlopen(f"{server}/sent") as answer:  # noqa: S310 (our own server)
        found = json.load(answer)
    name = place.removeprefix("s3:/")
    return sum(n for path, n in found.items() if name in path and path.endswith(".parquet"))


def refused(function: Any, *arguments: Any) -> str:
    """The message with which something is refused."""
    with pytest.raises(ip.IndexPlanError) as error:
        function(*arguments)
    return str(error.value)


def test_two_ranks_of_a_node(server: str, place: str, shards: ip.Shards, tmp_path: Path) -> None:
    """Two ranks, and their workers, share a folder: the plan's samples, and traffic's bytes.

    The folder holds just the live shards, and never more. One rank's workers are forked, those of
    the other get its dataset by a pickle.
    """
    plan = plan_of(shards, 2)
    live = live_bytes(plan, shards, range(2))
    arguments = shards.to_json(), place, str(tmp_path / "cache"), live, 2, ["forkserver", "fork"]
    found = results(forks().ranks("tests.together.sharded_runs:read", tmp_path, 2, *arguments))
    for rank in range(2):
        assert expected(plan, rank) == found[rank]["ids"]
    counted = ip.traffic(plan, shards, ranks_per_node=2).downloads
    assert counted.tolist() == [[sum(each["num_samples"] for each in found)]]
    read = ip.reads(plan, shards, epoch=0).shards
    assert len(read) == sum(each["num_fetches"] for each in found)
    num_bytes = sum(shards.num_bytes[shard] for shard in read)
    assert num_bytes == sent(server, place) == sum(each["num_bytes"] for each in found)
    assert 0 < max(each["most"] for each in found) <= live


@pytest.mark.parametrize("shards", ["parquet", "tar"], indirect=True)
@pytest.mark.parametrize("place", ["gated"], indirect=True)
def test_killed_while_it_fetches(
    server: str, place: str, shards: ip.Shards, tmp_path: Path
) -> None:
    """A rank is killed in the middle of a fetch: another one goes on, and so does the next run."""
    cache = tmp_path / "cache"
    plan = plan_of(shards, 2)
    first = start_alone(shards, place, cache, 0, 2)
    until(lambda: [*cache.glob("*/shards/*.tmp")], first)
    second = start_alone(shards, place, cache, 1, 2)
    until(lambda: [*cache.glob("*/wanted/*")] and [*cache.glob("*/ranks/*-1-*")], second)
    first.kill()
    assert -signal.SIGKILL == first.wait()
    urllib.request.urlopen(f"{server}/open")  # noqa: S310 (our own server)
    assert [expected(plan, 1)] == results([second])
    assert [] == [*cache.glob("*/shards/*.tmp")]
    for path in cache.glob("*/shards/*"):
        original = Path(shards.path) / shards.part(int(path.stem))[0]
        assert original.read_bytes() == path.read_bytes()
    assert [expected(plan, 0)] == results([start_alone(shards, place, cache, 0, 2)])


@pytest.fixture
def dataset(place: str, shards: ip.Shards, tmp_path: Path) -> Iterator[ShardedDataset]:
    """The shards of a store that has a bad day."""
    made = ShardedDataset(
        at(shards, place), open_parquet, cache_dir=tmp_path / "cache", cache_bytes=10**9, tries=3
    )
    made.settings = made.settings._replace(pause=0.01)
    yield made
    made.stop()


@pytest.mark.parametrize("place", ["two_fail"], indirect=True)
def test_store_that_fails_now_and_then(dataset: ShardedDataset, shards: ip.Shards) -> None:
    """Two requests of three are refused: what fails is asked for again, and nobody sees it."""
    plan = plan_of(shards, 1)
    found = [batch["id"].tolist() for batch in PlanLoader(dataset, plan)]
    assert expected(plan, 0) == found


@pytest.mark.parametrize("place", ["all_fail"], indirect=True)
def test_store_that_fails(dataset: ShardedDataset, place: str, shards: ip.Shards) -> None:
    """The batch that needs a shard raises: which, why, after how many attempts, and what to do."""
    loader = PlanLoader(dataset, plan_of(shards, 1))
    message = refused(lambda: next(iter(loader)))
    which = shards.locate(plan_of(shards, 1).batch(0, step=0, rank=0))[0][0]
    assert message == (
        f"shard {which}, {place}/{shards.files[which]}, must be fetched before its batch; got "
        "PermissionError, 3 times; check the store and the credentials, then "
        "run again: whole shards are kept"
    )


@pytest.mark.parametrize(
    ("place", "got"),
    [("longer_download", "more"), ("shorter_download", "fewer")],
    indirect=["place"],
)
def test_store_that_lies(
    dataset: ShardedDataset, place: str, shards: ip.Shards, got: str, tmp_path: Path
) -> None:
    """A file of other bytes than it should have is refused, and never gets its name."""
    rule = f"{place}/0000.parquet must hold {shards.num_bytes[0]} bytes, as shards says; got "
    got = str(shards.num_bytes[0] - 100) if got == "fewer" else got
    cure = "restore it, or read the sizes again with shard_sizes and build a new plan"
    assert f"{rule}{got}; {cure}" == refused(dataset.__getitem__, 0)
    assert [] == [*tmp_path.glob("cache/*/shards/*")]


def test_changed_file(dataset: ShardedDataset, place: str, shards: ip.Shards) -> None:
    """A file that was replaced by one of as many bytes is refused; put back, it is read."""
    original = Path(shards.path) / "0003.parquet"
    data = original.read_bytes()
    size = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - size : -8]
    changed = data[: -8 - size] + footer.replace(b"parquet-cpp", b"parquet-cpq") + data[-8:]
    assert len(data) == len(changed)
    assert data != changed
    store().pipe_file(f"{place}/0003.parquet", changed)
    index = int(shards.sizes.array[:3].sum())
    message = refused(dataset.__getitem__, index)
    assert message.startswith(f"{place}/0003.parquet must be the file that shards was made from; ")
    store().pipe_file(f"{place}/0003.parquet", data)
    assert index == dataset[index]["id"]


def test_row_groups(server: str, place: str, shards: ip.Shards, tmp_path: Path) -> None:
    """A shard that is a row group is fetched without the others of its file."""
    parts = ip.shard_sizes(f"{shards.path}/*.parquet")
    dataset = ShardedDataset(
        at(parts, place), open_parquet, cache_dir=tmp_path / "cache", cache_bytes=10**9
    )
    plan = plan_of(parts, 1)
    found = [batch["id"].tolist() for batch in PlanLoader(dataset, plan, num_workers=1)]
    assert expected(plan, 0) == found
    report = dataset.report()
    read = len(ip.reads(plan, parts, epoch=0).shards)
    assert (read, int(ip.traffic(plan, parts).downloads[0, 0])) == report[:2]
    assert report.num_bytes == sent(server, place)
