"""What errors of the sizes of shards are provoked with: files, and indexes that disagree."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import tarfile
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import indexplan as ip
from indexplan_fetch import ShardFile, open_tar
from tests.errors.catalogue.made import written
from tests.support.children import nobody

NO_NUMBER: Any = "two"
ROWS = pa.table({"id": [1, 2, 3]})


def npy(name: str, rows: int = 3) -> Path:
    """Write an array."""
    np.save(name, np.zeros(rows))
    return Path(name)


def parquet(name: str = "a.parquet") -> Path:
    """Write a Parquet file."""
    pq.write_table(ROWS, name)
    return Path(name)


def stream(name: str = "a.arrow", *, file: bool = False) -> Path:
    """Write an Arrow stream or file."""
    with (pa.ipc.new_file if file else pa.ipc.new_stream)(name, ROWS.schema) as to:
        to.write_table(ROWS)
    return Path(name)


def cut(path: Path, num_bytes: int) -> None:
    """Cut bytes off a file's end, and read its size."""
    path.write_bytes(path.read_bytes()[:-num_bytes])
    ip.shard_sizes(path)


def index(data: Any, name: str = "index.json", path: str = "", **options: Any) -> None:
    """Read the sizes of an index that lies beside a file of 9 bytes."""
    written("a.mds", (5).to_bytes(4, "little") + bytes(5))
    written(name, json.dumps(data))
    ip.shard_sizes(path or name, **options)


def mds(**changes: Any) -> None:
    """Read an MDS index with one shard."""
    entry = {
        "raw_data": {"basename": "a.mds", "bytes": 9},
        "samples": 5,
        "format": "mds",
    }
    index({"shards": [{**entry, **changes}], "version": 2})


def wids(**changes: Any) -> None:
    """Read an index of wids with one shard."""
    entry = {"url": "a.mds", "nsamples": 5, "filesize": 9}
    index({"wids_version": 1, "shardlist": [{**entry, **changes}]})


def edited(**changes: Any) -> ip.Shards:
    """Shards whose saved form was edited."""
    npy("a.npy")
    return ip.Shards.from_dict({**ip.shard_sizes("a.npy").to_dict(), **changes})


def unread(modes: dict[str, int], path: str) -> None:
    """Read sizes as somebody who may not look."""
    with nobody(modes):
        ip.shard_sizes(path)


def shaped(shape: tuple[int, ...], dtype: str = "<f8") -> str:
    """Say of an array in its header what shape it has."""
    return str({"descr": dtype, "fortran_order": False, "shape": shape})


def headed(header: str, body: bytes = b"") -> None:
    """Read an array that has a header of one's own."""
    text = f"{header:{-(-(len(header) + 11) // 64) * 64 - 11}}\n".encode()
    written("a.npy", b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + body)
    ip.shard_sizes("a.npy")


def sparse(name: str, tail: bytes = b"", head: bytes = b"") -> None:
    """Read a file of 2 GiB, of which only the ends are on the disk."""
    with Path(name).open("wb") as stream:
        stream.write(head)
        stream.truncate(2**31)
        stream.seek(0, 2)
        stream.write(tail)
    ip.shard_sizes(name)


def folder(name: str) -> None:
    """Read a folder that has one of an index's name."""
    Path(name).mkdir()
    ip.shard_sizes(".")


def tar(change: Any = bytes, names: Any = ("1.x", "1.y"), size: int = 5) -> None:
    """Read a tar of two members whose bytes were changed."""
    with tarfile.open("a.tar", "w") as to:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = size
            to.addfile(member, io.BytesIO(bytes(size)))
    Path("a.tar").write_bytes(change(Path("a.tar").read_bytes()))
    ip.shard_sizes("a.tar")


def member(data: bytes, kind: bytes, size: int = 5) -> bytes:
    """Say of the first member that it is of a kind and a size, with a right sum of its header."""
    said = data[:124] + b"%011o\0" % size + data[136:156] + kind + data[157:512]
    total = sum(said) - sum(said[148:156]) + 256
    return said[:148] + b"%06o\0 " % total + said[156:] + data[512:]


def energon(counts: Any, split: str | None = None) -> None:
    """Read what Energon counted of a tar that is there."""
    written("a.tar", b"x")
    if counts is not None:
        written(".nv-meta/.info.json", json.dumps({"shard_counts": counts}))
    if split is not None:
        written(".nv-meta/split.yaml", split)
    ip.shard_sizes(".")
