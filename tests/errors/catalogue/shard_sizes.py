"""Errors of the sizes of shards: files that are damaged, and indexes that disagree with them."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import indexplan as ip
from indexplan_fetch import ShardFile, open_tar
from tests.errors.catalogue.made import Case, Provoke, without, written
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


def hole(path: Path) -> None:
    """Write zeros over all but a file's first and last bytes, and read its size."""
    data = path.read_bytes()
    path.write_bytes(data[:8] + bytes(len(data) - 18) + data[-10:])
    ip.shard_sizes(path)


def tensor() -> None:
    """Write what is no table."""
    with pa.OSFile("a.arrow", "wb") as to:
        pa.ipc.write_tensor(pa.Tensor.from_numpy(np.zeros(3)), to)
        to.write(bytes(8))
    ip.shard_sizes("a.arrow")


def index(data: Any, name: str = "index.json", path: str = "", **options: Any) -> None:
    """Read the sizes of an index that lies beside a file of 9 bytes."""
    written("a.mds", (5).to_bytes(4, "little") + bytes(5))
    written(name, json.dumps(data))
    ip.shard_sizes(path or name, **options)


def mds(**changes: Any) -> Provoke:
    """Read an MDS index with one shard."""
    entry = {
        "raw_data": {"basename": "a.mds", "bytes": 9},
        "samples": 5,
        "format": "mds",
    }
    return lambda: index({"shards": [{**entry, **changes}], "version": 2})


def wids(**changes: Any) -> Provoke:
    """Read an index of wids with one shard."""
    entry = {"url": "a.mds", "nsamples": 5, "filesize": 9}
    return lambda: index({"wids_version": 1, "shardlist": [{**entry, **changes}]})


def edited(**changes: Any) -> ip.Shards:
    """Shards whose saved form was edited."""
    npy("a.npy")
    return ip.Shards.from_dict({**ip.shard_sizes("a.npy").to_dict(), **changes})


def unread(modes: dict[str, int], path: str) -> None:
    """Read sizes as somebody who may not look."""
    with nobody(modes):
        ip.shard_sizes(path)


def sparse(name: str, tail: bytes = b"") -> None:
    """Read a file of 2 GiB that are not on the disk."""
    with Path(name).open("wb") as stream:
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


def opened(data: bytes) -> None:
    """Open a tar that is none."""
    written("a.tar", data)
    open_tar(ShardFile("a.tar", number=0, part=None))


def energon(counts: Any, split: str | None = None) -> None:
    """Read what Energon counted of a tar that is there."""
    written("a.tar", b"x")
    if counts is not None:
        written(".nv-meta/.info.json", json.dumps({"shard_counts": counts}))
    if split is not None:
        written(".nv-meta/split.yaml", split)
    ip.shard_sizes(".")


def in_a_store() -> None:
    """Count the records of a file that is in a store."""
    store = fsspec.filesystem("memory")
    store.pipe("/records/a.array_record", b"x")
    try:
        ip.shard_sizes("memory://records/a.array_record")
    finally:
        store.rm("/records", recursive=True)


def objects() -> None:
    """Read an array of objects whose header says that there are more than bytes."""
    np.save("a.npy", np.array([None]), allow_pickle=True)
    data = Path("a.npy").read_bytes()
    Path("a.npy").write_bytes(data.replace(b"(1,), }          ", b"(999999999,), }  "))
    ip.shard_sizes("a.npy")


