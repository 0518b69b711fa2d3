"""Formats with an index of their shards: MDS, tars (by whom they were counted), Hugging Face's."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from indexplan.errors import IndexPlanError, counted
from indexplan.shards.by_file import File
from indexplan.shards.location import Found, Location


class Content(NamedTuple):
    """What an index says of a file's bytes, and of a compressed file that is there instead."""

    hash: str = ""
    """Such as "sha1:2fd4e1...", of the file itself; "" if the index has none."""
    zip_name: str = ""
    """The name of the compressed file; "" if the file itself is there."""
    zip_bytes: int = 0
    zip_hash: str = ""


class Entry(NamedTuple):
    """What an index says about a shard."""

    name: str
    num_bytes: int
    size: int
    said: Any
    stamp: str = ""
    stored: Content = Content()


class Listed(NamedTuple):
    """The shards that an index lists."""

    entries: list[Entry]
    known: bool = True
    """Whether they are in the index's own folder; else the user has to say where they are."""


CURE = "write the index again, or restore the shards"


def read_json(file: File) -> Any:
    """Return the JSON in a file that another library wrote."""
    data = file.location.read(file.name)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise file.wrong("be JSON", repr(str(error)), CURE) from None


def _count(file: File, what: str, value: Any) -> int:
    if type(value) is not int or value < 0:
        raise file.wrong(f"have an integer from 0 for {what}", repr(value), CURE)
    return value


def _objects(file: File, index: Mapping[str, Any], field: str) -> list[Any]:
    listed = index.get(field)
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise file.wrong(f"have a list of {field}", repr(listed), CURE)
    return listed


def read_mds(file: File, index: Mapping[str, Any]) -> Listed:
    """Read MosaicML Streaming's index.json, and compare it with the shards next to it."""
    there, entries = file.location.find(), []
    for each in _objects(file, index, "shards"):
        said = [each.get(part) for part in ("raw_data", "zip_data")]
        kinds = [part for part in said if isinstance(part, dict)]
        names = [part["basename"] for part in kinds if isinstance(part.get("basename"), str)]
        if not kinds or len(names) < len(kinds):
            raise file.wrong("name the file of each shard", repr(each), CURE)
        size = _count(file, f"the samples of {names[0]}", each.get("samples"))
        found = next((part for part in kinds if part["basename"] in there), None)
        if found is None:
            raise file.wrong("name files that are there", repr(names[0]), CURE)
        _same_bytes(file, there, found["basename"], found.get("bytes"))
        num_bytes = _count(file, f"the bytes of {names[0]}", kinds[0].get("bytes"))
        stored = Content(_hash_in(said[0]))
        if found is not said[0]:
            zipped = there[found["basename"]].num_bytes
            stored = Content(stored.hash, found["basename"], zipped, _hash_in(found))
        stamp = there[found["basename"]].stamp
        entries.append(Entry(names[0], num_bytes, size, each, stamp, stored))
    return Listed(entries)


def _hash_in(part: Any) -> str:
    """Return a hash of a file that MDS notes, of those that Python has everywhere."""
    hashes = part.get("hashes") if isinstance(part, dict) else None
    for name, value in hashes.items() if isinstance(hashes, dict) else ():
        fixed = name in hashlib.algorithms_guaranteed and not name.startswith("shake_")
        if fixed and isinstance(value, str):
            return f"{name}:{value.lower()}"
    return ""


def _same_bytes(file: File, there: Mapping[str, Found], name: str, num_bytes: Any) -> None:
    if there[name].num_bytes != num_bytes:
        rule = f"list {name} with its {counted(there[name].num_bytes, 'byte')}"
        raise file.wrong(rule, repr(num_bytes), CURE)


def read_wids(file: File, index: Mapping[str, Any]) -> Listed:
    """Read an index of WebDataset's wids, and compare it with the shards next to it."""
    if index.get("wids_version") != 1 or index.get("datasets"):
        rule = "be of wids_version 1, with a shardlist and no other datasets"
        raise file.wrong(rule, repr(index.get("wids_version")), CURE)
    there, entries, elsewhere = None, [], False
    for each in _objects(file, index, "shardlist"):
        url = each.get("url")
        if not isinstance(url, str):
            raise file.wrong("name the file of each shard", repr(each), CURE)
        size = _count(file, f"the samples of {url}", each.get("nsamples"))
        num_bytes, stamp = each.get("filesize"), ""
        # for shards that are elsewhere, the index is trusted
        here = "base" not in index and not re.match(r"/|[a-z][a-z0-9+.-]*:", url)
        elsewhere = elsewhere or not here
        if here:
            there = file.location.find() if there is None else there
            path = str(Path(url).as_posix())
            if path not in there:
                raise file.wrong("name files that are there", repr(url), CURE)
            if num_bytes is not None:
                _same_bytes(file, there, path, num_bytes)
            num_bytes, stamp = there[path]
        elif num_bytes is not None:
            _count(file, f"the bytes of {url}", num_bytes)
        md5 = each.get("md5sum")
        stored = Content(f"md5:{md5.lower()}" if isinstance(md5, str) else "")
        entries.append(Entry(url, num_bytes or 0, size, each, stamp, stored))
    if not elsewhere:
        return Listed(entries)
    # named by URLs or paths: which location that is, the user has to say, not the index
    names = [each.name for each in entries]
    start = os.path.commonprefix(names).rfind("/") + 1  # noqa: RUF071 (cut at a slash)
    return Listed([each._replace(name=each.name[start:]) for each in entries], known=False)


