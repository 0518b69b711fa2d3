"""Check the arguments of ShardedDataset."""

from __future__ import annotations

import os
from typing import Any

from indexplan import IndexPlanError, Shards
from indexplan_torch.arguments import integer, shown
from indexplan_torch.shards.source import FETCHED


def check_shards(shards: Any) -> None:
    """Refuse what is no Shards, or cannot be fetched."""
    if not isinstance(shards, Shards):
        raise IndexPlanError(
            f"shards must be Shards; got {shown(shards)}; pass what shard_sizes returned"
        )
    if shards.kind not in FETCHED:
        of_lance = shards.kind == "lance"
        sample = "lance.dataset(path).take([i])" if of_lance else "zarr.open(path)[i]"
        raise IndexPlanError(
            "shards must be files of Parquet, Arrow, .npy, MDS or wids, or row groups of Parquet; "
            f"got {shards.kind}, whose shards are no single files; pass PlanLoader a dataset of "
            f"your own with the same plan, whose sample i is {sample}"
        )
    if not (shards.whole_files or shards.kind == "parquet"):
        raise IndexPlanError(
            "shards must be files of Parquet, Arrow, .npy, MDS or wids, or row groups of Parquet; "
            f"got parts of files of {shards.kind}; use shard_sizes(..., whole_files=True)"
        )
    if not shards.path:
        raise IndexPlanError(
            "shards must have a path; got none; use Shards.from_json(text, path=...)"
        )
    if 0 in shards.num_bytes:
        name = shards.files[shards.num_bytes.index(0)]
        raise IndexPlanError(
            f"shards must have the size of each file in bytes; got none for {name}; write the "
            "index again, with sizes"
        )


def count(name: str, value: Any) -> int:
    """Return an integer from 1."""
    number = integer(value)
    if number is None or number < 1:
        raise IndexPlanError(
            f"{name} must be an integer from 1; got {shown(value)}; pass a positive number, or "
            "leave it out if it has a default"
        )
    return number


def seconds(name: str, value: Any) -> float:
    """Return a positive number of seconds."""
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
    if not 0 < number < float("inf"):
        raise IndexPlanError(
            f"{name} must be a positive number of seconds; got {shown(value)}; pass such as 60"
        )
    return float(number)


def path_of(cache_dir: Any) -> str:
    """Return the path of a folder on this machine."""
    try:
        path = os.fspath(cache_dir)
    except TypeError:
        path = None
    if not isinstance(path, str) or "\0" in path or "://" in path:
        raise IndexPlanError(
            f"cache_dir must be a folder on this machine; got {shown(cache_dir)}; pass a path on "
            "its fastest disk"
        )
    return path
