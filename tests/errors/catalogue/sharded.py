"""Errors of ShardedDataset and ShardLoader: what they are given, what a store gives them."""

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
from indexplan_fetch.sums import Sum, Sums
from indexplan_fetch.unzip import unzip
from indexplan_torch import PlanLoader, ShardedDataset, open_parquet
from tests.errors.catalogue.made import Case, without, written


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


class Spoiling(Sums):
    """Notes other digests than those of the shards."""

    def write(self, name: str, value: Sum) -> None:
        """Note a digest."""
        super().write(name, value._replace(sha256="0" * 64))


def spoilt() -> ShardedDataset:
    """Read arrays of a store on a disk that changes what is written."""
    data = stored()
    data.folder.sums = Spoiling(data.folder.sums.folder)
    return data


def written_again(path: Path) -> None:
    """Write other values, at another time."""
    np.save(path, np.arange(1000)[::-1])
    os.utime(path, (0, 0))


def open_to_all(name: str) -> str:
    """Make a folder in which everybody may do everything."""
    Path(name).mkdir()
    Path(name).chmod(0o777)
    return name


def planted() -> str:
    """Make a folder that somebody else may write to, in the place of a cache."""
    folder = dataset(in_memory(), cache_dir="x").folder.path
    written(str(folder / "y"))
    folder.chmod(0o777)
    return "x"


def of_four_ranks() -> Any:
    """Begin a pass of a plan of four ranks, without torchrun."""
    plan = ip.Plan(ip.Shuffle(2000), world_size=4, batch_size=8)
    return next(iter(PlanLoader(dataset(), plan, rank=0, world_size=4)))


def too_small_for_a_step() -> Any:
    """Read a plan whose steps read both shards, with room for one."""
    data = dataset(cache_bytes=3 * 4096)
    try:
        return next(iter(PlanLoader(data, ip.Plan(ip.Shuffle(2000), batch_size=100))))
    finally:
        assert data._fetcher is not None
        data._fetcher.stop()


def other_values(path: Path) -> None:
    """Write as many bytes of another type."""
    np.save(path, np.arange(1000, dtype=np.uint64))


def loader(plan: Any = None, **changes: Any) -> ShardLoader:
    """Make a loader without torch."""
    options: dict[str, Any] = {"rank": 0, "num_epochs": 1, "cache_dir": "cache", **changes}
    plan = ip.Plan(ip.Shuffle(2000), world_size=9, batch_size=1) if plan is None else plan
    return ShardLoader(shards(), rows_of, plan, **options)


def read_on(made: ShardLoader) -> Any:
    """Read the next step, and close the loader."""
    try:
        return next(made)
    finally:
        made.close()


def closed() -> ShardLoader:
    """Make a loader that is closed."""
    made = loader(ranks_per_node=1)
    made.close()
    return made


def to_be_pickled() -> Any:
    """Pickle a loader."""
    with loader(ranks_per_node=1) as made:
        return pickle.dumps(made)


CASES: list[Case] = [
    ("no shards", lambda: dataset([3, 4])),
    ("shards that are parts of files", lambda: dataset(shards(kind="arrow", whole_files=False))),
    (
        "a frame",
        lambda: read(dataset(open_shard=lambda file: pd.DataFrame({0: np.load(file.path)}))),
    ),
    ("shards without a path", lambda: dataset(ip.Shards.from_json(shards().to_json()))),
    ("shards without bytes", lambda: dataset(shards(num_bytes=[8128, 0]))),
    ("no function", lambda: dataset(open_shard="npy")),
    ("no bytes", lambda: dataset(cache_bytes=0)),
    (
        "columns that are no list",
        lambda: dataset(of_parquet(), partial(open_parquet, columns="text")),
    ),
    ("columns of an array", lambda: dataset(open_shard=partial(open_parquet, columns=["text"]))),
    (
        "a column that is not there",
        lambda: dataset(of_parquet(), partial(open_parquet, columns=["text", "id"])),
    ),
    ("no seconds", lambda: dataset(stall_timeout=0)),
    ("no epochs", lambda: loader(ranks_per_node=9, num_epochs=None)),
    ("a cache in a store", lambda: dataset(cache_dir="s3://bucket/cache")),
    ("a file for a cache", lambda: read(dataset(in_memory(), cache_dir="a.npy"))),
    ("ranks of unknown nodes", of_four_ranks),
    ("no rows", lambda: read(dataset(open_shard=lambda _: None))),
    ("other rows", lambda: read(dataset(open_shard=lambda file: np.load(file.path)[1:]))),
    ("a shard that is gone", lambda: changed(lambda path: path.unlink())),
    ("a shard with other bytes", lambda: changed(lambda path: np.save(path, np.arange(999)))),
    ("a shard with other samples", lambda: read(dataset(shards(sizes=[1000, 1001])))),
    ("a shard with another header", lambda: changed(other_values)),
    ("a shard that was written again", lambda: changed(written_again)),
    ("a damaged shard", lambda: changed(lambda path: path.write_bytes(bytes(8128)))),
    (
        "a shard that cannot be opened",
        lambda: read(stored(open_shard=lambda file: np.load(file.path)["x"])),
    ),
    (
        "a shard that is compressed in another way",
        lambda: unzip(written("a.mds.lz4"), "a.mds.lz4", 9),
    ),
    (
        "a compressed shard without pyarrow",
        lambda: without("pyarrow", lambda: unzip(written("a.mds.zstd"), "a.mds.zstd", 9)),
    ),
    ("a shard on a bad disk", lambda: read(spoilt())),
    (
        "a folder that somebody else could write to",
        lambda: read(dataset(in_memory(), cache_dir=planted())),
    ),
    (
        "a folder in which anybody replaces others",
        lambda: read(dataset(cache_dir=open_to_all("x"))),
    ),
    ("a shard that does not fit", lambda: read(dataset(cache_bytes=4096))),
    ("a step that does not fit", too_small_for_a_step),
    ("a loader without a plan", lambda: loader(ip.Shuffle(2000))),
    (
        "a loader of other samples",
        lambda: loader(ip.Plan(ip.Shuffle(1999), world_size=1, batch_size=2)),
    ),
    ("a loader of no rank of the plan", lambda: loader(rank=9)),
    (
        "a loader of too few samples for the ranks",
        lambda: read_on(
            loader(ip.Plan(ip.Shuffle(2000), world_size=9, global_batch_size=8), ranks_per_node=9)
        ),
    ),
    ("a loader that was closed", lambda: next(closed())),
    ("a loader that is pickled", to_be_pickled),
]
