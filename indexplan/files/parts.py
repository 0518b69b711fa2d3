"""Parts of a build, for job arrays: which chunks a part builds, and the record that it writes.

A part generates each of its chunks, and writes it or compares every byte of it, before it records
the hashes. So a record is worth as much as what a task of an executor returns, and the plan is
finished without reading the chunks again.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexplan.canonical import canonical_json, check_fields, parse_json_object
from indexplan.errors import IndexPlanError, PlanFileError, counted, integer, shown, wrong
from indexplan.files.format import (
    FORMAT,
    FORMAT_VERSION,
    HEADER_BYTES,
    MANIFEST,
    Build,
    sha256_of,
)
from indexplan.partition.steps import part_of, split
from indexplan.stores.store import BLOCK_BYTES, Store

Hashes = NDArray[np.uint64]

NUM_PARTS_STOP = 10**9

_NAME = re.compile(r"part-([0-9]{5,9})-of-([0-9]{5,9})\.json")


class UnfinishedError(Exception):
    """Some chunks of a build are missing, or their records; `missing` makes an error of it.

    Every part but the last runs into it, so it is normal, and not shown.
    """

    def __init__(self, what: str, lost: list[range]) -> None:
        super().__init__(what)
        self.what, self.lost = what, lost


def check_part(part: Any) -> tuple[int, int]:
    """Return (number, of how many), or raise `IndexPlanError`."""
    try:
        number, of = part
    except Exception:  # TypeError, ValueError, or whatever a user's class raises
        rule = "a pair (number, of how many), such as (1, 4)"
        raise wrong("part", rule, part, "leave it out to build all") from None
    cure = "pass (number, of how many), such as (1, 4)"
    of = integer("part's second number", of, 1, NUM_PARTS_STOP, cure)
    number = integer("part's first number", number, 0, NUM_PARTS_STOP, cure)
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

    def to_dict(self, build_sha256: str) -> dict[str, Any]:
        """Return the record as JSON types, with the sha256 of its own canonical JSON."""
        content = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "build_sha256": build_sha256,
            "part": [self.number, self.of],
            "plan": self.plan,
            "chunk_bytes": list(self.chunk_bytes),
            "blocks": self.hashes.astype("<u8").tobytes().hex(),
        }
        return {**content, "part_sha256": sha256_of(content)}

    @classmethod
    def from_dict(
        cls, data: dict[str, Any], build_sha256: str, num_chunks: int, number: int, of: int
    ) -> Part:
        """Return the record of this part of this build, or raise `IndexPlanError`."""
        own = ["build_sha256", "part", "plan", "chunk_bytes", "blocks", "part_sha256"]
        check_fields("the record of a part", data, ["format", "format_version", *own], "")
        content = {name: data[name] for name in data if name != "part_sha256"}
        if data["part_sha256"] != sha256_of(content):
            raise IndexPlanError("a record", "must be as it was written", "an edited one", "")
        if data["build_sha256"] != build_sha256 or data["part"] != [number, of]:
            rule = "must belong to the part in its name, and to this build"
            raise IndexPlanError("a record", rule, "another part's, or build's", "")
        sizes = tuple(integer("a size", n, HEADER_BYTES, 2**63, "") for n in data["chunk_bytes"])
        hashes = np.frombuffer(bytes.fromhex(data["blocks"]), "<u8")
        num_blocks = sum(-(-size // BLOCK_BYTES) for size in sizes)
        if (len(sizes), len(hashes)) != (len(chunks_of(num_chunks, number, of)), num_blocks):
            raise IndexPlanError("a record", "must hold its part's chunks and blocks", "others", "")
        if not isinstance(data["plan"], dict):
            raise wrong("the plan of a record", "an object", data["plan"], "")
        return cls(number=number, of=of, plan=data["plan"], chunk_bytes=sizes, hashes=hashes)

    def chunks(self, num_chunks: int) -> Iterator[tuple[int, tuple[int, Hashes]]]:
        """Yield each chunk of the part: its number in the build, its size and its hashes."""
        first = 0
        numbers = chunks_of(num_chunks, self.number, self.of)
        for chunk, size in zip(numbers, self.chunk_bytes, strict=True):
            num_blocks = -(-size // BLOCK_BYTES)
            yield chunk, (size, self.hashes[first : first + num_blocks])
            first += num_blocks


def chunks_of(num_chunks: int, number: int, of: int) -> range:
    """Return which of a build's chunks a part builds; parts differ by one chunk at most."""
    return range(split(num_chunks, of, number - 1), split(num_chunks, of, number))


