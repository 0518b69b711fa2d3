"""Shards that an index lists, compressed or not, fetched and compared with its hashes."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import indexplan as ip
from indexplan_fetch import ShardFile
from tests.together.sharded_runs import Opened, refused
from tests.together.test_sharded_replaced import RESTORE

ROWS = 100
ZIPS = {
    "zstd": lambda data: pa.compress(data, "zstd", asbytes=True),
    "br": lambda data: pa.compress(data, "brotli", asbytes=True),
    "snappy": lambda data: pa.compress(data, "snappy", asbytes=True),
    "gz": gzip.compress,
    "bz2": bz2.compress,
}


def rows_of(file: ShardFile) -> Any:
    """Return the numbers in a file."""
    return np.fromfile(file.path, "<i8")


def part(name: str, data: bytes, kind: str) -> dict[str, Any]:
    """Return what MDS's index says of a file."""
    return {
        "basename": name,
        "bytes": len(data),
        "hashes": {kind: hashlib.new(kind, data).hexdigest()} if kind else {},
    }


def write_mds(folder: Path, ending: str = "", kind: str = "sha1") -> Path:
    """Write a shard of numbers, and an index; return the file."""
    data = np.arange(ROWS, dtype="<i8").tobytes()
    zipped = ZIPS[ending](data) if ending else b""
    name = f"a.mds.{ending}" if ending else "a.mds"
    entry = {"raw_data": part("a.mds", data, kind), "samples": ROWS, "format": "mds"}
    if ending:
        entry["zip_data"] = part(name, zipped, kind)
    folder.mkdir()
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": [entry]}))
    (folder / name).write_bytes(zipped or data)
    return folder / name


@pytest.mark.parametrize("ending", ZIPS)
def test_compressed(dataset_of: Opened, tmp_path: Path, ending: str) -> None:
    """A compressed shard is fetched, compared with its hash, and opened as the file in it."""
    file = write_mds(tmp_path / "data", ending)
    shards = ip.shard_sizes(tmp_path / "data")
    again = ip.Shards.from_json(shards.to_json(), shards.path)
    assert shards.stored == again.stored
    data = dataset_of(again, rows_of)
    assert (99, file.stat().st_size) == (data[99], data.report().num_bytes)


@pytest.mark.parametrize("kind", ["sha1", "md5", "blake2b"])
@pytest.mark.parametrize("ending", ["", "zstd"])
def test_swapped(dataset_of: Opened, tmp_path: Path, ending: str, kind: str) -> None:
    """A shard that was swapped for another one of the same length is refused."""
    file = write_mds(tmp_path / "data", ending, kind)
    data = file.read_bytes()
    file.write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
    rule = f"{file} must have the {kind} that its index says; got another; {RESTORE}"
    assert rule == refused(dataset_of(ip.shard_sizes(tmp_path / "data"), rows_of), 99)


@pytest.mark.parametrize("ending", ZIPS)
def test_damaged_without_hashes(dataset_of: Opened, tmp_path: Path, ending: str) -> None:
    """What cannot be decompressed to the bytes of the index is refused."""
    file = write_mds(tmp_path / "data", ending, "")
    file.write_bytes(bytes(file.stat().st_size))
    rule = f"{file} must hold 800 bytes in compressed form, as shards says; got others; {RESTORE}"
    assert rule == refused(dataset_of(ip.shard_sizes(tmp_path / "data"), rows_of), 99)


def test_swapped_tar(dataset_of: Opened, tmp_path: Path) -> None:
    """A file of wids with another md5 than its index says is refused."""
    data = np.arange(ROWS, dtype="<i8").tobytes()
    (tmp_path / "a.tar").write_bytes(data)
    listed = {"url": "a.tar", "nsamples": ROWS, "filesize": 800}
    listed["md5sum"] = hashlib.md5(data, usedforsecurity=False).hexdigest()
    (tmp_path / "index.json").write_text(json.dumps({"wids_version": 1, "shardlist": [listed]}))
    shards = ip.shard_sizes(tmp_path / "index.json")
    assert 99 == dataset_of(shards, rows_of)[99]
    dataset_of.end()
    (tmp_path / "a.tar").write_bytes(data[::-1])
    dataset_of.cache_dir = tmp_path / "other"
    rule = f"{tmp_path}/a.tar must have the md5 that its index says; got another; {RESTORE}"
    assert rule == refused(dataset_of(ip.shard_sizes(tmp_path / "index.json"), rows_of), 99)
