"""Errors of the sizes of shards: files that are damaged, and indexes that disagree with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import indexplan as ip
from tests.errors.catalogue.made import Case, Provoke, nobody, without, written

NO_NUMBER: Any = "two"
AGAIN = "write it again, or restore it"
INDEX = "write the index again, or restore the shards"
JSON = "pass what Shards.to_json returned, or read the sizes again with shard_sizes"
NONE = "check the path, write a glob as 'data/**/*.parquet', or pass the index of tars"
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


def tensor() -> None:
    """Write what is no table."""
    with pa.OSFile("a.arrow", "wb") as to:
        pa.ipc.write_tensor(pa.Tensor.from_numpy(np.zeros(3)), to)
        to.write(bytes(8))
    ip.shard_sizes("a.arrow")


def index(data: Any, name: str = "index.json", **options: Any) -> None:
    """Read the sizes of an index that lies beside a file of 9 bytes."""
    written("a.mds", (5).to_bytes(4, "little") + bytes(5))
    written(name, json.dumps(data))
    ip.shard_sizes(name, **options)


def mds(**changes: Any) -> Provoke:
    """Read an MDS index with one shard."""
    entry = {
        "raw_data": {"basename": "a.mds", "bytes": 9},
        "samples": 5,
        "format": "mds",
    }
    return lambda: index({"shards": [{**entry, **changes}], "version": 2}, count=True)


def wids(**changes: Any) -> Provoke:
    """Read an index of wids with one shard."""
    entry = {"url": "a.mds", "nsamples": 5, "filesize": 9}
    return lambda: index({"wids_version": 1, "shardlist": [{**entry, **changes}]}, count=True)


def edited(**changes: Any) -> ip.Shards:
    """Shards whose saved form was edited."""
    npy("a.npy")
    return ip.Shards.from_dict({**ip.shard_sizes("a.npy").to_dict(), **changes})


def unread(modes: dict[str, int], path: str) -> None:
    """Read sizes as somebody who may not look."""
    with nobody(modes):
        ip.shard_sizes(path)


def small_tar() -> None:
    """Count the samples of a tar that has others than its index says."""
    import tarfile

    written("x.txt", "x")
    with tarfile.open("a.tar", "w") as to:
        to.add("x.txt")
    listed = [{"url": "a.tar", "nsamples": 2}]
    written("index.json", json.dumps({"wids_version": 1, "shardlist": listed}))
    ip.shard_sizes("index.json", count=True)


CASES: list[Case] = [
    (
        "nothing there",
        lambda: ip.shard_sizes("nowhere"),
        f"path must be that of shards; got 'nowhere'; {NONE}",
    ),
    (
        "a folder without shards",
        lambda: (written("data/a.txt"), ip.shard_sizes("data")),
        f"path must be that of shards; got 'data'; {NONE}",
    ),
    (
        "a glob that matches nothing",
        lambda: ip.shard_sizes("*.parquet"),
        f"path must be that of shards; got '*.parquet'; {NONE}",
    ),
    (
        "a path that is longer than names may be",
        lambda: ip.shard_sizes("x" * 300),
        f"{'x' * 300} must be readable; got 'File name too long'; check the path",
    ),
    (
        "a format that cannot be told",
        lambda: (written("a.tar"), ip.shard_sizes("*.tar")),
        "the name of a shard must be one that ends in .parquet, .pq, .parq, .arrow, .arrows, "
        ".feather, .ipc, .npy; got 'a.tar'; pass kind=..., pass the index of tars, or write a "
        "glob that leaves this file out",
    ),
    (
        "several formats",
        lambda: (npy("a.npy"), parquet(), ip.shard_sizes(".")),
        "shards must be of one format; got ['a.npy', 'a.parquet']; write a glob that matches "
        "the files of one format",
    ),
    (
        "a format of no name",
        lambda: ip.shard_sizes("a", kind="tar"),
        "kind must be one of parquet, arrow, npy; got 'tar'; leave it out if the files' names "
        "tell it",
    ),
    (
        "several datasets",
        lambda: (written("d/dataset_dict.json"), ip.shard_sizes("d")),
        "path must be that of one dataset; got 'd, which holds several (dataset_dict.json)'; "
        "pass one of its folders",
    ),
    (
        "an index of nobody's",
        lambda: index({"names": []}),
        "./index.json must be the index of MDS, wids, zarr or a Hugging Face dataset, or what "
        "Shards.to_json returned; got ['names']; pass the index, or the shards",
    ),
    (
        "an index that is no JSON",
        lambda: (written("index.json", "{"), ip.shard_sizes(".")),
        "./index.json must be JSON; got 'Expecting property name enclosed in double "
        "quotes: line 1 column 2 (char 1)'"
        f"; {INDEX}",
    ),
    (
        "an index that is a list",
        lambda: index([]),
        f"./index.json must be a JSON object; got []; {INDEX}",
    ),
    (
        "a footer cut off",
        lambda: cut(parquet(), 6),
        "./a.parquet must be a whole Parquet file; got one that ends in "
        "b'\\x19\\x1c\\x1c\\x00\\x00\\x00x\\x01', which is no footer's end"
        f"; {AGAIN}",
    ),
    (
        "a footer of rubbish",
        lambda: (
            written("a.parquet", b"PAR1" + bytes(8) + (8).to_bytes(4, "little") + b"PAR1"),
            ip.shard_sizes("a.parquet"),
        ),
        f"./a.parquet must be a whole Parquet file; got a footer that pyarrow refuses; {AGAIN}",
    ),
    (
        "no pyarrow",
        lambda: (parquet(), without("pyarrow", lambda: ip.shard_sizes("a.parquet"))),
        "Parquet files need pyarrow; pip install 'indexplan[shards]'",
    ),
    (
        "no pylance",
        lambda: (
            written("d.lance/_versions/1.manifest"),
            without("lance", lambda: ip.shard_sizes("d.lance")),
        ),
        "Lance datasets need pylance; pip install 'indexplan[lance]'",
    ),
    (
        "an Arrow file cut off",
        lambda: cut(stream(file=True), 6),
        "./a.arrow must be a whole Arrow IPC file; got one that ends in "
        "b'\\x00\\x00\\xa0\\x00\\x00\\x00'"
        f"; {AGAIN}",
    ),
    (
        "an Arrow stream cut off at its end",
        lambda: cut(stream(), 8),
        f"./a.arrow must be a whole Arrow IPC stream; got no mark of its end at byte 296; {AGAIN}",
    ),
    (
        "an Arrow stream cut off in a body",
        lambda: cut(stream(), 20),
        "./a.arrow must be a whole Arrow IPC stream; got a message up to byte 296, past"
        " its end at 284"
        f"; {AGAIN}",
    ),
    (
        "an Arrow stream cut off in a header",
        lambda: cut(stream(), 200),
        f"./a.arrow must be whole; got its end at byte 104, but content up to byte 128; {AGAIN}",
    ),
    (
        "no Arrow stream",
        lambda: (written("a.arrow", b"\4\0\0\0" * 9), ip.shard_sizes("a.arrow")),
        f"./a.arrow must be an Arrow IPC file or stream; got a header that is not valid; {AGAIN}",
    ),
    (
        "an Arrow tensor",
        tensor,
        f"./a.arrow must be an Arrow IPC file or stream; got a message of another kind; {AGAIN}",
    ),
    (
        "no .npy file",
        lambda: (written("a.npy", b"no array at all"), ip.shard_sizes("a.npy")),
        './a.npy must be a .npy file; got "the magic string is not correct; expected '
        "b'\\\\x93NUMPY', got b'no arr'\""
        f"; {AGAIN}",
    ),
    (
        "an array without rows",
        lambda: (np.save("a.npy", 1.0), ip.shard_sizes("a.npy")),
        f"./a.npy must be an array with rows; got one of shape (); {AGAIN}",
    ),
    (
        "an array cut off",
        lambda: cut(npy("a.npy"), 8),
        f"./a.npy must be whole, of 152 bytes; got 144; {AGAIN}",
    ),
    (
        "shards of nothing",
        lambda: (npy("a.npy", 0), ip.shard_sizes("a.npy")),
        "the sum of sizes must be from 1 to 2**63 - 1; got 0; pass how many samples "
        "each shard holds",
    ),
    (
        "an MDS index without shards",
        lambda: index({"shards": {}}),
        f"./index.json must list shards; got {{}}; {INDEX}",
    ),
    (
        "an MDS shard without a file",
        mds(raw_data=None),
        "./index.json must name the file of each shard; got {'raw_data': None, "
        "'samples': 5, 'format': 'mds'}"
        f"; {INDEX}",
    ),
    (
        "an MDS shard that is not there",
        mds(raw_data={"basename": "b.mds", "bytes": 9}),
        f"./index.json must name files that are there; got 'b.mds'; {INDEX}",
    ),
    (
        "an MDS shard of other bytes",
        mds(
            raw_data={"basename": "b.mds", "bytes": 99}, zip_data={"basename": "a.mds", "bytes": 8}
        ),
        f"./index.json must list a.mds with its 9 bytes; got 8; {INDEX}",
    ),
    (
        "an MDS shard of other samples",
        mds(samples=6),
        f"./index.json must list a.mds with its 5 samples; got 6; {INDEX}",
    ),
    (
        "an MDS shard of no number",
        mds(samples="5"),
        f"./index.json must have an integer from 0 for the samples of a.mds; got '5'; {INDEX}",
    ),
    (
        "an MDS shard twice",
        lambda: index(
            {"shards": [{"raw_data": {"basename": "a.mds", "bytes": 9}, "samples": 5}] * 2}
        ),
        "each file of shards must be named once; got 'a.mds'; name it once in the index",
    ),
    (
        "a wids index of another version",
        lambda: index({"wids_version": 2}),
        "./index.json must be of wids_version 1, with a shardlist and no other "
        "datasets; got 2"
        f"; {INDEX}",
    ),
    (
        "a wids index without shards",
        lambda: index({"wids_version": 1}),
        f"./index.json must have a shardlist; got None; {INDEX}",
    ),
    (
        "a wids shard without a file",
        wids(url=5),
        "./index.json must name the file of each shard; got {'url': 5, 'nsamples': 5, "
        "'filesize': 9}"
        f"; {INDEX}",
    ),
    (
        "a wids shard that is not there",
        wids(url="b.tar"),
        f"./index.json must name files that are there; got 'b.tar'; {INDEX}",
    ),
    (
        "a wids shard of other bytes",
        wids(filesize=8),
        f"./index.json must list a.mds with its 9 bytes; got 8; {INDEX}",
    ),
    (
        "a wids shard of other samples",
        small_tar,
        f"./index.json must list a.tar with its 1 sample; got 2; {INDEX}",
    ),
    (
        "a wids shard that is no tar",
        wids(),
        f"./a.mds must be a tar of samples; got 'truncated header'; {INDEX}",
    ),
    (
        "a zarr group",
        lambda: index({"node_type": "group", "zarr_format": 3}, "zarr.json"),
        "./zarr.json must be of an array with a first axis, and a regular grid of "
        "chunks; got ['node_type', 'zarr_format']"
        f"; {INDEX}",
    ),
    (
        "a saved dataset without a file",
        lambda: index({"_data_files": [{"filename": "b"}]}),
        "./index.json must list files that are there; got 'b'; restore them, or save "
        "the dataset again",
    ),
    (
        "a file that may not be read",
        lambda: (npy("a.npy"), unread({"a.npy": 0}, "a.npy")),
        "a.npy must be readable; got 'Permission denied'; check its permissions and its"
        " file system",
    ),
    (
        "a folder that may not be read",
        lambda: (
            written("d/a.npy"),
            unread({"d": 0}, "d"),
        ),
        "d must be readable; got 'Permission denied'; check its permissions and its file system",
    ),
    (
        "a folder inside that may not be read",
        lambda: (
            written("d/e/a.npy"),
            unread({"d/e": 0}, "d"),
        ),
        "d must be readable; got 'Permission denied'; check its permissions and its file system",
    ),
    (
        "shards of other lengths",
        lambda: edited(num_bytes=[]),
        f"num_bytes of shards must be as many as its files, 1; got 0; {JSON}",
    ),
    (
        "shards of other parts",
        lambda: edited(parts=[2]),
        f"sizes of shards must be as many as its files have shards, 2; got 1; {JSON}",
    ),
    (
        "a stamp of shards without a path",
        lambda: ip.Shards.from_dict(edited().to_dict()).stamp(0),
        "shards must be in a place; got 'no path'; use Shards.from_json(text, path=...)",
    ),
    *(
        (
            f"a shard named {name!r}",
            lambda name=name: edited(files=[name]),
            "each file of shards must be a name below the folder that shards are in, without .., / "
            f"at its start or ://; got {name!r}; read the sizes of the folder that holds all "
            "files, or restore the JSON",
        )
        for name in ("../a.npy", "x/../../a.npy", "/etc/a.npy", "s3://b/a.npy", "", "a::b.npy")
    ),
    (
        "an MDS shard outside its folder",
        mds(
            raw_data={"basename": "../b.mds", "bytes": 99},
            zip_data={"basename": "a.mds", "bytes": 9},
        ),
        "each file of shards must be a name below the folder that shards are in, without .., / at "
        "its start or ://; got '../b.mds'; read the sizes of the folder that holds all files, or "
        "restore the JSON",
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
        "each file of shards must be a name below the folder that shards are in, without .., / at "
        "its start or ://; got '/etc/b.tar'; read the sizes of the folder that holds all files, or "
        "restore the JSON",
    ),
    (
        "what an index says, edited",
        lambda: edited(stored=[["sha1:0", "a.npy.gz", -1, ""]]),
        "stored of shards must be a list of [hash, zip_name, zip_bytes, zip_hash]; got "
        f"[['sha1:0', 'a.npy.gz', -1, '']]; {JSON}",
    ),
    (
        "a stamp of no file",
        lambda: edited().stamp(1),
        "file must be the integer 0; got 1; pass a position in files",
    ),
    (
        "shards of no list",
        lambda: edited(sizes=NO_NUMBER),
        f"sizes of shards must be a list of int; got 'two'; {JSON}",
    ),
    (
        "shards of no name",
        lambda: edited(kind=3),
        f"kind of shards must be a str; got 3; {JSON}",
    ),
    (
        "shards of another version",
        lambda: edited(version=2),
        "shards must be of format indexplan-shards, version 1; got ['indexplan-shards',"
        " 2]"
        f"; {JSON}",
    ),
    (
        "shards of nobody's",
        lambda: ip.Shards.from_dict(NO_NUMBER),
        f"shards must be an object; got 'two'; {JSON}",
    ),
    (
        "an index past the last sample",
        lambda: edited().locate([0, 3]),
        "index must be from 0 to 2; got 3; pass numbers in that range",
    ),
    (
        "a row past the last",
        lambda: edited().index(0, 3),
        "a row of shard 0 must be one of its 3 rows; got 3; count its rows from 0",
    ),
    (
        "a comparison with something else",
        lambda: edited().check_same(NO_NUMBER),
        "before must be Shards; got 'two'; pass what shard_sizes or from_json returned",
    ),
    (
        "shards that changed",
        lambda: edited().check_same(edited(sizes=[2])),
        "shards must be the same as before; got 1 file changed: a.npy; restore them, "
        "or build a new plan for these",
    ),
]