def record(
    root: Store,
    build: Build,
    number: int,
    of: int,
    plan: dict[str, Any],
    left: list[tuple[int, Hashes]],
) -> None:
    """Write the record of a part that was built: the size and the hashes of each of its chunks."""
    sizes = tuple(size for size, _ in left)
    hashes = np.concatenate([np.empty(0, np.uint64), *(hashes for _, hashes in left)])
    part = Part(number=number, of=of, plan=plan, chunk_bytes=sizes, hashes=hashes)
    try:
        digest = sha256_of(build.to_dict())
        text = canonical_json(part.to_dict(digest)).encode()
        if not root.publish(part.name, [text]) and root.read(part.name) != text:
            there = _read(root, digest, build.num_chunks, part.name, number, of)
            if there is not None:
                check_partition(root, there.plan, plan)
                raise PlanFileError(
                    f"{root.path}/{part.name}",
                    "must hold what its part generates",
                    "other hashes",
                    "delete it and run the same part again",
                )
    except PlanFileError:
        if not root.has(MANIFEST):  # else another builder has just finished, and swept up
            raise


def first_plan(root: Store) -> dict[str, Any] | None:
    """Return the plan of the first record that can be read; `gather` reports damaged ones."""
    for name, _, _ in _records(root):
        with suppress(IndexPlanError):
            plan = parse_json_object(name, root.read(name)).get("plan")
            if isinstance(plan, dict):
                return plan
    return None


def check_partition(
    root: Store, there: dict[str, Any], mine: dict[str, Any], *, finished: bool = False
) -> None:
    """Raise `PlanFileError` if the plan that is there has another partition than this one."""
    names = [name for name in sorted({*there, *mine}) if _differ(there, mine, name)]
    if names:
        said = "; ".join(f"{name} {there.get(name)!r}, not {mine.get(name)!r}" for name in names)
        cure = "give all parts the same partition, or delete part-*.json and run every part again"
        if finished:
            cure = "load that plan and use plan.replace or plan.resume, or choose another path"
        raise PlanFileError(
            root.path, "must be a build of the same partition", f"one with {said[:1000]}", cure
        )


def _differ(there: dict[str, Any], mine: dict[str, Any], name: str) -> bool:
    return canonical_json(there.get(name)) != canonical_json(mine.get(name))


def sweep(root: Store) -> None:
    """Delete the records: the plan is finished, and its manifest has what they had."""
    for name, _, _ in _records(root):
        root.remove(name)


def gather(
    root: Store, build: Build, progress: Callable[[int, int], None] | None = None
) -> tuple[dict[str, Any], list[tuple[int, Hashes]]]:
    """Return what the parts have recorded: the plan, and the size and hashes of every chunk.

    Raises
    ------
    UnfinishedError
        If a chunk is missing, or the record of its part; the latter is found out quickly.
    PlanFileError
        If a record was edited or is that of another build or partition, or a chunk has another
        size.
    """
    there = _records(root)
    total = build.num_chunks
    # by their names first: each of a thousand parts asks whether it is the last
    if lost := _gaps((chunks_of(total, number, of) for _, number, of in there), total):
        raise UnfinishedError("no record of", lost)
    digest = sha256_of(build.to_dict())
    parts = [part for one in there if (part := _read(root, digest, total, *one)) is not None]
    for part in parts[1:]:
        check_partition(root, parts[0].plan, part.plan)
    found = dict(chunk for part in parts for chunk in part.chunks(total))
    if progress is not None:
        progress(0, total)
    there_now: list[range] = []
    sizes = root.sizes(chunk.name for chunk in build.chunks())
    for number, (chunk, size) in enumerate(zip(build.chunks(), sizes, strict=True)):
        if number in found and size is not None:
            if size != found[number][0]:
                cure = "delete it, and run its part again"
                raise PlanFileError(
                    f"{root.path}/{chunk.name}", f"must hold {found[number][0]} bytes", size, cure
                )
            there_now.append(range(number, number + 1))
        if progress is not None:
            progress(number + 1, total)
    if lost := _gaps(there_now, total):
        raise UnfinishedError("none of", lost)
    return parts[0].plan, [found[number] for number in range(total)]


