"""Cures of ShardedDataset and ShardLoader, followed."""

from __future__ import annotations

import bz2
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import indexplan as ip
from indexplan_fetch.unzip import unzip
from indexplan_torch import PlanLoader, open_parquet
from tests.errors.catalogue.sharded import (
    closed,
    dataset,
    loader,
    of_parquet,
    open_to_all,
    planted,
    read,
    read_on,
    shards,
    stored,
)

OF_EIGHT = ip.Plan(ip.Shuffle(2000), world_size=8, batch_size=1)


def read_plan(data: Any, order: ip.Order, batch_size: int = 100) -> None:
    """Read a step of a plan, and end the thread that fetches."""
    try:
        next(iter(PlanLoader(data, ip.Plan(order, batch_size=batch_size))))
    finally:
        data._fetcher.stop()


def with_a_path() -> None:
    """Read shards from text, with their path."""
    read(dataset(ip.Shards.from_json(shards().to_json(), path=".")))


def counted_again(change: Callable[[], Any], size: int = 1000) -> None:
    """Read shards whose sizes are read again after a change."""
    shards()
    change()
    found = ip.shard_sizes("*.npy")
    data = dataset(found)
    assert len(data) == 1000 + size
    read_plan(data, ip.ShardShuffle(found))


def columns() -> None:
    """Read some columns of Parquet, or all."""
    for options in ({"columns": ["size"]}, {}):
        data = dataset(of_parquet(), partial(open_parquet, **options))
        try:
            assert data[1]["size"] == 4
        finally:
            data._fetcher.stop()  # type: ignore[union-attr]


def of_records(file: Any) -> Any:
    """Return the records of a frame."""
    return pd.DataFrame({"x": np.load(file.path)}).to_dict("records")


def sticky() -> None:
    """Make a cache in a folder of which others can't replace anything."""
    Path(open_to_all("x")).chmod(0o1777)
    read(dataset(cache_dir="x"))
    read(dataset(cache_dir="own"))


def elsewhere() -> None:
    """Delete a folder that others can write to, or pass another cache."""
    folder = next(Path(planted()).glob("*"))
    read(stored(cache_dir="other"))
    for each in folder.iterdir():
        each.unlink()
    folder.rmdir()
    read(stored(cache_dir="x"))


def enough_units() -> None:
    """Give each rank a unit, in each of the ways that the cure names."""
    plan = ip.Plan(ip.Shuffle(2000), world_size=9, global_batch_size=8)
    read_on(loader(plan.replace(global_batch_size=18), ranks_per_node=9))
    read_on(loader(plan.replace(world_size=8), ranks_per_node=8))


def unzipped() -> None:
    """Write a shard again, compressed in each way that the cure names and Python has."""
    Path("a.mds.bz2").write_bytes(bz2.compress(bytes(9)))
    unzip(Path("a.mds.bz2"), "a.mds.bz2", 9)


def in_parts() -> None:
    """Read shards that hold whole files, where a file is not a shard."""
    with pa.ipc.new_stream("a.arrow", pa.schema({"x": pa.int64()})) as to:
        for number in range(2):
            to.write_batch(pa.record_batch({"x": [number, number]}))
    found = ip.shard_sizes("a.arrow", whole_files=True)
    data = dataset(found, lambda file: pa.ipc.open_stream(file.path).read_all().to_pylist())
    read_plan(data, ip.ShardShuffle(found), batch_size=2)


def on_with_another() -> None:
    """Make another loader where the closed one stood."""
    made = closed()
    read_on(loader(OF_EIGHT.resume(made.cursor), ranks_per_node=8))


def decompressed() -> None:
    """Decompress a shard with pyarrow, which is installed here."""
    Path("a.mds.zstd").write_bytes(pa.compress(bytes(9), codec="zstd", asbytes=True))
    unzip(Path("a.mds.zstd"), "a.mds.zstd", 9)


def put_back() -> None:
    """Read once more when the shard is in its place."""
    shards()
    read(dataset())


CURED: dict[str, Callable[[], Any]] = {
    "shards that are parts of files": in_parts,
    "shards without bytes": lambda: read(dataset(shards(num_bytes=[8128, 8128]))),
    "a shard that is gone": put_back,
    "a compressed shard without pyarrow": decompressed,
    "a shard on a bad disk": lambda: read(stored(cache_dir="other")),
    "a loader that was closed": on_with_another,
    "no shards": lambda: read(dataset(shards())),
    "a frame": lambda: read(dataset(open_shard=of_records)),
    "shards without a path": with_a_path,
    "no function": lambda: [
        read(dataset()),
        dataset(of_parquet(), open_parquet),
    ],
    "no bytes": lambda: read(dataset(cache_bytes=10**5)),
    **dict.fromkeys(("columns that are no list", "a column that is not there"), columns),
    "columns of an array": lambda: read(dataset()),
    "no seconds": lambda: read(dataset(stall_timeout=60)),
    "no epochs": lambda: read_on(loader(OF_EIGHT, ranks_per_node=8, num_epochs=2)),
    "a cache in a store": lambda: read(dataset(cache_dir=Path("cache").absolute())),
    "a file for a cache": lambda: read(stored(cache_dir="a")),
    "ranks of unknown nodes": lambda: next(
        iter(
            PlanLoader(
                dataset(ranks_per_node=4),
                ip.Plan(ip.Shuffle(2000), world_size=4, batch_size=8),
                rank=0,
                world_size=4,
            )
        )
    ),
    **dict.fromkeys(("no rows", "other rows"), lambda: read(dataset())),
    "a shard with other bytes": lambda: counted_again(
        lambda: np.save("b.npy", np.arange(999)), size=999
    ),
    **dict.fromkeys(
        ("a shard with other samples", "a shard with another header", "a damaged shard"),
        lambda: counted_again(lambda: np.save("b.npy", np.arange(1000, dtype=np.int32))),
    ),
    "a shard that was written again": lambda: counted_again(lambda: os.utime("b.npy", (0, 0))),
    "a shard that cannot be opened": lambda: read(stored()),
    "a shard that is compressed in another way": unzipped,
    "a folder that somebody else could write to": elsewhere,
    "a folder in which anybody replaces others": sticky,
    "a shard that does not fit": lambda: read(dataset(cache_bytes=8192)),
    "a step that does not fit": lambda: [
        read_plan(dataset(cache_bytes=16384), ip.Shuffle(2000)),
        read_plan(dataset(cache_bytes=3 * 4096), ip.BlockShuffle(2000, 1000)),
    ],
    "a loader without a plan": lambda: read_on(
        loader(ip.Plan(ip.Shuffle(2000), world_size=1, batch_size=2), ranks_per_node=1)
    ),
    "a loader of other samples": lambda: read_on(
        loader(ip.Plan(ip.ShardShuffle(shards()), world_size=1, batch_size=2), ranks_per_node=1)
    ),
    "a loader of no rank of the plan": lambda: read_on(
        loader(
            ip.Plan(ip.Shuffle(2000), world_size=9, batch_size=1).replace(world_size=10),
            rank=9,
            ranks_per_node=10,
        )
    ),
    "a loader of too few samples for the ranks": enough_units,
    "a loader that is pickled": lambda: read_on(loader(OF_EIGHT, ranks_per_node=8, rank=1)),
}
