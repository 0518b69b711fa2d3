"""Which columns of Parquet files are fetched, and where in a file they are."""

from __future__ import annotations

from functools import partial
from typing import Any

from indexplan import IndexPlanError, Shards
from indexplan.errors import invalid, shown
from indexplan_fetch.opening import open_parquet

Spans = list[tuple[int, int]]


def columns_of(open_shard: Any, shards: Shards) -> tuple[str, ...] | None:
    """Return the columns that an open_shard reads, sorted; None if it reads all, or does not tell.

    Raises
    ------
    IndexPlanError
        If they are no names, or the shards are not Parquet.
    """
    columns = getattr(open_shard, "columns", None)
    if isinstance(open_shard, partial) and open_shard.func is open_parquet:
        columns = open_shard.keywords.get("columns")
    if columns is None:
        return None
    names = list(columns) if isinstance(columns, list | tuple) else []
    if not names or not all(isinstance(each, str) and each for each in names):
        raise invalid(
            "columns", "a list of names", columns, "pass such as ['text'], or leave it out for all"
        )
    if shards.kind != "parquet":
        raise IndexPlanError(
            "columns",
            "must be left out where shards are not Parquet",
            f"{shown(columns)} for kind {shards.kind}",
            "read all of the file, and use what you need",
        )
    return tuple(sorted(set(names)))


def missing(metadata: Any, columns: tuple[str, ...] | None) -> str | None:
    """Return the first of some columns that a file does not have; None if it has all."""
    leaves = _leaves(metadata)
    for name in columns or ():
        if not any(_is_in(leaf, name) for leaf in leaves):
            return name
    return None


def spans_of(metadata: Any, number: int, columns: tuple[str, ...] | None) -> Spans:
    """Return where in a file a row group's columns are; those one after another in one span."""
    group, found = metadata.row_group(number), []
    for at, leaf in enumerate(_leaves(metadata)):
        if columns is None or any(_is_in(leaf, name) for name in columns):
            chunk = group.column(at)
            start = min(chunk.data_page_offset, chunk.dictionary_page_offset or 2**63)
            found.append((start, start + chunk.total_compressed_size))
    return merged(found)


def merged(spans: Spans) -> Spans:
    """Return spans without those that begin where, or before, another ends."""
    found: Spans = []
    for start, stop in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(stop, found[-1][1])
        else:
            found.append((start, stop))
    return found


def _leaves(metadata: Any) -> list[str]:
    """Return the paths of all columns that hold values, such as `image.bytes` in `image`."""
    return [metadata.schema.column(at).path for at in range(metadata.num_columns)]


def _is_in(leaf: str, name: str) -> bool:
    return leaf == name or leaf.startswith(f"{name}.")