CASES: list[Case] = [
    ("a tar cut off", lambda: tar(lambda data: data[:700])),
    ("a tar with a damaged header", lambda: tar(lambda data: data[:9] + b"x" + data[10:])),
    ("a compressed tar", lambda: tar(gzip.compress)),
    ("a member of a tar twice", lambda: tar(names=("1.x", "1.X"))),
    ("a member of a tar named as a field", lambda: tar(names=("1.__key__",))),
    ("a sparse member of a tar", lambda: tar(lambda data: member(data, b"S"))),
    ("a tar cut off in a member", lambda: tar(lambda data: data[:514])),
    ("a tar with a name of gigabytes", lambda: tar(lambda data: member(data, b"L", 2**31))),
    ("a tar with a damaged name", lambda: tar(lambda data: member(data, b"x"))),
    ("a tar whose sum is no number", lambda: tar(lambda data: data[:148] + b"x" + data[149:])),
    ("a tar that is opened", lambda: opened(b"x" * 1024)),
    ("tars one after another", lambda: tar(lambda data: data * 2)),
    ("counts of files that are not there", lambda: index({"b.tar": 3}, "sizes.json")),
    ("counts that are none", lambda: index({"a.mds": "3"}, "sizes.json")),
    (
        "a tar without img2dataset's stats",
        lambda: (written("b.tar"), index({}, "a_stats.json", ".")),
    ),
    (
        "img2dataset's stats without a tar",
        lambda: index({"successes": 3}, "a_stats.json", "*.json"),
    ),
    ("img2dataset's stats without a number", lambda: index([], "a_stats.json", "*.json")),
    ("Energon without counts", lambda: (written(".nv-meta/a"), ip.shard_sizes("."))),
    ("Energon with counts of nothing", lambda: energon([])),
    ("Energon with counts of a tar that is not there", lambda: energon({"b.tar": 1})),
    ("Energon with several splits", lambda: energon({"a.tar": 1}, "split_parts: {a: [b], c: [d]}")),
    ("Energon with splits that are none", lambda: energon({"a.tar": 1}, "a: [")),
    ("raw numbers that have a header", lambda: (npy("a.npy"), ip.shard_sizes("*", dtype="u2"))),
    ("raw numbers cut off", lambda: (written("a.bin", b"x" * 7), ip.shard_sizes("*", dtype="u4"))),
    ("numbers of no dtype", lambda: ip.shard_sizes("*.bin", dtype="tokens")),
    ("numbers of a dtype and a kind", lambda: ip.shard_sizes("*.bin", kind="npy", dtype="u2")),
    ("an index with a dtype", lambda: index({"a.mds": 3}, "sizes.json", dtype="u2")),
    (
        "no ArrayRecord file",
        lambda: (written("a.array_record", b"x"), ip.shard_sizes("*.array_record")),
    ),
    (
        "no array_record",
        lambda: (
            written("a.array_record"),
            without("array_record", lambda: ip.shard_sizes("*.array_record")),
        ),
    ),
    ("an ArrayRecord file in a store", in_a_store),
    ("no PyYAML", lambda: without("yaml", lambda: energon({"a.tar": 1}, "a: b"))),
    ("nothing there", lambda: ip.shard_sizes("nowhere")),
    ("a folder without shards", lambda: (written("data/a.txt"), ip.shard_sizes("data"))),
    ("a glob that matches nothing", lambda: ip.shard_sizes("*.parquet")),
    ("a path that is longer than names may be", lambda: ip.shard_sizes("x" * 300)),
    ("a format that cannot be told", lambda: (written("a.h5"), ip.shard_sizes("*.h5"))),
    ("several formats", lambda: (npy("a.npy"), parquet(), ip.shard_sizes("."))),
    ("a format of no name", lambda: ip.shard_sizes("a", kind="hdf5")),
    ("several datasets", lambda: (written("d/dataset_dict.json"), ip.shard_sizes("d"))),
    ("an index of nobody's", lambda: index({"names": []})),
    ("an index that is no JSON", lambda: (written("index.json", "{"), ip.shard_sizes("."))),
    ("a footer cut off", lambda: cut(parquet(), 6)),
    (
        "a footer of rubbish",
        lambda: (
            written("a.parquet", b"PAR1" + bytes(8) + (8).to_bytes(4, "little") + b"PAR1"),
            ip.shard_sizes("a.parquet"),
        ),
    ),
    ("no pyarrow", lambda: (parquet(), without("pyarrow", lambda: ip.shard_sizes("a.parquet")))),
    ("an Arrow file cut off", lambda: cut(stream(file=True), 6)),
    ("an Arrow file with a hole", lambda: hole(stream(file=True))),
    ("an Arrow stream cut off at its end", lambda: cut(stream(), 8)),
    ("an Arrow stream cut off in a body", lambda: cut(stream(), 20)),
    ("an Arrow stream cut off in a header", lambda: cut(stream(), 200)),
    ("no Arrow stream", lambda: (written("a.arrow", b"\4\0\0\0" * 9), ip.shard_sizes("a.arrow"))),
    ("an Arrow tensor", tensor),
    ("no .npy file", lambda: (written("a.npy", b"no array at all"), ip.shard_sizes("a.npy"))),
    ("an array without rows", lambda: (np.save("a.npy", 1.0), ip.shard_sizes("a.npy"))),
    ("an array cut off", lambda: cut(npy("a.npy"), 8)),
    ("shards of nothing", lambda: (npy("a.npy", 0), ip.shard_sizes("a.npy"))),
    ("an MDS index without shards", lambda: index({"shards": {}})),
    ("an MDS shard without a file", mds(raw_data=None)),
    ("an MDS shard that is not there", mds(raw_data={"basename": "b.mds", "bytes": 9})),
    (
        "an MDS shard of other bytes",
        mds(
            raw_data={"basename": "b.mds", "bytes": 99}, zip_data={"basename": "a.mds", "bytes": 8}
        ),
    ),
    ("an MDS shard of no number", mds(samples="5")),
    (
        "an MDS shard twice",
        lambda: index(
            {"shards": [{"raw_data": {"basename": "a.mds", "bytes": 9}, "samples": 5}] * 2}
        ),
    ),
    ("a wids index of another version", lambda: index({"wids_version": 2})),
    ("a wids index without shards", lambda: index({"wids_version": 1})),
    ("a wids shard without a file", wids(url=5)),
    ("a wids shard that is not there", wids(url="b.tar")),
    ("a wids shard of other bytes", wids(filesize=8)),
    (
        "an array of another version",
        lambda: (written("a.npy", b"\x93NUMPY\x09\x00" + bytes(99)), ip.shard_sizes("a.npy")),
    ),
    ("an index that is huge", lambda: sparse("index.json")),
    ("a footer that is huge", lambda: sparse("a.parquet", b"\0\0\0\x40PAR1")),
    ("a folder in the place of an index", lambda: folder("index.json")),
    ("objects that are not there", objects),
    ("a saved dataset without a file", lambda: index({"_data_files": [{"filename": "b"}]})),
    ("a file that may not be read", lambda: (npy("a.npy"), unread({"a.npy": 0}, "a.npy"))),
    (
        "a folder that may not be read",
        lambda: (
            written("d/a.npy"),
            unread({"d": 0}, "d"),
        ),
    ),
    (
        "a folder inside that may not be read",
        lambda: (
            written("d/e/a.npy"),
            unread({"d/e": 0}, "d"),
        ),
    ),
    ("shards of other lengths", lambda: edited(num_bytes=[])),
    ("shards of other parts", lambda: edited(parts=[2])),
    ("a stamp of shards without a path", lambda: ip.Shards.from_dict(edited().to_dict()).stamp(0)),
    *(
        (f"a shard named {name!r}", lambda name=name: edited(files=[name]))
        for name in ("../a.npy", "x/../../a.npy", "/etc/a.npy", "s3://b/a.npy", "", "a::b.npy")
    ),
    (
        "an MDS shard outside its folder",
        mds(
            raw_data={"basename": "../b.mds", "bytes": 99},
            zip_data={"basename": "a.mds", "bytes": 9},
        ),
    ),
    (
        "wids shards both here and elsewhere",
        lambda: index(
            {
                "wids_version": 1,
                "shardlist": [
                    {"url": "a.mds", "nsamples": 5, "filesize": 9},
                    {"url": "/etc/b.tar", "nsamples": 5, "filesize": 9},
                ],
            }
        ),
    ),
    ("what an index says, edited", lambda: edited(stored=[["sha1:0", "a.npy.gz", -1, ""]])),
    ("a stamp of no file", lambda: edited().stamp(1)),
    ("shards of no list", lambda: edited(sizes=NO_NUMBER)),
    ("shards of no name", lambda: edited(kind=3)),
    ("shards of another version", lambda: edited(version=2)),
    ("shards of nobody's", lambda: ip.Shards.from_dict(NO_NUMBER)),
    ("an index past the last sample", lambda: edited().locate([0, 3])),
]
