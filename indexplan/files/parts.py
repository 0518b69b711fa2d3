"""Parts of a build, for job arrays: which chunks a part builds, and the record that it writes.

A part generates each of its chunks, and writes it or compares every byte of it, before it records
the hashes. So a record is worth as much as what a task of an executor returns, and the plan is
finished without reading the chunks again.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexplan.canonical import canonical_json, check_fields, parse_json_object
from indexplan.errors import Cure, IndexPlanError, PlanFileError, counted, integer, wrong
from indexplan.files.directory import PlanDirectory
from indexplan.files.format import (
    FORMAT,
    FORMAT_VERSION,
    HEADER_BYTES,
    MANIFEST,
    Build,
    Written,
    check_format,
    sha256_of,
)
from indexplan.once import once
from indexplan.orders.fields import difference_in_words
from indexplan.parts import part_of, split
from indexplan.stores.store import BLOCK_BYTES

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
    written: tuple[Written, ...]

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
            "chunk_bytes": [each.size for each in self.written],
            "blocks": hashes_of(self.written).tobytes().hex(),
        }
        return {**content, "part_sha256": sha256_of(content)}

    @classmethod
    def from_dict(
        cls, data: dict[str, Any], build_sha256: str, num_chunks: int, number: int, of: int
    ) -> Part:
        """Return the record of this part of this build, or raise `IndexPlanError`."""
        check_format(data)
        own = ["build_sha256", "part", "plan", "chunk_bytes", "blocks", "part_sha256"]
        check_fields("the record of a part", data, ["format", "format_version", *own], "")
        content = {name: data[name] for name in data if name != "part_sha256"}
        if data["part_sha256"] != sha256_of(content):
            raise IndexPlanError("a record", "must be as it was written", "an edited one", "")
        if data["build_sha256"] != build_sha256 or data["part"] != [number, of]:
            rule = "must belong to the part in its name, and to this build"
            raise IndexPlanError("a record", rule, "another part's, or build's", "")
        if not isinstance(data["chunk_bytes"], list):
            raise wrong("chunk_bytes", "a list of integers", data["chunk_bytes"], "")
        sizes = tuple(integer("a size", n, HEADER_BYTES, 2**63, "") for n in data["chunk_bytes"])
        hashes = _hashes_in(data["blocks"])
        ends = [*accumulate(-(-size // BLOCK_BYTES) for size in sizes)]
        num_blocks = ends[-1] if ends else 0
        if (len(sizes), len(hashes)) != (len(chunks_of(num_chunks, number, of)), num_blocks):
            raise IndexPlanError("a record", "must hold its part's chunks and blocks", "others", "")
        if not isinstance(data["plan"], dict):
            raise wrong("the plan of a record", "an object", data["plan"], "")
        written = map(Written, sizes, np.split(hashes, ends[:-1]))
        return cls(number=number, of=of, plan=data["plan"], written=tuple(written))


def chunks_of(num_chunks: int, number: int, of: int) -> range:
    """Return which of a build's chunks a part builds; parts differ by one chunk at most."""
    return range(split(num_chunks, of, number - 1), split(num_chunks, of, number))


def hashes_of(written: Iterable[Written]) -> Hashes:
    """Return the hashes of some chunks, one after another."""
    return np.concatenate([np.empty(0, "<u8"), *(each.hashes for each in written)])


def _hashes_in(text: Any) -> Hashes:
    """Return the hashes that a record has as text, or raise `IndexPlanError`."""
    try:
        return np.frombuffer(bytes.fromhex(text), "<u8")
    except (TypeError, ValueError):
        raise wrong("blocks", "16 hexadecimal digits for each block", text, "") from None


