"""What lies in cache_dir: damaged shards, others' links, and columns that Parquet is read for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indexplan as ip
from indexplan_fetch import ShardFile
from indexplan_torch import PlanLoader, ShardedDataset, open_parquet
from tests.support.children import NOBODY, become_nobody, in_child
from tests.together.sharded_runs import Opened, on_disk, refused, write_numbers

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


# Of Parquet files only the columns are fetched that are read.


EACH, GROUP = 90, 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five files of three row groups; most bytes are of columns that nobody reads."""
    path, random = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    for number in range(5):
        ids = np.arange(number * EACH, (number + 1) * EACH)
        fields: dict[str, Any] = {
            "noise": [random.bytes(2000) for _ in ids],
            "id": ids,
            "text": [f"sample {each}" for each in ids],
            "image": [{"bytes": random.bytes(500), "size": [int(each), 2]} for each in ids],
            "words": [[str(each)] * (each % 3) for each in ids.tolist()],
            "more": [random.bytes(2000) for _ in ids],
        }
        file = path / f"{number}.parquet"
        pq.write_table(pa.table(fields), file, row_group_size=GROUP, compression="none")
    return path


def chunks(file: Path, columns: list[str]) -> int:
    """Return the bytes of some columns in a file, by its own count."""
    found = pq.read_metadata(file)
    return sum(
        chunk.total_compressed_size
        for group in range(found.num_row_groups)
        for at in range(found.num_columns)
        for chunk in [found.row_group(group).column(at)]
        if any(f"{chunk.path_in_schema}.".startswith(f"{name}.") for name in columns)
    )


def read(data: ShardedDataset) -> list[dict[str, Any]]:
    """Read an epoch; return its samples by their indices."""
    order = ip.ShardShuffle(data.shards, lanes=2, stripe=20, seed=1)
    plan = ip.Plan(order, world_size=1, batch_size=10)
    found: dict[int, dict[str, Any]] = {}
    loader = PlanLoader(data, plan, collate_fn=list)
    for step, batch in enumerate(loader):
        found |= zip(plan.batch(0, step=step, rank=0).tolist(), batch, strict=True)
    return [found[index] for index in range(len(data))]


@pytest.mark.parametrize("whole_files", [False, True])
@pytest.mark.parametrize(
    "columns",
    [["id"], ["id", "text"], ["words"], ["text", "image"], ["image.size"], ["more", "noise"]],
)
def test_columns(folder: Path, dataset_of: Opened, columns: list[str], whole_files: bool) -> None:
    """Their values are the whole file's; their bytes, and those of the footers, are all that come.

    A footer is read with the 64 KiB at the end of its file.
    """
    shards = ip.shard_sizes(folder / "*.parquet", whole_files=whole_files)
    data = dataset_of(shards, partial(open_parquet, columns=columns), cache_bytes=None)
    files = sorted(folder.iterdir())
    tables = [pq.ParquetFile(file).read(columns=columns) for file in files]
    expected = [row for table in tables for row in table.to_pylist()]
    assert expected == read(data)
    report = data.report()
    # of a file's row groups, two may look at its footer at the same time
    looks, rest = divmod(report.num_bytes - sum(chunks(file, columns) for file in files), 2**16)
    assert 0 == rest
    assert len(files) <= looks <= len(shards)
    assert len(shards) == report.num_fetches
    if columns == ["id"]:
        assert on_disk(dataset_of.cache_dir) < sum(shards.num_bytes) / 3


def test_folders_of_other_columns(folder: Path, dataset_of: Opened) -> None:
    """What was fetched for other columns is not taken for these; for the same ones it is."""
    shards = ip.shard_sizes(folder / "*.parquet")
    for columns in (["id"], ["text"], None, ["text", "id"], ["id", "text"]):
        data = dataset_of(shards, partial(open_parquet, columns=columns))
        expected = pq.read_table(folder, columns=columns).to_pylist()
        assert expected == [data[index] for index in range(len(shards) * GROUP)]
    assert [15, 15, 15, 15, 0] == [each.report().num_fetches for each in dataset_of.made]


class Texts:
    """An open_shard of one's own."""

    columns = ("text",)

    def __call__(self, file: Any) -> Any:
        """Return the texts of a shard."""
        with pq.ParquetFile(file.path) as found:
            return found.read_row_group(file.part, columns=["text"])["text"].to_pylist()


def test_a_function_of_ones_own(folder: Path, dataset_of: Opened) -> None:
    """A function that tells its columns gets a file with these alone."""
    data = dataset_of(ip.shard_sizes(folder / "*.parquet"), Texts())
    assert "sample 77" == data[77]
    size = chunks(folder / "0.parquet", ["text"])
    assert size // 3 < data.report().num_bytes - 2**16 < size


def test_many_chunks(tmp_path: Path, dataset_of: Opened) -> None:
    """A file whose columns lie in hundreds of places is fetched, and known again."""
    table = pa.table({name: np.arange(300) for name in ("a", "b", "c")})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=1)
    shards = ip.shard_sizes(tmp_path / "a.parquet", whole_files=True)
    for _ in range(2):
        data = dataset_of(shards, partial(open_parquet, columns=["a", "c"]))
        assert {"a": 299, "c": 299} == data[299]
        data.stop()
    assert 0 == data.report().num_fetches
