"""Of Parquet files only the columns are fetched that are read."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indexplan as ip
from indexplan_torch import PlanLoader, ShardedDataset, open_parquet
from tests.together.sharded_runs import Opened, on_disk

ROWS, GROUP = 90, 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five files of three row groups; most bytes are of columns that nobody reads."""
    path, random = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    for number in range(5):
        ids = np.arange(number * ROWS, (number + 1) * ROWS)
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
