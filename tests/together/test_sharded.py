"""Shards that are fetched from a real object store as the plan needs them, by ranks of one node."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import indexplan as ip
from indexplan_fetch.answers import AnswerError
from indexplan_fetch.source import Source
from indexplan_torch import PlanLoader, ShardedDataset
from tests.histories.storm.driver import ENVIRONMENT
from tests.histories.storm.store import (
    BESIDE,
    CUT,
    LESS,
    MORE,
    RELABELLED,
    REPLICA,
    WHOLE,
    Mood,
    Store,
)
from tests.histories.storm.truth import REVERSED, Truth
from tests.support.forked import results, until
from tests.support.remote import ROOT, forget, store
from tests.together.sharded_runs import (
    Opened,
    at,
    expected,
    forks,
    ids_of,
    live_bytes,
    plan_of,
    refused,
    start_alone,
    write_shards,
)


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
def dataset(dataset_of: Opened, place: str, shards: ip.Shards) -> ShardedDataset:
    """The shards of a store that has a bad day."""
    return dataset_of(at(shards, place), tries=3)


@pytest.mark.parametrize("place", ["two_fail"], indirect=True)
def test_store_that_fails_now_and_then(dataset: ShardedDataset, shards: ip.Shards) -> None:
    """Two requests of three are refused: what fails is asked for again, and nobody sees it."""
    plan = plan_of(shards, 1)
    assert expected(plan, 0) == ids_of(PlanLoader(dataset, plan))


@pytest.mark.parametrize("place", ["all_fail"], indirect=True)
def test_store_that_fails(dataset: ShardedDataset, place: str, shards: ip.Shards) -> None:
    """The batch that needs a shard raises: which, why, after how many attempts, and what to do."""
    loader = PlanLoader(dataset, plan_of(shards, 1))
    with pytest.raises(ip.IndexPlanError) as error:
        next(iter(loader))
    which = shards.locate(plan_of(shards, 1).batch(0, step=0, rank=0))[0][0]
    assert str(error.value) == (
        f"shard {which}, {place}/{shards.files[which]}, must be fetched before its batch; got "
        "PermissionError, 3 times; check the store and the credentials, then "
        "run again: whole shards are kept"
    )


def test_row_groups(dataset_of: Opened, server: str, place: str, shards: ip.Shards) -> None:
    """A shard that is a row group is fetched without the others of its file, and once.

    Footers tell how large it is, so that without cache_bytes, too, the folder has room for it.
    """
    parts = ip.shard_sizes(f"{shards.path}/*.parquet")
    dataset, plan = dataset_of(at(parts, place), cache_bytes=None), plan_of(parts, 1)
    assert expected(plan, 0) == ids_of(PlanLoader(dataset, plan, num_workers=1))
    report = dataset.report()
    read = len(ip.reads(plan, parts, epoch=0).shards)
    assert (read, int(ip.traffic(plan, parts).downloads[0, 0])) == report[:2]
    assert report.num_bytes == sent(server, place)


# Answers of other files, or of other bytes.

PLACE = "s3://bucket/answers"
TRUTH = Truth("answers", ((40, 40),), 200, statistics=True, checksums=False)
RIGHT = TRUTH.file(0)


@pytest.fixture
def mixed_up(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store with one file, whose replica has as many bytes and the same footer."""
    made = Store()
    for name, value in {**ENVIRONMENT, "AWS_ENDPOINT_URL": made.url}.items():
        monkeypatch.setenv(name, value)
    forget()
    replica = TRUTH.file(0, REVERSED)
    made.put("answers/part-0000.parquet", RIGHT, lie=replica, replica=replica)
    yield made
    forget()
    made.shutdown()
    made.server_close()


@pytest.mark.parametrize(
    ("way", "said"),
    [
        (REPLICA, "bytes of another file, as their ETag says"),
        (RELABELLED, "bytes of another file, as their ETag says"),
        (BESIDE, "other bytes of the file than were asked for"),
        (WHOLE, "other bytes of the file than were asked for"),
        (LESS, "495 bytes instead of the 1000 asked for"),
    ],
)
def test_an_answer_of_other_bytes(mixed_up: Store, way: str, said: str) -> None:
    """No check before or after it finds it: the file itself is as it was."""
    source = Source(ip.shard_sizes(f"{PLACE}/*.parquet"), PLACE)
    assert RIGHT[100:1100] == source.piece("part-0000.parquet", 100, 1100)
    mixed_up.bucket.conditions = False
    mixed_up.set_mood(Mood("other bytes", 1, (way,)))
    with pytest.raises(AnswerError) as error:
        source.piece("part-0000.parquet", 100, 1100)
    assert said == str(error.value)


HOLDS = f"must hold {len(RIGHT)} bytes, as shards says; got"


@pytest.mark.parametrize(
    ("ways", "said"),
    [
        ([REPLICA], "got bytes of another file, as their ETag says, 1 time; "),
        ([CUT, BESIDE], "got other bytes of the file than were asked for, 1 time; "),
        ([MORE], f"{HOLDS} more; "),
        ([LESS], f"{HOLDS} "),
    ],
)
def test_a_whole_file_of_other_bytes(
    mixed_up: Store, dataset_of: Opened, ways: list[str], said: str, tmp_path: Path
) -> None:
    """It is refused, and never gets its name; nor what s3fs asks for after a connection was cut."""
    shards = ip.shard_sizes(f"{PLACE}/*.parquet", whole_files=True)
    fates, fate = iter(ways), mixed_up.fate
    mixed_up.fate = lambda key, span: (next(fates, ways[-1]), fate(key, span)[1])  # type: ignore[method-assign]
    assert said in refused(dataset_of(shards, tries=1))
    assert [] == [*tmp_path.glob("cache/*/shards/*")]