def _gaps(ranges: Iterable[range], stop: int) -> list[range]:
    """Return what ranges leave out of [0, stop), as ranges that do not touch."""
    gaps, start = [], 0
    for one in sorted((one for one in ranges if one), key=lambda one: one.start):
        if start < one.start:
            gaps.append(range(start, one.start))
        start = max(start, one.stop)
    return [*gaps, range(start, stop)] if start < stop else gaps


def _records(root: Store) -> list[tuple[str, int, int]]:
    """Return the records in a plan directory: name, number, of how many; by number."""
    matches = [match for name in sorted(root.names()) if (match := _NAME.fullmatch(name))]
    found = [(match[0], int(match[1]), int(match[2])) for match in matches]
    return [(name, number, of) for name, number, of in found if 1 <= number <= of]


def _read(
    root: Store, build_sha256: str, num_chunks: int, name: str, number: int, of: int
) -> Part | None:
    """Return a record; None if another builder has just finished, and swept it up."""
    try:
        text = root.read(name)
    except PlanFileError:
        if root.has(name):
            raise
        return None
    cure = f"delete it, and run part {number}/{of} again"
    try:
        data = parse_json_object("a record", text, "")
        return Part.from_dict(data, build_sha256, num_chunks, number, of)
    except IndexPlanError as error:  # the cure is the same for all, and added here
        what = f"{root.path}/{name}: {error.what}"
        raise PlanFileError(what, error.rule, error.got, cure) from error
    except (TypeError, ValueError) as error:
        rule = "must be the record of a part"
        raise PlanFileError(f"{root.path}/{name}", rule, shown(error), cure) from error


def missing(root: Store, build: Build, error: UnfinishedError) -> PlanFileError:
    """Return the error that names the chunks that are missing, and the parts to run again."""
    cure = "run the same build again"
    if there := _records(root):
        of, total = max(of for _, _, of in there), build.num_chunks
        ends = np.array([(lost.start, lost.stop - 1) for lost in error.lost])
        held = [range(a, b + 1) for a, b in part_of(total, of, ends).tolist()]
        again = _gaps(_gaps(held, of), of)  # a part may lack several chunks
        cure = f"run {_few('part', again, lambda number: f'{number + 1}/{of}')} again"
    got = f"{error.what} {_named(build, error.lost)}"
    return PlanFileError(root.path, "must have all of its chunks", got, cure)


def _named(build: Build, lost: list[range]) -> str:
    """Return 'chunks 3, 4 and 7 of epoch 0', for the first three epochs."""
    words, stop = [], 0
    kinds = len(build.kinds)
    starts, stops = [one.start for one in lost], [one.stop for one in lost]
    for epoch, units in zip(build.epochs, build.num_units, strict=True):
        start, stop = stop, stop + kinds * -(-units // build.units_per_chunk)
        here = slice(bisect_right(stops, start), bisect_left(starts, stop))
        numbers = [
            range((max(a, start) - start) // kinds, -(-(min(b, stop) - start) // kinds))
            for a, b in zip(*(ends[here] for ends in (starts, stops)), strict=True)
        ]
        if numbers:
            words.append(f"{_few('chunk', numbers)} of epoch {epoch}")
    more = [f"those of {counted(len(words) - 3, 'epoch')} more"] if len(words) > 3 else []
    return ", ".join([*words[:3], *more])


def _few(what: str, ranges: list[range], name: Callable[[int], str] = str) -> str:
    """Return 'part 1/4', 'parts 1/4 and 2/4', or the first eight and how many more there are."""
    count = sum(map(len, ranges))
    names = [name(number) for number in islice(chain.from_iterable(ranges), 9)]
    if count == 1:
        return f"{what} {names[0]}"
    last = f"{count - 8} more" if count > 9 else names.pop()
    return f"{what}s {', '.join(names[:8])} and {last}"
