"""Errors of the sizes of shards: files that are damaged, and indexes that disagree with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import indexplan as ip
from tests.errors.catalogue.made import Case, Provoke, without, written
from tests.support.children import nobody
from tests.support.cures import after, where_all_may_enter

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


def objects() -> None:
    """Read an array of objects whose header says that there are more than bytes."""
    np.save("a.npy", np.array([None]), allow_pickle=True)
    data = Path("a.npy").read_bytes()
    Path("a.npy").write_bytes(data.replace(b"(1,), }          ", b"(999999999,), }  "))
    ip.shard_sizes("a.npy")


CASES: list[Case] = [
    ("nothing there", lambda: ip.shard_sizes("nowhere")),
    ("a folder without shards", lambda: (written("data/a.txt"), ip.shard_sizes("data"))),
    ("a glob that matches nothing", lambda: ip.shard_sizes("*.parquet")),
    ("a path that is longer than names may be", lambda: ip.shard_sizes("x" * 300)),
    ("a format that cannot be told", lambda: (written("a.tar"), ip.shard_sizes("*.tar"))),
    ("several formats", lambda: (npy("a.npy"), parquet(), ip.shard_sizes("."))),
    ("a format of no name", lambda: ip.shard_sizes("a", kind="tar")),
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


# the cures, followed

met = after(CASES)


def sizes(path: str | Path, rows: int = 3, **options: Any) -> ip.Shards:
    """Read the sizes of shards, and check them."""
    found = ip.shard_sizes(path, **options)
    assert rows == ip.ShardShuffle(found, seed=0).num_samples
    return found


def file(make: Callable[..., Path], **options: Any) -> Callable[[], None]:
    """Write a file again, and read its sizes."""
    return lambda: check(sizes(make(**options)))


def check(shards: ip.Shards) -> None:
    """Order them, and read them again from their JSON."""
    assert len(ip.ShardShuffle(shards, seed=0).take(0, 0, 3)) == 3
    assert shards == ip.Shards.from_json(shards.to_json())


def globbed() -> None:
    """Write a glob, or pass ShardShuffle a list."""
    Path("data/deep").mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": [1, 2, 3]}), "data/deep/a.parquet")
    check(sizes("data/**/*.parquet"))
    listed()


def listed() -> None:
    """Pass ShardShuffle a list of how many samples each shard holds."""
    ip.ShardShuffle([2, 3], seed=0).take(0, 0, 5)


def by_kind() -> None:
    """Pass kind for files whose names tell nothing, or leave it out where they do."""
    parquet("a.data")
    check(sizes("a.data", kind="parquet"))
    check(sizes(parquet()))
    listed()


def one_format() -> None:
    """Write a glob that matches the files of one format."""
    check(sizes("*.parquet"))


def raw_tokens() -> None:
    """Pass how many tokens a raw file has to TokenWindows."""
    np.arange(64, dtype="u2").tofile("raw.npy")
    ip.TokenWindows(len(np.memmap("raw.npy", "u2", "r")), length=8, seed=0).take(0, 0, 2)
    check(sizes(npy("a.npy")))


def in_a_place() -> None:
    """Read shards from JSON with their path."""
    npy("a.npy")
    text = ip.shard_sizes("a.npy").to_json()
    ip.Shards.from_json(text, path=".").stamp(0)


def saved() -> None:
    """Pass what to_json returned, or read the sizes again."""
    shards = sizes(npy("a.npy"))
    check(shards)
    assert shards == ip.Shards.from_dict(shards.to_dict())


def of_their_folder() -> None:
    """Read the sizes of the folder that holds all files."""
    Path("all/deep").mkdir(parents=True)
    npy("all/a.npy")
    npy("all/deep/b.npy")
    check(sizes("all", 6))


def same() -> None:
    """Ask for what there is."""
    shards = edited()
    shards.locate([0, 2])


MDS = {"raw_data": {"basename": "a.mds", "bytes": 9}, "samples": 5, "format": "mds"}


def mds_again() -> None:
    """Write the index of MDS again, with each file once."""
    written("a.mds", (5).to_bytes(4, "little") + bytes(5))
    written("index.json", json.dumps({"shards": [MDS], "version": 2}))
    sizes("index.json", 5)


def wids_again() -> None:
    """Write the index of wids again."""
    written("a.mds", (5).to_bytes(4, "little") + bytes(5))
    entry = {"url": "a.mds", "nsamples": 5, "filesize": 9}
    written("index.json", json.dumps({"wids_version": 1, "shardlist": [entry]}))
    sizes("index.json", 5)


def in_its_place() -> None:
    """Put the index in the place of the folder."""
    Path("index.json").rmdir()
    mds_again()


def one_of_several() -> None:
    """Pass one folder of several datasets."""
    Path("d/train").mkdir()
    parquet("d/train/a.parquet")
    check(sizes("d/train"))


def dataset_again() -> None:
    """Save a dataset again, with the file that it lists."""
    stream("b.arrow")
    written("index.json", json.dumps({"_data_files": [{"filename": "b.arrow"}]}))
    check(sizes("."))


PARQUET = file(parquet)
CURED: dict[str, Callable[[], Any]] = {
    **{
        name: met(name, globbed)
        for name in ("nothing there", "a folder without shards", "a glob that matches nothing")
    },
    **{
        name: met(name, by_kind) for name in ("a format that cannot be told", "a format of no name")
    },
    "several formats": met("several formats", one_format),
    "an index of nobody's": met("an index of nobody's", listed),
    **{
        name: met(name, PARQUET)
        for name in ("a footer cut off", "a footer of rubbish", "a footer that is huge")
    },
    **{name: met(name, file(stream, file=True)) for name, _ in CASES if "an Arrow file " in name},
    **{
        name: met(name, file(stream))
        for name, _ in CASES
        if "Arrow stream" in name or name == "an Arrow tensor"
    },
    "no .npy file": met("no .npy file", raw_tokens),
    **{
        name: met(name, file(npy, name="a.npy"))
        for name in (
            "an array without rows",
            "an array cut off",
            "an array of another version",
            "objects that are not there",
            "shards of nothing",
        )
    },
    **{
        name: met(name, mds_again)
        for name, _ in CASES
        if name.startswith(("an MDS ", "an index that is no JSON")) and "outside" not in name
    },
    **{name: met(name, wids_again) for name, _ in CASES if name.startswith("a wids ")},
    "a stamp of shards without a path": met("a stamp of shards without a path", in_a_place),
    **{
        name: met(name, of_their_folder)
        for name, _ in CASES
        if name.startswith("a shard named")
        or name in ("an MDS shard outside its folder", "wids shards both here and elsewhere")
    },
    **{
        name: met(name, saved)
        for name in (
            "shards of other lengths",
            "shards of other parts",
            "what an index says, edited",
            "shards of no list",
            "shards of no name",
            "shards of another version",
            "shards of nobody's",
        )
    },
    **{name: met(name, same) for name in ("an index past the last sample",)},
    "a path that is longer than names may be": met(
        "a path that is longer than names may be", file(npy, name="a.npy")
    ),
    "several datasets": met("several datasets", one_of_several),
    "no pyarrow": met("no pyarrow", PARQUET),  # which is installed here
    "an index that is huge": met("an index that is huge", mds_again),
    "a folder in the place of an index": met("a folder in the place of an index", in_its_place),
    "a saved dataset without a file": met("a saved dataset without a file", dataset_again),
    **{
        f"a {what} that may not be read": where_all_may_enter(
            met(f"a {what} that may not be read", file(npy, name=path))
        )
        for what, path in (
            ("file", "a.npy"),
            ("folder", "d/a.npy"),
            ("folder inside", "d/e/a.npy"),
        )
    },
    "a stamp of no file": lambda: ip.shard_sizes(npy("a.npy")).stamp(0),
}
