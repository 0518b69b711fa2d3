"""shard_sizes: read how many samples the shards of a dataset hold, in several formats."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import DTypeLike

from indexplan.canonical import canonical_json
from indexplan.errors import PlanFileError, check_callable, integer, invalid
from indexplan.keywords import named
from indexplan.orders.columns import Column
from indexplan.shards.by_file import (
    FORMATS,
    SUFFIXES,
    File,
    Footer,
    Format,
    digest_of,
    kind_of,
    read_raw,
)
from indexplan.shards.by_index import ENERGON, INDEXES, STATS, Listed, read_json, read_stats
from indexplan.shards.location import Found, Local, Location, location_of, within
from indexplan.shards.shards import FORMAT, Shards

COUNTS = "pass ShardShuffle a list of how many samples each shard holds"
NUM_THREADS = 16  # more than there are cores, as they wait for a disk or a store


@named
def shard_sizes(
    path: str | os.PathLike[str],
    *,
    kind: str | None = None,
    whole_files: bool = False,
    dtype: DTypeLike | None = None,
    num_threads: int = NUM_THREADS,
    progress: Callable[[int, int], None] | None = None,
) -> Shards:
    """Find a dataset's shards, and read how many samples each of them holds.

    Pass the result to `ShardShuffle`; `save` and `load` recognise the dataset by it. Only footers,
    headers and indexes are read, except that a tar in a store is read whole, so keep the result
    (`Shards.to_json`). Parquet files need pyarrow, which `indexplan[shards]` installs, and URLs
    `indexplan[remote]`. For other formats, such as zarr and Lance, pass `ShardShuffle` a list of
    how many samples each shard holds.

    Parameters
    ----------
    path : str or path-like
        A glob, a folder, a file or an index, on this machine or at a URL: files of Parquet, Arrow
        IPC (`.arrow`, `.feather`), `.npy`, `.tar` or `.array_record`, by name; a Hugging Face
        dataset's folder, as `save_to_disk` wrote it; MosaicML Streaming's folder or `index.json`;
        the index of WebDataset's wids; a folder with Energon's `.nv-meta`, with img2dataset's
        `_stats.json` of each tar, or with a `sizes.json` of samples by file name, whatever the
        files are; or a `.json` file with what `Shards.to_json` returned. Names that begin with . or
        _ are left out of folders.
    kind : str, optional
        The format of files, such as "parquet", if their names don't say it.
    whole_files : bool, default False
        Whether a Parquet or Arrow file is one shard; else each row group or record batch is.
    dtype : dtype, optional
        The dtype of raw numbers without a header, such as "uint16" for tokens of Dolma, OLMo
        (`.npy`) or nanoGPT and Megatron (`.bin`). A file is a shard, and each number a sample. A
        wrong dtype gives wrong numbers, and nothing can detect it.
    num_threads : int, default 16
        How many files are read at the same time.
    progress : callable, optional
        Called as progress(files_read, files_in_all), in the calling thread.

    Returns
    -------
    Shards
        In the order of the dataset's samples.

    Raises
    ------
    PlanFileError
        If a file cannot be read, is damaged, or is not what its index says.
    IndexPlanError
        If an argument breaks its rule; if there are no shards, or they are of several formats or of
        an unknown one; if a file is named twice, or no shard holds a sample; or if a package is
        missing.

    Examples
    --------
    >>> import indexplan as ip, pyarrow as pa, pyarrow.parquet as pq
    >>> pq.write_table(pa.table({"id": range(250)}), "a.parquet", row_group_size=100)
    >>> shards = ip.shard_sizes("*.parquet")
    >>> print(shards.names, shards.sizes.array)
    ('a.parquet#0', 'a.parquet#1', 'a.parquet#2') [100 100  50]
    >>> ip.Shards.from_json(shards.to_json()) == shards
    True
    """
    if kind is not None and not (isinstance(kind, str) and kind in FORMATS):
        cure = f"leave it out if the files' names tell it; else {COUNTS}"
        raise invalid("kind", f"one of {', '.join(FORMATS)}", kind, cure)
    num_threads = integer("num_threads", num_threads, 1, 2**10, f"leave it out for {NUM_THREADS}")
    check_callable("progress", progress)
    form = None if dtype is None else _raw(dtype, kind)
    found = _look(path, num_threads)
    if isinstance(found, Shards) and form is not None:
        cure = "leave it out, or pass a glob of the files of numbers"
        raise invalid("dtype", "left out for an index of shards", f"{dtype}", cure)
    if isinstance(found, Shards):
        return found
    if not found:
        rule = "that of shards"
        cure = f"check the path, or write a glob as 'data/**/*.parquet'; else {COUNTS}"
        raise invalid("path", rule, os.fspath(path), cure)
    if form is None:
        kind = kind or _kind_of(found)
    return _read(
        found, *(form or (str(kind), FORMATS[str(kind)])), whole_files, num_threads, progress
    )


def _raw(dtype: DTypeLike, kind: str | None) -> tuple[str, Format]:
    """Return the name and the format of files of raw numbers."""
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = np.dtype(object)
    if kind is not None:
        raise invalid("kind", "left out where dtype is given", kind, "leave one of them out")
    if found.kind not in "iuf":
        raise invalid("dtype", "a dtype of integers or floats", dtype, "pass such as 'uint16'")
    return f"raw {found.str}", Format("raw numbers", (), partial(read_raw, dtype=found), whole=True)


def _look(path: str | os.PathLike[str], num_threads: int) -> Shards | list[File]:
    """Return the shards that an index at the path lists, or the files that are to be read."""
    location, pattern = location_of(path)
    if pattern is not None:
        matched = location.find(pattern)
        stats = [name for name in matched if name.endswith(STATS)]
        if stats and len(stats) == len(matched):
            return _listed("img2dataset", location, read_stats(location, stats, num_threads))
        return _sorted(location, matched)
    there = location.kind()
    if there == "a file":
        location, name = within(location)
        if name.endswith(".json") or any(name in each.names for each in INDEXES.values()):
            return _indexed(location, name)
        return _sorted(location, location.find(name))
    return _in_folder(location, num_threads) if there == "a folder" else []


def _in_folder(location: Location, num_threads: int) -> Shards | list[File]:
    names = set(location.names())
    if ENERGON in names:
        if not location.find(info := f"{ENERGON}/.info.json"):
            cure = "run `energon prepare --tar-index-only`, which writes it"
            raise PlanFileError(f"{location.path}/{info}", "must be there", "none", cure)
        return _indexed(location, info)
    for name in (name for each in INDEXES.values() for name in each.names):
        if name in names:
            return _indexed(location, name)
    if several := names & {"dataset_dict.json"}:
        got = f"{location.path}, which holds several ({min(several)})"
        raise invalid("path", "that of one dataset", got, "pass one of its folders")
    tars = {name.removesuffix(".tar") for name in names if name.endswith(".tar")}
    stats = {name.removesuffix(STATS) for name in names if name.endswith(STATS)}
    if tars and stats:
        if without := tars - stats:
            cure = f"finish the download, or count tars by their headers: {location.path}/*.tar"
            raise invalid("each tar", f"one with its {STATS}", f"{min(without)}.tar", cure)
        named = [f"{each}{STATS}" for each in stats]
        return _listed("img2dataset", location, read_stats(location, named, num_threads))
    shown = {
        name: found
        for name, found in location.find().items()
        if kind_of(name) and not re.search(r"(^|/)[._]", name)
    }
    return _sorted(location, shown)


def _sorted(location: Location, files: Mapping[str, Found]) -> list[File]:
    return [File(location, name, *found) for name, found in sorted(files.items())]


def _indexed(location: Location, name: str) -> Shards | list[File]:
    """Read an index, whose format is known by its name or by its fields."""
    if location.path.endswith(f"/{ENERGON}"):  # which is in the dataset's folder
        location, name = within(location)[0], f"{ENERGON}/{name}"
    fields = read_json(file := File(location, name, 0))
    if isinstance(fields, dict):
        if fields.get("format") == FORMAT:
            return Shards.from_dict(fields, location.path)
        for kind, index in INDEXES.items():
            if index.field in fields:
                return _listed(kind, location, index.read(file, fields))
        if fields and fields.keys() <= location.find().keys():
            return _listed("sizes", location, INDEXES["sizes"].read(file, fields))
    known = ", ".join(index.words for index in INDEXES.values())
    rule = f"the index of shards ({known}), or what Shards.to_json returned"
    numbers, read = fields, f"json.loads(Path({f'{location.path}/{name}'!r}).read_text())"
    if isinstance(fields, dict):  # as open_clip counts by name
        numbers, read = list(fields.values()), f"list({read}.values())"
    counts = isinstance(numbers, list) and all(type(each) is int and each >= 0 for each in numbers)
    cure = f"if it counts the samples of each shard, pass ShardShuffle({read})"
    got = sorted(fields) if isinstance(fields, dict) else fields
    followed = counts and numbers and isinstance(location, Local)
    raise invalid(f"{location.path}/{name}", rule, got, cure if followed else COUNTS)


def _listed(kind: str, location: Location, found: Listed | list[File]) -> Shards | list[File]:
    """Return what an index lists, as shards unless it is files that tell their sizes themselves."""
    if not isinstance(found, Listed):
        return found
    entries = found.entries
    return Shards(
        kind=kind,
        whole_files=True,
        files=tuple(each.name for each in entries),
        num_bytes=tuple(each.num_bytes for each in entries),
        digests=tuple(digest_of(canonical_json(each.said)) for each in entries),
        parts=(1,) * len(entries),
        sizes=Column([each.size for each in entries]),
        stamps=tuple(each.stamp for each in entries),
        stored=tuple(each.stored for each in entries),
        path=location.path if found.known else "",
    )


def _kind_of(files: Sequence[File]) -> str:
    """Return the format that files are of, by their names."""
    kinds: dict[str | None, str] = {}
    for file in files:
        kinds.setdefault(kind_of(file.name), file.name)
    if None in kinds:
        rule = f"one that ends in {', '.join(SUFFIXES)}"
        cure = "pass kind=... for one of these formats, or dtype=... for files of raw tokens; "
        cure += f"else leave it out, or {COUNTS}"
        raise invalid("the name of a shard", rule, kinds[None], cure)
    if len(kinds) > 1:
        cure = "write a glob that matches the files of one format"
        raise invalid("shards", "of one format", sorted(kinds.values()), cure)
    return str(next(iter(kinds)))


def _read(
    files: Sequence[File],
    kind: str,
    form: Format,
    whole_files: bool,
    num_threads: int,
    progress: Callable[[int, int], None] | None,
) -> Shards:
    """Read files in threads, which mostly wait."""
    said: list[Footer] = []
    if progress is not None:
        progress(0, len(files))
    with ThreadPoolExecutor(num_threads) as pool:
        try:
            for read in pool.map(form.read, files):
                said.append(read)
                if progress is not None:
                    progress(len(said), len(files))
        except BaseException:  # files that were not begun are not read
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    whole = whole_files or form.whole
    sizes = [[sum(read.sizes)] if whole else read.sizes for read in said]
    return Shards(
        kind=kind,
        whole_files=whole,
        files=tuple(file.name for file in files),
        num_bytes=tuple(file.num_bytes for file in files),
        digests=tuple(read.digest for read in said),
        parts=tuple(map(len, sizes)),
        sizes=Column([size for each in sizes for size in each]),
        stamps=tuple(file.stamp for file in files),
        path=files[0].location.path,
    )
