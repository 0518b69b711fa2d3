"""Parts of a build, for job arrays: which chunks a part builds, and the record that it leaves.

A part generates each of its chunks, and writes it or compares every byte of it, before it leaves
the hashes. So what a record says is worth as much as what the task of an executor returns, and
the plan is finished without reading the chunks again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexplan.canonical import canonical_json, check_fields, parse_json_object
from indexplan.errors import IndexPlanError, PlanFileError, whole, wrong
from indexplan.files.format import BLOCK_BYTES, FORMAT, FORMAT_VERSION, MANIFEST, Build, Chunk
from indexplan.files.places import Place
from indexplan.partition import part_of, split

Hashes = NDArray[np.uint64]

NUM_PARTS_STOP = 10**9

_NAME = re.compile(r"part-([0-9]{5,9})-of-([0-9]{5,9})\.json")


class UnfinishedError(PlanFileError):
    """Some chunks of a build are missing."""


def check_part(part: Any) -> tuple[int, int]:
    """Return (number, of how many), or raise `IndexPlanError`."""
    try:
        number, of = part
    except (TypeError, ValueError):
        rule = "a pair (number, of how many), such as (1, 4)"
        raise wrong("part", rule, part, "leave it out to build all") from None
    cure = "pass (number, of how many), such as (1, 4)"
    of = whole("part's second number", of, 1, NUM_PARTS_STOP, cure)
    number = whole("part's first number", number, 0, NUM_PARTS_STOP, cure)
    if not 1 <= number <= of:
        cure = f"count from 1, in a job array with --array=1-{of}"
        raise wrong("part", f"from 1/{of} to {of}/{of}", f"{number}/{of}", cure)
    return number, of


@dataclass(frozen=True, kw_only=True)
class Part:
    """The record of a part that was built: the content of `part-*-of-*.json`."""

    number: int
    of: int
    plan: dict[str, Any]
    chunk_bytes: tuple[int, ...]
    hashes: Hashes

    @property
    def name(self) -> str:
        """The record's name in the plan directory."""
        return f"part-{self.number:05d}-of-{self.of:05d}.json"

    def to_dict(self, build: Build) -> dict[str, Any]:
        """Return the record as JSON types, with the sha256 of its own canonical JSON."""
        content = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "build_sha256": _sha256(build.to_dict()),
            "part": [self.number, self.of],
            "plan": self.plan,
            "chunk_bytes": list(self.chunk_bytes),
            "blocks": self.hashes.astype("<u8").tobytes().hex(),
        }
        return {**content, "part_sha256": _sha256(content)}

    @classmethod
    def from_dict(cls, data: dict[str, Any], build: Build, number: int, of: int) -> Part:
        """Return the record of this part of this build, or raise `IndexPlanError`."""
        own = ["build_sha256", "part", "plan", "chunk_bytes", "blocks", "part_sha256"]
        check_fields("the record of a part", data, ["format", "format_version", *own], "")
        content = {name: data[name] for name in data if name != "part_sha256"}
        if data["part_sha256"] != _sha256(content):
            raise IndexPlanError("a record must be as it was written; it was edited")
        if data["build_sha256"] != _sha256(build.to_dict()) or data["part"] != [number, of]:
            raise IndexPlanError("a record must be of the part and the build that it lies in")
        sizes = data["chunk_bytes"]
        hashes = np.frombuffer(bytes.fromhex(data["blocks"]), "<u8")
        num_blocks = sum(-(-size // BLOCK_BYTES) for size in sizes)
        if (len(sizes), len(hashes)) != (len(share(build, number, of)), num_blocks):
            raise IndexPlanError("a record must hold its part's chunks and blocks; it does not")
        return cls(number=number, of=of, plan=data["plan"], chunk_bytes=tuple(sizes), hashes=hashes)

    def chunks(self, build: Build) -> Iterator[tuple[int, tuple[int, Hashes]]]:
        """Yield the number in the build of each chunk of the part, with its size and hashes."""
        first = 0
        for chunk, size in zip(share(build, self.number, self.of), self.chunk_bytes, strict=True):
            num_blocks = -(-size // BLOCK_BYTES)
            yield chunk, (size, self.hashes[first : first + num_blocks])
            first += num_blocks


def share(build: Build, number: int, of: int) -> range:
    """Return which of the build's chunks a part builds; parts differ by one chunk at most."""
    chunks = build.num_chunks
    return range(split(chunks, of, number - 1), split(chunks, of, number))


def record(
    root: Place,
    build: Build,
    number: int,
    of: int,
    plan: dict[str, Any],
    left: list[tuple[int, Hashes]],
) -> None:
    """Leave the record of a part that was built: the size and the hashes of each of its chunks."""
    sizes = tuple(size for size, _ in left)
    hashes = np.concatenate([np.empty(0, np.uint64), *(hashes for _, hashes in left)])
    part = Part(number=number, of=of, plan=plan, chunk_bytes=sizes, hashes=hashes)
    try:
        root.publish(part.name, [canonical_json(part.to_dict(build)).encode()])
    except PlanFileError:
        if not root.has(MANIFEST):  # else another has just finished, and swept up
            raise


def sweep(root: Place) -> None:
    """Delete the records: the plan is finished, and its manifest says what they said."""
    for name, _, _ in _records(root):
        root.remove(name)


def gather(
    root: Place, build: Build, progress: Callable[[int, int], None] | None = None
) -> tuple[dict[str, Any], list[tuple[int, Hashes]]]:
    """Return what the parts have left: the plan, and the size and hashes of every chunk.

    Raises
    ------
    UnfinishedError
        If a chunk is missing, or the record of its part.
    PlanFileError
        If a record was edited or is that of another build, or a chunk has another size.
    """
    there = _records(root)
    total = build.num_chunks
    # by their names first: in an array of a thousand parts, each asks whether it is the last
    recorded = {chunk for _, number, of in there for chunk in share(build, number, of)}
    if lost := sorted(set(range(total)) - recorded):
        raise _unfinished(root, build, lost)
    parts = [part for one in there if (part := _read(root, build, *one)) is not None]
    found = dict(chunk for part in parts for chunk in part.chunks(build))
    if progress is not None:
        progress(0, total)
    sizes = root.sizes(chunk.name for chunk in build.chunks())
    for number, (chunk, size) in enumerate(zip(build.chunks(), sizes, strict=True)):
        if number not in found or size is None:
            lost.append(number)
        elif size != found[number][0]:
            cure = "delete it, and run its part again"
            must = f"must hold {found[number][0]} bytes; got {size}"
            raise PlanFileError(f"{root.path}/{chunk.name} {must}; {cure}")
        if progress is not None:
            progress(number + 1, total)
    if lost:
        raise _unfinished(root, build, lost)
    return parts[0].plan, [found[number] for number in range(total)]


def _records(root: Place) -> list[tuple[str, int, int]]:
    """Return the records in a plan directory: name, number, of how many; by number."""
    found = [match for name in sorted(root.names()) if (match := _NAME.fullmatch(name))]
    return [(match[0], int(match[1]), int(match[2])) for match in found]


def _read(root: Place, build: Build, name: str, number: int, of: int) -> Part | None:
    """Return a record; None if whoever finished the build has swept it up just now."""
    try:
        text = root.read(name)
    except PlanFileError:
        if root.has(name):
            raise
        return None
    cure = f"delete it, and run part {number}/{of} again"
    try:
        return Part.from_dict(parse_json_object("a record", text, ""), build, number, of)
    except (IndexPlanError, TypeError, ValueError) as error:
        said = str(error).removesuffix("; ")  # whose cure is the same for all
        raise PlanFileError(f"{root.path}/{name}: {said}; {cure}") from error


def _unfinished(root: Place, build: Build, lost: list[int]) -> UnfinishedError:
    """Return the error that names the chunks that are missing, and the parts to run again."""
    missing = set(lost)
    chunks = [chunk for number, chunk in enumerate(build.chunks()) if number in missing]
    cure = "run the same build again"
    if there := _records(root):
        of = max(of for _, _, of in there)
        again = np.unique(part_of(build.num_chunks, of, np.array(lost))) + 1
        cure = f"run {_few('part', [f'{number}/{of}' for number in again])} again"
    rule = "must have all of its chunks"
    return UnfinishedError(f"{root.path} {rule}; got none of {_named(chunks)}; {cure}")


def _named(chunks: list[Chunk]) -> str:
    """Return 'chunks 3, 4 and 7 of epoch 0', for as many epochs as one can read."""
    words = []
    for epoch, group in groupby(chunks, lambda chunk: chunk.epoch):
        numbers = sorted({chunk.number for chunk in group})
        words.append(f"{_few('chunk', list(map(str, numbers)))} of epoch {epoch}")
    more = [f"those of {len(words) - 3} epochs more"] if len(words) > 3 else []
    return ", ".join([*words[:3], *more])


def _few(what: str, names: list[str]) -> str:
    """Return 'part 1/4', 'parts 1/4 and 2/4', or the first eight and how many there are more."""
    if len(names) == 1:
        return f"{what} {names[0]}"
    last = f"{len(names) - 8} more" if len(names) > 9 else names[-1]
    return f"{what}s {', '.join(names[:8] if len(names) > 9 else names[:-1])} and {last}"


def _sha256(data: Any) -> str:
    return hashlib.sha256(canonical_json(data).encode()).hexdigest()
