"""Errors of ShardedDataset: what it is given, and what a store gives it."""

from __future__ import annotations

import os
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
from indexplan_torch import PlanLoader, ShardedDataset, ShardFile, open_parquet
from indexplan_torch.shards.sums import Sum, Sums
from indexplan_torch.shards.unzip import unzip
from tests.errors.catalogue.made import Case, without, written

RESTORE = "restore it, or read the sizes again with shard_sizes and build a new plan"


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


CASES: list[Case] = [
    (
        "no shards",
        lambda: dataset([3, 4]),
        "shards must be Shards; got [3, 4]; pass what shard_sizes returned",
    ),
    (
        "shards that are no files",
        lambda: dataset(shards(kind="zarr")),
        "shards must be files of Parquet, Arrow, .npy, MDS or wids, or row groups of Parquet; got "
        "zarr, whose shards are no single files; pass PlanLoader a dataset of your own with the "
        "same plan, whose sample i is zarr.open(path)[i]",
    ),
    (
        "shards that are parts of files",
        lambda: dataset(shards(kind="arrow", whole_files=False)),
        "shards must be files of Parquet, Arrow, .npy, MDS or wids, or row groups of Parquet; got "
        "parts of files of arrow; use shard_sizes(..., whole_files=True)",
    ),
    (
        "a frame",
        lambda: read(dataset(open_shard=lambda file: pd.DataFrame({0: np.load(file.path)}))),
        "open_shard must return rows that a position finds; got a DataFrame of pandas; return "
        'frame.to_dict("records"), or a list',
    ),
    (
        "shards without a path",
        lambda: dataset(ip.Shards.from_json(shards().to_json())),
        "shards must have a path; got none; use Shards.from_json(text, path=...)",
    ),
    (
        "shards without bytes",
        lambda: dataset(shards(num_bytes=[8128, 0])),
        "shards must have the size of each file in bytes; got none for b.npy; write the index "
        "again, with sizes",
    ),
    (
        "no function",
        lambda: dataset(open_shard="npy"),
        "open_shard must be a function of a ShardFile; got 'npy'; pass open_parquet, or one that "
        "returns the rows of a file",
    ),
    (
        "no bytes",
        lambda: dataset(cache_bytes=0),
        "cache_bytes must be an integer from 1; got 0; pass a positive number, or leave it out "
        "if it has a default",
    ),
    (
        "columns that are no list",
        lambda: dataset(of_parquet(), partial(open_parquet, columns="text")),
        "columns must be a list of names; got 'text'; pass such as ['text'], or leave it out for "
        "all",
    ),
    (
        "columns of an array",
        lambda: dataset(open_shard=partial(open_parquet, columns=["text"])),
        "columns must be left out where shards are not Parquet; got ['text'] for kind npy; read "
        "all of the file, and use what you need",
    ),
    (
        "a column that is not there",
        lambda: dataset(of_parquet(), partial(open_parquet, columns=["text", "id"])),
        "columns must be in each file of shards; got 'text', which ./c.parquet does not have; it "
        "has id, size",
    ),
    (
        "no seconds",
        lambda: dataset(stall_timeout=0),
        "stall_timeout must be a positive number of seconds; got 0; pass such as 60",
    ),
    (
        "no logger",
        lambda: dataset(on_metrics="wandb"),
        "on_metrics must be a function of a report; got 'wandb'; pass one that logs "
        "report.num_bytes and the like",
    ),
    (
        "a cache in a store",
        lambda: dataset(cache_dir="s3://bucket/cache"),
        "cache_dir must be a folder on this machine; got 's3://bucket/cache'; pass a path on "
        "its fastest disk",
    ),
    (
        "a file for a cache",
        lambda: read(dataset(in_memory(), cache_dir="a.npy")),
        f"cache_dir must be writable: {{here}}/a.npy/c25b7189dba2f7e1-{os.geteuid()}; got 'Not a "
        "directory'; check its permissions and its file system",
    ),
    (
        "ranks of unknown nodes",
        of_four_ranks,
        "ranks_per_node must be given where torchrun does not tell which ranks share a node; got 4 "
        "ranks of the plan; pass how many of them share cache_dir",
    ),
    (
        "other rows",
        lambda: read(dataset(open_shard=lambda file: np.load(file.path)[1:])),
        "open_shard must return the 1000 rows of shard 1, b.npy; got 999; return a row for each "
        "sample",
    ),
    (
        "a shard that is gone",
        lambda: changed(lambda path: path.unlink()),
        "shard 1, ./b.npy, must be fetched before its batch; got FileNotFoundError, 1 time; "
        "check the store and the credentials, then run again: whole shards are kept",
    ),
    (
        "a shard with other bytes",
        lambda: changed(lambda path: np.save(path, np.arange(999))),
        f"./b.npy must hold 8128 bytes, as shards says; got 8120; {RESTORE}",
    ),
    (
        "a shard with other samples",
        lambda: read(dataset(shards(sizes=[1000, 1001]))),
        "./b.npy must hold 1001 samples in 1 shard, as shards says; got 1000 in 1; " + RESTORE,
    ),
    (
        "a shard with another header",
        lambda: changed(other_values),
        "./b.npy must be the file that shards was made from; got one with as many bytes, but "
        f"another footer or header; {RESTORE}",
    ),
    (
        "a shard that was written again",
        lambda: changed(written_again),
        "./b.npy must be the file that shards was made from; got one that was written since; "
        + RESTORE,
    ),
    (
        "a damaged shard",
        lambda: changed(lambda path: path.write_bytes(bytes(8128))),
        f"./b.npy must be a npy file, as shards says; got one that is damaged; {RESTORE}",
    ),
    (
        "a shard that cannot be opened",
        lambda: read(stored(open_shard=lambda file: np.load(file.path)["x"])),
        "shard 1, memory://shards/b.npy, must be a file that open_shard opens; got "
        "IndexError('only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and "
        "integer or boolean arrays are valid indices') of {here}/cache/"
        f"c25b7189dba2f7e1-{os.geteuid()}/shards/00000001.npy, twice; check the file in its place, "
        "and what open_shard does with it",
    ),
    (
        "a shard that is compressed in another way",
        lambda: unzip(written("a.mds.lz4"), "a.mds.lz4", 9),
        "a.mds.lz4 must be compressed by zstd, br, gz, snappy or bz2; got another ending; write "
        "the shards again, or decompress them",
    ),
    (
        "a compressed shard without pyarrow",
        lambda: without("pyarrow", lambda: unzip(written("a.mds.zstd"), "a.mds.zstd", 9)),
        "a.mds.zstd needs pyarrow, to be decompressed; pip install 'indexplan[shards]'",
    ),
    (
        "a shard on a bad disk",
        lambda: read(spoilt()),
        "shard 1, memory://shards/b.npy, must be as it was fetched; got other bytes in "
        f"{{here}}/cache/c25b7189dba2f7e1-{os.geteuid()}/shards/00000001.npy, twice; check the "
        "disk and the memory of this machine, or pass another cache_dir",
    ),
    (
        "a folder that somebody else could write to",
        lambda: read(dataset(in_memory(), cache_dir=planted())),
        f"{{here}}/x/c25b7189dba2f7e1-{os.geteuid()} must be a folder that only you, user "
        f"{os.geteuid()}, can write to; got one of mode 777; delete it, or pass another cache_dir",
    ),
    (
        "a folder in which anybody replaces others",
        lambda: read(dataset(cache_dir=open_to_all("x"))),
        "cache_dir must be a folder in which other users cannot replace yours; got {here}/x, of "
        "mode 777; run chmod +t on it, or pass a folder of your own",
    ),
    (
        "a shard that does not fit",
        lambda: read(dataset(cache_bytes=4096)),
        "cache_bytes must be at least 8192, which shard 1 takes; got 4096; pass more, or an order "
        "that reads fewer shards at a time",
    ),
    (
        "a step that does not fit",
        too_small_for_a_step,
        "cache_bytes must be at least 16384, which the 2 shards that this node reads in one step "
        "take; got 12288; pass more, or an order that reads fewer shards at a time",
    ),
]
