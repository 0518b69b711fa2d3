"""Sizes of shards that are read once the shards, their index or the call are put right."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import indexplan as ip
from tests.errors.catalogue.made import written
from tests.errors.catalogue.shard_sizes import CASES, edited, npy, parquet, stream
from tests.support.cures import after, where_all_may_enter

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
    "an index that is a list": met("an index that is a list", listed),
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
