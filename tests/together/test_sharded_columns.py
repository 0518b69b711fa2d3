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
from tests.together.sharded_runs import on_disk

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
def test_columns(
    folder: Path,
    made: list[ShardedDataset],
    tmp_path: Path,
    columns: list[str],
    whole_files: bool,
) -> None:
    """Their values are the whole file's; their bytes, and those of the footers, are all that come.

    A footer is read with the 64 KiB at the end of its file.
    """
    shards = ip.shard_sizes(folder / "*.parquet", whole_files=whole_files)
    opener = partial(open_parquet, columns=columns)
    made.append(ShardedDataset(shards, opener, cache_dir=tmp_path))
    files = sorted(folder.iterdir())
    tables = [pq.ParquetFile(file).read(columns=columns) for file in files]
    expected = [row for table in tables for row in table.to_pylist()]
    assert expected == read(made[0])
    report = made[0].report()
    # of a file's row groups, two may look at its footer at the same time
    looks, rest = divmod(report.num_bytes - sum(chunks(file, columns) for file in files), 2**16)
    assert 0 == rest
    assert len(files) <= looks <= len(shards)
    assert len(shards) == report.num_fetches
    if columns == ["id"]:
        assert on_disk(tmp_path) < sum(shards.num_bytes) / 3


def test_folders_of_other_columns(folder: Path, made: list[ShardedDataset], tmp_path: Path) -> None:
    """What was fetched for other columns is not taken for these; for the same ones it is."""
    shards = ip.shard_sizes(folder / "*.parquet")
    for columns in (["id"], ["text"], None, ["text", "id"], ["id", "text"]):
        opener = partial(open_parquet, columns=columns)
        made.append(ShardedDataset(shards, opener, cache_dir=tmp_path, cache_bytes=10**8))
        expected = pq.read_table(folder, columns=columns).to_pylist()
        assert expected == [made[-1][index] for index in range(len(shards) * GROUP)]
    assert [15, 15, 15, 15, 0] == [each.report().num_fetches for each in made]


class Texts:
    """An open_shard of one's own."""

    columns = ("text",)

    def __call__(self, file: Any) -> Any:
        """Return the texts of a shard."""
        with pq.ParquetFile(file.path) as found:
            return found.read_row_group(file.part, columns=["text"])["text"].to_pylist()


def test_a_function_of_ones_own(folder: Path, made: list[ShardedDataset], tmp_path: Path) -> None:
    """A function that tells its columns gets a file with these alone."""
    shards = ip.shard_sizes(folder / "*.parquet")
    made.append(ShardedDataset(shards, Texts(), cache_dir=tmp_path))
    assert "sample 77" == made[0][77]
    size = chunks(folder / "0.parquet", ["text"])
    assert size // 3 < made[0].report().num_bytes - 2**16 < size


def test_a_column_of_the_first_file_alone(made: list[ShardedDataset], tmp_path: Path) -> None:
    """A column that a later file does not have is refused when it is fetched, by its name."""
    for name, column in (("a", "x"), ("b", "y")):
        pq.write_table(pa.table({column: [1, 2], "z": [3, 4]}), tmp_path / f"{name}.parquet")
    shards = ip.shard_sizes(tmp_path / "*.parquet")
    opener = partial(open_parquet, columns=["x"])
    made.append(ShardedDataset(shards, opener, cache_dir=tmp_path / "cache", tries=1))
    assert {"x": 2} == made[0][1]
    with pytest.raises(ip.IndexPlanError) as error:
        made[0][2]
    assert str(error.value) == (
        f"columns must be in each file of shards; got 'x', which {tmp_path}/b.parquet does not "
        "have; it has y, z"
    )


def test_many_chunks(tmp_path: Path, made: list[ShardedDataset]) -> None:
    """A file whose columns lie in hundreds of places is fetched, and known again."""
    table = pa.table({name: np.arange(300) for name in ("a", "b", "c")})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=1)
    shards = ip.shard_sizes(tmp_path / "a.parquet", whole_files=True)
    opened = partial(open_parquet, columns=["a", "c"])
    for _ in range(2):
        made.append(ShardedDataset(shards, opened, cache_dir=tmp_path / "cache"))
        assert {"a": 299, "c": 299} == made[-1][299]
        made[-1].stop()
    assert 0 == made[-1].report().num_fetches