def read_sizes(file: File, index: Mapping[str, Any]) -> Listed:
    """Read how many samples each file holds, by its name, as open_clip's sizes.json says."""
    there = file.location.find()
    for name, size in index.items():
        _count(file, f"the samples of {name}", size)
        if name not in there:
            raise file.wrong("name files that are there", repr(name), CURE)
    return Listed(
        [Entry(name, there[name][0], index[name], index[name], there[name][1]) for name in index]
    )


ENERGON = ".nv-meta"
ONE_SPLIT = (
    "pass a glob of the tars of one split, such as 'data/train-*.tar': they are counted by "
    "their headers"
)


def read_energon(file: File, index: Mapping[str, Any]) -> Listed:
    """Read what `energon prepare` counted, of a dataset whose shards are all of one split."""
    if not isinstance(index["shard_counts"], dict):
        raise file.wrong("have an object of shard_counts", repr(index["shard_counts"]), CURE)
    there = file.location.find(f"{ENERGON}/split.*")
    for name in [each for each in there if each.endswith((".yaml", ".json"))]:
        try:
            import yaml
        except ImportError:
            raise IndexPlanError(
                "Energon's splits", "need PyYAML", None, "pip install pyyaml"
            ) from (None)
        try:
            said = yaml.safe_load(file.location.read(name))
            splits = {part: shards for part, shards in said["split_parts"].items() if shards}
            named = {each for shards in splits.values() for name in shards for each in _all(name)}
            excluded = bool(said.get("exclude"))
        except (yaml.YAMLError, ValueError, TypeError, KeyError, AttributeError):
            raise file.wrong("have a split.yaml with split_parts", name, CURE) from None
        if len(splits) > 1 or excluded or named != index["shard_counts"].keys():
            got = f"{name} with {', '.join(splits)}{' and exclusions' if excluded else ''}"
            raise file.wrong("have one split, of all shards", got, ONE_SPLIT)
    return read_sizes(file, index["shard_counts"])


def _all(name: str) -> list[str]:
    """Return the names that one such as shard_{000..012}.tar stands for."""
    if (found := re.search(r"\{(\d+)\.\.(\d+)\}", name)) is None:
        return [name]
    numbers = [str(each).zfill(len(found[1])) for each in range(int(found[1]), int(found[2]) + 1)]
    return [
        each
        for number in numbers
        for each in _all(name[: found.start()] + number + name[found.end() :])
    ]


STATS = "_stats.json"


def read_stats(location: Location, names: list[str], num_threads: int) -> Listed:
    """Read what img2dataset notes of each tar that it wrote: 00000_stats.json of 00000.tar."""
    there = location.find()
    tars = {name: f"{name.removesuffix(STATS)}.tar" for name in sorted(names)}

    def read(name: str) -> Entry:
        file = File(location, name, 0)
        said = read_json(file)
        size = _count(file, "successes", said.get("successes") if isinstance(said, dict) else said)
        if tars[name] not in there:
            raise file.wrong("name files that are there", repr(tars[name]), CURE)
        num_bytes, stamp = there[tars[name]]
        return Entry(tars[name], num_bytes, size, said, stamp)

    with ThreadPoolExecutor(num_threads) as pool:
        return Listed([*pool.map(read, tars)])


def read_hugging_face(file: File, index: Mapping[str, Any]) -> list[File]:
    """Return the files of a dataset that `save_to_disk` wrote, in its order."""
    try:
        names = [each["filename"] for each in index["_data_files"]]
        there = file.location.find("*.arrow")
        return [File(file.location, each, *there[each]) for each in names]
    except (KeyError, TypeError) as error:
        cure = "restore them, or save the dataset again"
        raise file.wrong("list files that are there", f"{error}", cure) from None


class Index(NamedTuple):
    """A format with an index of its shards."""

    words: str
    """Its name for people."""
    names: tuple[str, ...]
    """What a folder has that holds a dataset of it."""
    field: str
    """What its index has, a JSON object."""
    read: Callable[[File, Mapping[str, Any]], Listed | list[File]]
    """Return what an index of this name lists."""


INDEXES = {
    "arrow": Index(
        "a saved Hugging Face dataset", ("state.json",), "_data_files", read_hugging_face
    ),
    "mds": Index("MDS", ("index.json",), "shards", read_mds),
    "wids": Index("WebDataset's wids", ("index.json",), "wids_version", read_wids),
    "energon": Index("Energon", (f"{ENERGON}/.info.json",), "shard_counts", read_energon),
    "sizes": Index("counts by name", ("sizes.json",), "", read_sizes),
}