class Parts:
    """The records of a build's parts in a directory.

    Which there are is asked once; for a new look, make another one.
    """

    def __init__(self, directory: PlanDirectory, build: Build) -> None:
        self.store, self.build = directory.store, build

    @once
    def names(self) -> list[tuple[str, int, int]]:
        """The records that are there: name, number, of how many; by number."""
        matches = [match for name in sorted(self.store.names()) if (match := _NAME.fullmatch(name))]
        found = [(match[0], int(match[1]), int(match[2])) for match in matches]
        return [(name, number, of) for name, number, of in found if 1 <= number <= of]

    @once
    def _digest(self) -> str:
        """The sha256 of the build, which records name."""
        return sha256_of(self.build.to_dict())

    def check_first(self, plan: dict[str, Any]) -> None:
        """Raise `PlanFileError` if the first record that can be read has another partition.

        `gather` reports damaged ones.
        """
        for name, _, _ in self.names:
            with suppress(IndexPlanError):
                there = parse_json_object(name, self.store.read(name)).get("plan")
                if isinstance(there, dict):
                    break
        else:
            return
        check_partition(self.store.path, there, plan)

    def publish(self, part: Part) -> None:
        """Write the record of a part, or compare the one that is there."""
        text = canonical_json(part.to_dict(self._digest)).encode()
        try:
            if self.store.publish(part.name, [text]) or self.store.read(part.name) == text:
                return
            there = self._read(part.name, part.number, part.of)
            if there is not None:
                check_partition(self.store.path, there.plan, part.plan)
                raise PlanFileError(
                    f"{self.store.path}/{part.name}",
                    "must hold what its part generates",
                    "other hashes",
                    "delete it and run the same part again",
                )
        except PlanFileError:
            if not self.store.has(MANIFEST):  # else another builder has just finished, and swept up
                raise

    def gather(
        self, progress: Callable[[int, int], None] | None = None
    ) -> tuple[dict[str, Any], list[Written]]:
        """Return what the parts have recorded: the plan, and every chunk.

        Raises
        ------
        UnfinishedError
            If a chunk is missing, or the record of its part; the latter is found out quickly.
        PlanFileError
            If a record was edited or is that of another build or partition, or a chunk has another
            size.
        """
        total = self.build.num_chunks
        # by their names first: each of a thousand parts asks whether it is the last
        if lost := _gaps((chunks_of(total, number, of) for _, number, of in self.names), total):
            raise UnfinishedError("no record of", lost)
        parts = [part for each in self.names if (part := self._read(*each)) is not None]
        for part in parts[1:]:
            check_partition(self.store.path, parts[0].plan, part.plan)
        found: dict[int, Written] = {}
        for part in parts:
            found.update(zip(chunks_of(total, part.number, part.of), part.written, strict=True))
        there = self._sized(found, progress)
        if lost := _gaps((range(number, number + 1) for number in there), total):
            raise UnfinishedError("none of", lost)
        return parts[0].plan, [found[number] for number in range(total)]

    def _sized(
        self, found: dict[int, Written], progress: Callable[[int, int], None] | None
    ) -> list[int]:
        """Return which recorded chunks are there, all of which must have their sizes."""
        total = self.build.num_chunks
        if progress is not None:
            progress(0, total)
        there = []
        sizes = self.store.sizes(chunk.name for chunk in self.build.chunks())
        for number, (chunk, size) in enumerate(zip(self.build.chunks(), sizes, strict=True)):
            if number in found and size is not None:
                if size != found[number].size:
                    rule = f"must hold {found[number].size} bytes"
                    cure = "delete it, and run its part again"
                    raise PlanFileError(f"{self.store.path}/{chunk.name}", rule, size, cure)
                there.append(number)
            if progress is not None:
                progress(number + 1, total)
        return there

    def _read(self, name: str, number: int, of: int) -> Part | None:
        """Return a record; None if another builder has just finished, and swept it up."""
        try:
            text = self.store.read(name)
        except PlanFileError:
            if self.store.has(name):
                raise
            return None
        cure = f"delete it, and run part {number}/{of} again"
        try:
            data = parse_json_object("a record", text, "")
            return Part.from_dict(data, self._digest, self.build.num_chunks, number, of)
        except IndexPlanError as error:  # the cure is the same for all, and added here
            what = f"{self.store.path}/{name}: {error.what}"
            raise PlanFileError(what, error.rule, error.got, cure) from error

    def missing(self, error: UnfinishedError) -> PlanFileError:
        """Return the error that names the chunks that are missing, and the parts to run again."""
        cure = "run the same build again"
        if self.names:
            of, total = max(of for _, _, of in self.names), self.build.num_chunks
            ends = np.array([(lost.start, lost.stop - 1) for lost in error.lost])
            held = [range(a, b + 1) for a, b in part_of(total, of, ends).tolist()]
            again = _gaps(_gaps(held, of), of)  # a part may lack several chunks
            cure = f"run {_few('part', again, lambda number: f'{number + 1}/{of}')} again"
        got = f"{error.what} {_named(self.build, error.lost)}"
        return PlanFileError(self.store.path, "must have all of its chunks", got, cure)

    def remove(self) -> None:
        """Delete the records: the plan is finished, and its manifest has what they had."""
        for name, _, _ in self.names:
            self.store.remove(name)


def check_partition(
    path: str, there: dict[str, Any], mine: dict[str, Any], *, finished: bool = False
) -> None:
    """Raise `PlanFileError` if the plan that is there has another partition than this one."""
    if said := difference_in_words(there, mine):
        cure = "give all parts the same partition, or delete part-*.json and run every part again"
        if finished:
            cure = Cure(
                "load that plan and use plan.replace or plan.resume, or choose another path",
                "choose another path",
            )
        raise PlanFileError(
            path, "must be a build of the same partition", f"one with {said[:1000]}", cure
        )


def _gaps(ranges: Iterable[range], stop: int) -> list[range]:
    """Return what ranges leave out of [0, stop), as ranges that do not touch."""
    gaps, start = [], 0
    for one in sorted((one for one in ranges if one), key=lambda one: one.start):
        if start < one.start:
            gaps.append(range(start, one.start))
        start = max(start, one.stop)
    return [*gaps, range(start, stop)] if start < stop else gaps


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
