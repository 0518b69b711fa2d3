"""Sizes of shards in an object store: the same as here, and only their ends are asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import indexplan as ip
from tests.support.remote import server, store

__all__ = ["server"]  # a fixture


@pytest.mark.usefixtures("server")
def test_shards_in_s3(tmp_path: Path) -> None:
    """A glob and a folder of Parquet, and a .npy file; a changed one is noticed."""
    rows = pa.table({"id": np.arange(250)})
    for name in ("x/a.parquet", "y/b.parquet"):
        (tmp_path / name).parent.mkdir()
        pq.write_table(rows, tmp_path / name, row_group_size=100)
    np.save(tmp_path / "rows.npy", np.zeros((7, 3)))
    store().put(str(tmp_path), "bucket/shards", recursive=True)
    here = ip.shard_sizes(tmp_path / "**/*.parquet")
    assert [100, 100, 50] * 2 == here.sizes.array.tolist()
    for pattern in ("**/*.parquet", "*/*.parquet"):
        assert here == ip.shard_sizes(f"s3://bucket/shards/{pattern}")
    assert ip.shard_sizes(tmp_path / "x") == ip.shard_sizes("s3://bucket/shards/x")
    assert [7] == ip.shard_sizes("s3://bucket/shards/rows.npy").sizes.array.tolist()
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=50)
    store().put(str(tmp_path / "a.parquet"), "bucket/shards/x/a.parquet")
    there = ip.shard_sizes("s3://bucket/shards/**/*.parquet")
    with pytest.raises(ip.PlanFileError, match="sizes of files changed"):
        there.identity.check_same(here.identity)
