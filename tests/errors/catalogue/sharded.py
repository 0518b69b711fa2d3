"""What errors of ShardedDataset and ShardLoader are provoked with."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import indexplan as ip
from indexplan_fetch import ShardFile, ShardLoader
from indexplan_fetch.sums import Sums
from indexplan_fetch.unzip import unzip
from indexplan_torch import PlanLoader, ShardedDataset, open_parquet
from tests.errors.catalogue.made import without, written


def shards(**changes: Any) -> ip.Shards:
    """Return two arrays in files, or what somebody says of them."""
    for name in ("a", "b"):
        np.save(f"{name}.npy", np.arange(1000))
    found = ip.shard_sizes("*.npy")
    return ip.Shards.from_dict({**found.to_dict(), **changes}, found.path)


def rows_of(file: ShardFile) -> Any:
    """Return the rows of a file."""
    return np.load(file.path)


def of_parquet() -> ip.Shards:
    """Return a file of Parquet."""
    pq.write_table(pa.table({"id": [1, 2], "size": [3, 4]}), "c.parquet")
    return ip.shard_sizes("c.parquet")


def dataset(of: Any = None, open_shard: Any = rows_of, **changes: Any) -> ShardedDataset:
    """Make a dataset."""
    options: dict[str, Any] = {"cache_dir": "cache", "cache_bytes": 10**6, "tries": 1, **changes}
    return ShardedDataset(shards() if of is None else of, open_shard, **options)


def read(data: ShardedDataset) -> Any:
    """Read a sample, and end the thread that fetches."""
    try:
        return data[1500]
    finally:
        if data._fetcher is not None:
            data._fetcher.stop()


def in_memory() -> ip.Shards:
    """Return shards whose path is the same on every machine."""
    return ip.Shards.from_dict(shards().to_dict(), "memory://shards")


def changed(change: Callable[[Path], Any]) -> Any:
    """Read a file that was changed since its shards were counted."""
    data = dataset()
    change(Path("b.npy"))
    return read(data)


def stored(**changes: Any) -> ShardedDataset:
    """Make a dataset of two arrays in a store."""
    data = dataset(in_memory(), **changes)
    store = fsspec.filesystem("memory")
    for name in ("a", "b"):
        store.pipe_file(f"/shards/{name}.npy", Path(f"{name}.npy").read_bytes())
    return data


def loader(plan: Any = None, **changes: Any) -> ShardLoader:
    """Make a loader without torch."""
    options: dict[str, Any] = {"rank": 0, "num_epochs": 1, "cache_dir": "cache", **changes}
    plan = ip.Plan(ip.Shuffle(2000), world_size=9, batch_size=1) if plan is None else plan
    return ShardLoader(shards(), rows_of, plan, **options)