# The example of docs/examples: two nodes of two ranks, then one of three.


SCRIPT = ROOT / "docs" / "examples" / "shards_in_a_store.py"


def launch(nodes: int, ranks: int, folder: Path, *options: str) -> list[str]:
    """Run the example on nodes of this machine, each with a folder of its own; what was printed."""
    options = ("--cache-dir", str(folder / "node-{node}"), *options)
    forks().load("torch._dynamo")  # which the first optimizer imports
    started = forks().ranks(
        "tests.together.sharded_runs:run_script",
        folder,
        nodes * ranks,
        str(SCRIPT),
        *options,
        LOCAL_WORLD_SIZE=str(ranks),
    )
    results(started)
    return [line for rank in started for line in rank.log.read_text().splitlines()]


@pytest.mark.usefixtures("server")
def test_two_nodes_then_one(tmp_path: Path) -> None:
    """Stopped on two nodes of two ranks, resumed on one of three: each sample once, in all.

    Each node downloads no more than it reads, into a folder of half the dataset.
    """
    (tmp_path / "data").mkdir()
    random, first = np.random.default_rng(0), 0
    for number, rows in enumerate(random.integers(20, 60, 48).tolist()):
        ids, x = np.arange(first, first + rows), random.random(rows)
        noise = [random.bytes(400) for _ in ids]
        table = pa.table({"id": ids, "x": x, "y": 2 * x, "noise": noise})
        pq.write_table(table, tmp_path / "data" / f"{number:03}.parquet")
        first += rows
    store().put(f"{tmp_path}/data/", "bucket/example/", recursive=True)
    options = ["--store", "s3://bucket/example", "--checkpoint", str(tmp_path / "run.pt")]
    lines = launch(2, 2, tmp_path, *options, "--max-steps", "30")
    downloads = [int(n) for n in re.findall(r"2 ranks downloaded (\d+) samples", str(lines))]
    shards = ip.shard_sizes(tmp_path / "data" / "*.parquet", whole_files=True)
    order = ip.ShardShuffle(shards, lanes=8, stripe=192, seed=1)
    plan = ip.Plan(order, world_size=4, global_batch_size=24)
    for node, counted in enumerate(downloads):
        needed = ip.reads(plan, shards, 0, ranks=range(2 * node, 2 * node + 2), stop_step=30)
        of_all = ip.reads(plan, shards, 0, ranks=range(2 * node, 2 * node + 2))
        sizes = shards.sizes.array
        assert sizes[needed.shards].sum() <= counted <= sizes[of_all.shards].sum()
    assert 2 == len(downloads)
    assert f"4 ranks have read 720 of {first} samples" in lines
    lines = launch(1, 3, tmp_path, *options)
    assert f"3 ranks have read {first} of {first} samples" in lines
    assert "each was read 1 to 1 times" in lines
    assert [1] * first == torch.load(tmp_path / "run.pt")["times"].tolist()
    num_bytes = sum(shards.num_bytes)
    for node in range(2):
        kept = [*(tmp_path / f"node-{node}").glob("*/shards/*")]
        on_disk = sum(path.stat().st_blocks * 512 for path in kept)  # columns leave holes
        assert 0 < on_disk <= num_bytes // 2


# Two ranks in processes that have no torch.


NEEDED = ("numpy", "numpy.libs", "numba", "llvmlite", "llvmlite.libs", "pyarrow", "fsspec")
PLAN = "ip.Plan(ip.ShardShuffle(shards, lanes=4, stripe=64), world_size=2, global_batch_size=16)"
READ = f"""
import json, sys
from importlib.util import find_spec
import indexplan as ip
from indexplan_fetch import ShardLoader, open_parquet
assert find_spec("torch") is None
shards = ip.shard_sizes("data/*.parquet")
plan, rank = {PLAN}, int(sys.argv[1])
options = {{"num_epochs": 2, "cache_dir": "cache", "cache_bytes": 10**8, "ranks_per_node": 2}}
with ShardLoader(shards, open_parquet, plan, rank=rank, **options) as loader:
    ids = [[sample["id"] for sample in samples] for samples in loader]
    print(json.dumps([ids, loader.report().num_fetches]))
"""


def test_two_ranks_without_torch(tmp_path: Path) -> None:
    """Each reads its samples of the plan, and the two fetch each shard once between them."""
    for package in NEEDED:  # nothing else that is installed can be imported
        home = Path(np.__file__).parents[1] / package
        if home.exists():
            (tmp_path / "site" / package).parent.mkdir(exist_ok=True)
            (tmp_path / "site" / package).symlink_to(home)
    write_shards(tmp_path / "data", num=12)
    shards = ip.shard_sizes(tmp_path / "data" / "*.parquet")
    plan = eval(PLAN)  # noqa: S307 (the same)
    paths = [str(ROOT), str(ROOT / "adapters"), str(tmp_path / "site")]
    code = f"import sys; sys.path[:0] = {paths}\n{READ}"
    command = [sys.executable, "-I", "-S", "-c", code]
    ranks = [
        subprocess.Popen([*command, str(rank)], cwd=tmp_path, stdout=subprocess.PIPE)
        for rank in range(2)
    ]
    found = [json.loads(each.communicate()[0]) for each in ranks]
    for rank, (ids, _) in enumerate(found):
        assert [b.tolist() for epoch in range(2) for b in plan.batches(epoch, rank=rank)] == ids
    read = {shard for epoch in range(2) for shard in ip.reads(plan, shards, epoch=epoch).shards}
    assert len(read) == sum(num_fetches for _, num_fetches in found)
