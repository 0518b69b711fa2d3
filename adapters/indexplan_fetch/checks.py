"""Check the arguments of a loader or dataset of shards."""

from __future__ import annotations

import os
from typing import Any

from indexplan import IndexPlanError, Shards
from indexplan.errors import as_integer, invalid


def check_shards(shards: Any) -> None:
    """Refuse what is no Shards, or cannot be fetched."""
    if not isinstance(shards, Shards):
        raise invalid("shards", "Shards", shards, "pass what shard_sizes returned")
    if not (shards.whole_files or shards.kind == "parquet"):
        raise IndexPlanError(
            "shards",
            "must be files, or row groups of Parquet",
            f"parts of files of {shards.kind}",
            "use shard_sizes(..., whole_files=True)",
        )
    if not shards.path:
        raise IndexPlanError(
            "shards", "must have a path", "none", "use Shards.from_json(text, path=their_folder)"
        )
    if 0 in shards.num_bytes:
        name = shards.files[shards.num_bytes.index(0)]
        raise IndexPlanError(
            "shards",
            "must have the size of each file in bytes",
            f"none for {name}",
            "write the index again, with sizes",
        )


def count(name: str, value: Any) -> int:
    """Return an integer from 1."""
    number = as_integer(value)
    if number is None or number < 1:
        raise invalid(
            name,
            "an integer from 1",
            value,
            "pass a positive number, or leave it out if it has a default",
        )
    return number


def seconds(name: str, value: Any) -> float:
    """Return a positive number of seconds."""
    try:
        number = float(value) if isinstance(value, int | float) else 0.0
    except OverflowError:  # an integer of 400 digits
        number = 0.0
    if isinstance(value, bool) or not 0 < number < float("inf"):
        raise invalid(name, "a positive number of seconds", value, "pass such as 60")
    return number


def path_of(cache_dir: Any) -> str:
    """Return the path of a folder on this machine."""
    try:
        path = os.fspath(cache_dir)
        os.fsencode(path)
    except Exception:  # not a path, or one with a wrong __fspath__ or a lone surrogate
        path = None
    if not isinstance(path, str) or "\0" in path or "://" in path:
        raise invalid(
            "cache_dir", "a folder on this machine", cache_dir, "pass a path on its fastest disk"
        )
    return path
