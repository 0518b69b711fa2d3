"""Files that are replaced while shards of them are fetched, and answers that are too short."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indexplan as ip
from indexplan_fetch import ShardFile
from indexplan_torch import open_parquet
from tests.support.remote import server, store
from tests.together.sharded_runs import Opened, at, refused

__all__ = ["server"]  # a fixture

RESTORE = "restore it, or read the sizes again with shard_sizes and build a new plan"
SINCE = f"must be the file that shards was made from; got one that was written since; {RESTORE}"


def write(path: Path, first: int) -> None:
    """Write 1,000 rows in ten row groups; the footer is the same whatever the rows are."""
    rows = pa.table({"id": np.arange(first, first + 1000)})
    options: dict[str, Any] = {"compression": "none", "write_statistics": False}
    pq.write_table(rows, path, row_group_size=100, use_dictionary=False, **options)


@pytest.mark.parametrize("stamped", [True, False])
@pytest.mark.parametrize("whole_files", [True, False])
def test_rewritten_file(
    dataset_of: Opened, tmp_path: Path, stamped: bool, whole_files: bool
) -> None:
    """A file written again with the same footer is refused, until its sizes are read again."""
    for name in ("a", "b"):
        write(tmp_path / f"{name}.parquet", 0)
    options: dict[str, Any] = {"whole_files": whole_files}
    shards = ip.shard_sizes(tmp_path / "*.parquet", **options)
    if not stamped:
        fields = {**shards.to_dict()}
        shards = ip.Shards.from_dict({k: fields[k] for k in fields if "stamp" not in k}, tmp_path)
    data = dataset_of(shards, open_parquet)
    assert (5, 7) == (data[5]["id"], data[1007]["id"])
    write(tmp_path / "a.parquet", 10**6)
    os.utime(tmp_path / "a.parquet", ns=(0, 123456789))
    assert 7 == data[1007]["id"]
    if whole_files:  # that is here already, as it was
        assert 555 == data[555]["id"]
    else:
        assert f"shard 5, {tmp_path}/a.parquet, {SINCE}" == refused(data, 555)
    dataset_of.end()
    now = ip.shard_sizes(tmp_path / "*.parquet", **options)
    assert shards == now
    assert 10**6 + 555 == dataset_of(now, open_parquet)[555]["id"]


def test_other_values_since_the_sizes(dataset_of: Opened, tmp_path: Path) -> None:
    """An array of other values in the same shape is refused, and never gets a shard's name."""
    np.save(tmp_path / "a.npy", np.arange(100))
    shards = ip.shard_sizes(tmp_path / "a.npy")
    np.save(tmp_path / "a.npy", np.arange(100)[::-1])
    os.utime(tmp_path / "a.npy", ns=(0, 123456789))
    assert f"{tmp_path}/a.npy {SINCE}" == refused(dataset_of(shards), 3)
    assert [] == [*tmp_path.glob("cache/*/shards/*")]


def test_rewritten_in_a_store(server: str, dataset_of: Opened, tmp_path: Path) -> None:
    """A store's tags are noted with the sizes, and tell that a file was written again."""
    assert server
    for number, place in ((0, "before"), (10**6, "after")):
        (tmp_path / place).mkdir()
        write(tmp_path / place / "a.parquet", number)
    before, after = ((tmp_path / each / "a.parquet").read_bytes() for each in ("before", "after"))
    assert len(before) == len(after)
    url = "s3://bucket/rewritten/a.parquet"
    store().pipe_file(url, before)
    shards = at(ip.shard_sizes(url), "s3://bucket/rewritten")
    data = dataset_of(shards, open_parquet)
    assert 5 == data[5]["id"]
    store().pipe_file(url, after)
    assert f"shard 5, {url}, {SINCE}" == refused(data, 555)
    dataset_of.end()
    assert f"shard 5, {url}, {SINCE}" == refused(dataset_of(shards, open_parquet), 555)
    store().pipe_file(url, before)
    assert 555 == dataset_of(shards, open_parquet)[555]["id"]


def test_short_answers(server: str, dataset_of: Opened, tmp_path: Path) -> None:
    """A piece of a file with fewer bytes than were asked for is refused, not filled with zeros."""
    assert server
    write(tmp_path / "a.parquet", 0)
    url = "s3://bucket/shorter_download/a.parquet"
    store().put(str(tmp_path / "a.parquet"), url)
    shards = at(ip.shard_sizes(tmp_path / "a.parquet"), "s3://bucket/shorter_download")
    num_bytes = shards.num_bytes[0]
    assert refused(dataset_of(shards, open_parquet), 555) == (
        f"shard 5, {url}, must be fetched before its batch; got {num_bytes - 100} bytes instead of "
        f"the {num_bytes} asked for, 2 times; check the store and the credentials, then run again: "
        "whole shards are kept"
    )


def table_of(file: ShardFile) -> Any:
    """Return a table of pyarrow, whose own index finds columns."""
    return pq.read_table(file.path)


def batch_of(file: ShardFile) -> Any:
    """Return a batch of pyarrow."""
    return pq.read_table(file.path).to_batches()[0]


@pytest.mark.parametrize("open_shard", [table_of, batch_of])
def test_table(dataset_of: Opened, tmp_path: Path, open_shard: Any) -> None:
    """Rows of a table are dicts, though as many columns as rows would have a length that fits."""
    columns = {str(number): [10 * number, 10 * number + 1] for number in range(2)}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    shards = ip.shard_sizes(tmp_path / "a.parquet", whole_files=True)
    assert {"0": 1, "1": 11} == dataset_of(shards, open_shard)[1]


def test_page_checksums(dataset_of: Opened, tmp_path: Path) -> None:
    """A value that was changed in the store is found by its page's checksum, if it has one."""
    path = tmp_path / "a.parquet"
    rows = pa.table({"id": np.arange(1000)})
    options: dict[str, Any] = {"compression": "none", "use_dictionary": False}
    pq.write_table(rows, path, write_page_checksum=True, **options)
    data = path.read_bytes()
    at = data.index(np.int64(555).tobytes())
    path.write_bytes(data[:at] + b"\0" + data[at + 1 :])
    message = refused(dataset_of(ip.shard_sizes(path), open_parquet), 3)
    assert message.startswith(f"shard 0, {path}, must be a file that open_shard opens; got OSError")
    assert "CRC checksum verification failed" in message
