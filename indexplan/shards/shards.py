"""Shards: how many samples each of a dataset's files, or of their parts, holds."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from indexplan.answers import Answer
from indexplan.canonical import canonical_json, check_fields, parse_json_object
from indexplan.errors import Cure, counted, integer, invalid
from indexplan.once import once
from indexplan.orders.arguments import as_int64
from indexplan.orders.columns import Column
from indexplan.orders.shard_shuffle import sizes_of
from indexplan.shards.by_file import DIGEST, FORMATS
from indexplan.shards.by_index import Content
from indexplan.shards.dataset import Dataset
from indexplan.shards.location import location_at, location_of

FORMAT, VERSION = "indexplan-shards", 1
SHARDS = "shards"  # the last word of their identity's kind
CURE = Cure(
    "pass what Shards.to_json returned, or read the sizes again with shard_sizes",
    "write it again with `indexplan shards`",
)
INSIDE = "read the sizes of the folder that holds all files, or restore the JSON"

_LISTS: dict[str, type] = {"files": str, "num_bytes": int, "digests": str, "parts": int}
_FIELDS = ("format", "version", "kind", "whole_files", *_LISTS, "sizes")
_STAMPED = ("stamps", "stamped_in")  # of a location; optional


@dataclass(frozen=True, kw_only=True, eq=False)
class Shards(Answer):
    """The shards of a dataset and how many samples each holds; `shard_sizes` returns one.

    Pass it to `ShardShuffle`, and as `dataset=` to `save` and `load`. Sample i of the dataset is
    the one that comes after i others, shard after shard.

    Parameters
    ----------
    kind : str
        The format, such as parquet or mds; a name of your own for files of any other.
    whole_files : bool
        Whether each file is one shard; else its row groups or record batches are.
    files : sequence of str
        Names, relative to the folder that the shards are in.
    num_bytes : sequence of int
        Bytes of each file.
    digests : sequence of str
        32 hexadecimal digits for each file: a hash of its footer or header, or of what an index
        says about it.
    parts : sequence of int
        How many shards each file has, one after another.
    sizes : array_like of int, shape (num_shards,), or Column
        How many samples each shard has.
    path : str, optional
        The folder or URL that the shards are in. It is not part of the identity, and not saved.
    stamps : sequence of str, optional
        The ETag of each file in a store, or else the time of its last write; "" if there is
        neither. A file that has another stamp when it is fetched was replaced. Not part of the
        identity, because a copy may have others.
    stored : sequence of tuple, optional
        The hash that an index has for each file and, if only a compressed file is stored, the name,
        bytes and hash of that.

    Raises
    ------
    IndexPlanError
        If these have different lengths, a file is named twice or by a path that leads out of the
        folder (`..`, an absolute one, a URL), or no shard holds a sample.

    Examples
    --------
    >>> import indexplan as ip, numpy as np
    >>> for name, rows in (("a", 30), ("b", 0), ("c", 12)):
    ...     np.save(f"{name}.npy", np.zeros((rows, 4)))
    >>> shards = ip.shard_sizes("*.npy")
    >>> shards.names, shards.sizes.array.tolist()
    (('a.npy', 'b.npy', 'c.npy'), [30, 0, 12])
    >>> shards.locate([29, 30])
    (array([0, 2]), array([29,  0]))
    >>> order = ip.ShardShuffle(shards, lanes=2)
    """

    kind: str
    whole_files: bool
    files: tuple[str, ...]
    num_bytes: tuple[int, ...]
    digests: tuple[str, ...]
    parts: tuple[int, ...]
    sizes: Column
    path: str = field(default="", repr=False)
    stamps: tuple[str, ...] = field(default=(), repr=False)
    stored: tuple[Content, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        sizes, _ = sizes_of(self.sizes)
        if sizes.path is not None:  # copied, as files' names take more, so that no edit is read
            mapped, sizes = sizes, Column(sizes.array)
            mapped.check_file()
        object.__setattr__(self, "sizes", sizes)
        object.__setattr__(self, "stamps", tuple(self.stamps) or ("",) * len(self.files))
        stored = tuple(Content(*each) for each in self.stored) or (Content(),) * len(self.files)
        object.__setattr__(self, "stored", stored)
        for name in (*_LISTS, "stamps", "stored"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
            if len(getattr(self, name)) != len(self.files):
                rule, got = f"as many as its files, {len(self.files)}", len(getattr(self, name))
                raise invalid(f"{name} of shards", rule, got, CURE)
        # else names of shards could be made without end, by parts that add up all the same
        for name in ("parts", "num_bytes"):
            for each in getattr(self, name):
                integer(f"each of {name} of shards", each, 0, 2**63, CURE)
        if len(sizes) != sum(self.parts):
            rule = f"as many as its files have shards, {sum(self.parts)}"
            raise invalid("sizes of shards", rule, len(sizes), CURE)
        if len(set(self.files)) < len(self.files):
            ((twice, _),) = Counter(self.files).most_common(1)
            raise invalid("each file of shards", "named once", twice, "name it once in the index")
        for name in (*self.files, *(each.zip_name for each in stored if each.zip_name)):
            if not _is_inside(name):
                rule = (
                    "a name below the folder that shards are in, without .., / at its start or ://"
                )
                raise invalid("each file of shards", rule, name, INSIDE)

    @property
    def num_samples(self) -> int:
        """How many samples all shards hold together."""
        return int(self._firsts[-1])

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def files_tell(self) -> bool:
        """Whether the files tell themselves how many samples they hold; else an index does."""
        return self.kind in FORMATS

    @once
    def names(self) -> tuple[str, ...]:
        """The name of each shard: its file's name, then #0, #1, ... if it is a part of that."""
        if self.whole_files:
            return self.files
        files = zip(self.files, self.parts, strict=True)
        return tuple(f"{name}#{part}" for name, parts in files for part in range(parts))

    @once
    def _firsts(self) -> NDArray[np.int64]:
        """The first sample of each shard, and the end."""
        return np.concatenate([[0], np.cumsum(self.sizes.array, dtype=np.int64)])

    @once
    def _first_parts(self) -> NDArray[np.int64]:
        """The first shard of each file, and the end."""
        return np.concatenate([[0], np.cumsum(self.parts, dtype=np.int64)])

    def locate(self, indices: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return which shard samples are in, and at which row of it.

        Parameters
        ----------
        indices : array_like of int
            0 <= index < num_samples.

        Returns
        -------
        shards, rows : numpy.ndarray
            int64, both of the shape of `indices`.

        Raises
        ------
        IndexPlanError
            If an index is out of range.
        """
        array = as_int64("index", indices)
        if (bad := (array < 0) | (array >= self.num_samples)).any():
            rule, cure = f"from 0 to {self.num_samples - 1}", "pass numbers in that range"
            raise invalid("index", rule, int(array[bad].flat[0]), cure)
        shards = np.searchsorted(self._firsts, array, "right") - 1
        return shards, array - self._firsts[shards]

    def part(self, shard: int) -> tuple[str, int]:
        """Return the file that a shard is in, and which part of the file it is, from 0 on.

        Raises
        ------
        IndexPlanError
            If there is no such shard.
        """
        shard = integer("shard", shard, 0, len(self), "pass a number that locate returns")
        file = int(np.searchsorted(self._first_parts, shard, "right")) - 1
        return self.files[file], shard - int(self._first_parts[file])

    @once
    def identity(self) -> Dataset:
        """What a plan directory remembers of the shards: the same as of a `Dataset`."""
        digest = _sha256("".join(self.digests))
        sizes = [self.sizes.array.tolist(), self.parts, self.num_bytes]
        return Dataset(
            kind=f"{self.kind} {SHARDS}",
            pattern=None,
            num_samples=self.num_samples,
            num_bytes=sum(self.num_bytes),
            names_sha256=_sha256("\0".join(self.names)),
            sizes_sha256=_sha256(canonical_json(sizes)),
            header=f"{len(self.files)} of sha256 {digest}",
        )

    def __eq__(self, other: object) -> bool:
        return self.identity == other.identity if isinstance(other, Shards) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.identity)

    def stamp(self, file: int) -> str:
        """Return the current stamp of a file: its ETag, or the time of its last write.

        Parameters
        ----------
        file : int
            0 <= file < len(files).

        Returns
        -------
        str
            As in `stamps`: if the file was not replaced since, the same text.

        Raises
        ------
        PlanFileError
            If the file is not there, or cannot be asked for.
        IndexPlanError
            If the shards have no path, or there is no such file.
        """
        number = integer("file", file, 0, len(self.files), "pass a position in files")
        if not self.path:
            cure = "use Shards.from_json(text, path=their_folder)"
            raise invalid("shards", "in a place", "no path", cure)
        return location_at(self.path).stamp(self.stored[number].zip_name or self.files[number])

    def to_dict(self) -> dict[str, Any]:
        """Return the shards as JSON types."""
        fields = {name: getattr(self, name) for name in ("kind", "whole_files", *_LISTS)}
        lists = {name: list(of) if isinstance(of, tuple) else of for name, of in fields.items()}
        noted: dict[str, Any] = {}
        if any(self.stamps) and self.path:
            noted = {"stamps": list(self.stamps), "stamped_in": _digest_of_location(self.path)}
        if any(each != Content() for each in self.stored):
            noted["stored"] = [list(each) for each in self.stored]
        sizes = self.sizes.array.tolist()
        return {"format": FORMAT, "version": VERSION, **lists, "sizes": sizes, **noted}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], path: str = "") -> Shards:
        """Return the shards that `to_dict` described; see `from_json`."""
        what = "shards"
        if not isinstance(data, Mapping):
            raise invalid(what, "an object", data, CURE)
        noted = _STAMPED if any(name in data for name in _STAMPED) else ()
        stored = data.get("stored", [])
        check_fields(what, data, (*_FIELDS, *noted, *(["stored"] if stored else [])), CURE)
        if not isinstance(stored, list) or any(not _is_stored(each) for each in stored):
            rule = "a list of [hash, zip_name, zip_bytes, zip_hash]"
            raise invalid("stored of shards", rule, stored, CURE)
        if (data["format"], data["version"]) != (FORMAT, VERSION):
            rule = f"format {FORMAT}, version {VERSION}"
            raise invalid(what, f"of {rule}", [data["format"], data["version"]], CURE)
        scalars = {"kind": str, "whole_files": bool, **({"stamped_in": str} if noted else {})}
        for name, kind in scalars.items():
            if type(data[name]) is not kind:
                raise invalid(f"{name} of shards", f"a {kind.__name__}", data[name], CURE)
        for name, kind in {**_LISTS, "sizes": int, **({"stamps": str} if noted else {})}.items():
            values = data[name]
            if not isinstance(values, list) or any(type(each) is not kind for each in values):
                raise invalid(f"{name} of shards", f"a list of {kind.__name__}", values, CURE)
        fields = {name: data[name] for name in _FIELDS if name not in ("format", "version")}
        location = location_of(path)[0].path if path else ""
        # a copy that lies elsewhere has other stamps
        here = noted and location and data["stamped_in"] == _digest_of_location(location)
        stamps = data["stamps"] if here else ()
        return cls(**fields, path=location, stamps=stamps, stored=tuple(stored))

    def to_json(self) -> str:
        """Return the shards as JSON text, to save instead of reading the files again."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes, path: str = "") -> Shards:
        """Return the shards that `to_json` wrote.

        Parameters
        ----------
        text : str or bytes
            What `to_json` returned, or `indexplan shards --json` printed.
        path : str, optional
            Where the shards are, for those who read them: their folder, or the glob that was passed
            to `shard_sizes`.

        Raises
        ------
        IndexPlanError
            If the text is not what `to_json` wrote.
        """
        return cls.from_dict(parse_json_object("shards", text, CURE, most_marks=2**24), path)

    def __str__(self) -> str:
        sizes = self.sizes.array
        of = "" if self.whole_files else f" in {counted(len(self.files), 'file')}"
        return (
            f"{counted(len(self), 'shard')} ({self.kind}){of}, "
            f"{counted(sum(self.num_bytes), 'byte')}: {counted(self.num_samples, 'sample')}, "
            f"{sizes.min():,} to {sizes.max():,} in a shard, "
            f"{self.num_samples / len(self):,.0f} on average"
        )


def _is_stored(value: Any) -> bool:
    kinds = [type(each) for each in value] if isinstance(value, list) else []
    return kinds == [str, str, int, str] and value[2] >= 0


def _is_inside(name: str) -> bool:
    """Return whether a name leads to something below a folder or a URL, whatever that is."""
    outside = name.startswith(("/", "\\")) or "://" in name or "::" in name or "\0" in name
    return bool(name) and not outside and ".." not in re.split(r"[/\\]", name)


def _digest_of_location(path: str) -> str:
    location = path if "://" in path else str(Path(path).resolve())
    return _sha256(location)[:DIGEST]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
