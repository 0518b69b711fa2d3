"""Verify a plan directory: every byte, against the order and the hashes.

Blocks of 4 MiB are shared out to a thread for each core, so that a plan of one chunk is as fast as
one of many. Each is hashed, and compared with the same block generated again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexplan import kernels
from indexplan.errors import IndexPlanError
from indexplan.files.columns import damage
from indexplan.files.format import HEADER_BYTES, INDICES, Build, Chunk, hashes_in
from indexplan.files.machine import num_cores
from indexplan.files.marking import Seen
from indexplan.files.read import Stored
from indexplan.files.running import run
from indexplan.orders.base import Order
from indexplan.orders.registry import is_one_to_one
from indexplan.orders.traits import Traits
from indexplan.stores.open import store_of
from indexplan.stores.publish import explained
from indexplan.stores.store import BLOCK_BYTES, Store

Octets = NDArray[np.uint8]

TASK_BLOCKS = 8  # blocks that a thread takes at a time, at most: some 20 ms of work


class Problem(NamedTuple):
    """What is wrong with a block; problems sort by place."""

    epoch: int
    chunk: int
    kind: str
    block: int
    said: str


@dataclass
class Findings:
    """What was found in the files of a plan directory.

    `not_generated` says why indices were not compared with what the order generates, `not_counted`
    why samples were not counted; they are empty if that was done.
    """

    num_bytes: int
    num_counted: int = 0
    problems: list[str] = field(default_factory=list)
    miscounts: list[str] = field(default_factory=list)
    not_generated: str = ""
    not_counted: str = ""


class Task(NamedTuple):
    """Blocks [first, stop) of a chunk file of `size` bytes."""

    chunk: Chunk
    size: int
    first: int
    stop: int


def check_files(stored: Stored, progress: Callable[[int, int], None] | None = None) -> Findings:
    """Compare every block with its hash and with what the order generates; count samples.

    Each problem names the chunk, the block and the first wrong position in it. If the order is not
    known here, indices are only counted.

    Raises
    ------
    PlanFileError
        If a file cannot be read, is not a plain file, or has changed its size.
    """
    build = stored.build
    source, why = stored.known
    root = store_of(stored.path)
    findings = Findings(sum(stored.sizes.values()), not_generated=why)
    findings.problems.extend(damage(root, build.spec))
    if source is not None and (said := _disagreements(build, source)):
        findings.problems.extend(said)
        findings.not_generated, source = "its order is not that of plan.json", None
    counts = source is None or not is_one_to_one(source)
    if build.traits.reads != "once":
        counts = False
        findings.not_counted = "the order need not read every sample once"
    looking = _Looking(root, build, source)
    found: list[Problem] = []
    done = 0

    def take(_: Task, result: tuple[int, list[Problem]]) -> None:
        nonlocal done
        done += result[0]
        found.extend(result[1])
        if progress is not None:
            progress(done, findings.num_bytes)

    if progress is not None:
        progress(0, findings.num_bytes)
    reads = _num_reads(stored) if counts else {}
    # to count samples, one epoch after another, so that one bitmap is enough
    for epoch, tasks in groupby(_tasks(stored, source), lambda t: t.chunk.epoch if counts else -1):
        looking.seen = _bitmap(build, reads[epoch]) if counts else None
        run(None, _Looking.look, (looking,), tasks, take)
        if counts:
            findings.num_counted += build.num_samples
            findings.miscounts.extend(_miscounts(build, epoch, reads[epoch], looking.seen))
    if not counts and not findings.not_counted:
        if found:
            findings.not_counted = "blocks are wrong, as said above"
        else:  # right bytes prove it
            findings.num_counted = build.num_samples * len(build.epochs)
    findings.problems.extend(problem.said for problem in sorted(set(found)))
    return findings


def _disagreements(build: Build, source: Order) -> list[str]:
    """Return messages about numbers of plan.json that are not those of its order."""
    facts: dict[str, tuple[object, object]] = {
        "num_samples": (build.num_samples, source.num_samples),
        "num_units": (list(build.num_units), [source.num_units(epoch) for epoch in build.epochs]),
        "stream_key": (build.stream_key, source.stream_key),
    }
    for name in (each.name for each in fields(Traits)):
        facts[name] = getattr(build.traits, name), getattr(source.traits, name)
    return [
        f"plan.json: {name} is {said!r}; its order has {right!r}"
        for name, (said, right) in facts.items()
        if said != right
    ]


def _tasks(stored: Stored, source: Order | None) -> Iterator[Task]:
    """Yield tasks that are small enough for every core to have some, epoch by epoch."""
    build, sizes = stored.build, stored.sizes
    num_blocks = sum(-(-size // BLOCK_BYTES) for size in sizes.values())
    each = max(1, min(TASK_BLOCKS, num_blocks // (4 * num_cores())))
    for chunk in build.chunks():
        size = sizes[chunk.key]
        num_blocks = -(-size // BLOCK_BYTES)
        # the place of a bin in a file is known only after all bins before it
        step = num_blocks if build.traits.deals_bins and source is not None else each
        for first in range(0, num_blocks, step):
            yield Task(chunk, size, first, min(num_blocks, first + step))


def _num_reads(stored: Stored) -> dict[int, int]:
    """Return how many indices the files of each epoch hold."""
    reads = dict.fromkeys(stored.build.epochs, 0)
    for (epoch, _, kind), size in stored.sizes.items():
        if kind == INDICES:
            reads[epoch] += (size - HEADER_BYTES) // stored.build.itemsize
    return reads


def _bitmap(build: Build, reads: int) -> Seen | None:
    """Return a bit for each sample; None if the epoch is far too short to hold all of them."""
    if build.num_samples > 64 * reads:
        return None
    return Seen(build.num_samples)


def _miscounts(build: Build, epoch: int, reads: int, seen: Seen | None) -> list[str]:
    if seen is not None:
        return seen.problems(epoch)
    return [f"epoch {epoch}: only {reads} of {build.num_samples} samples are read"]


class _Looking:
    """What the threads share: the files, what they must hold, and which samples were seen."""

    def __init__(self, root: Store, build: Build, source: Order | None) -> None:
        self.root = root
        self.build = build
        self.source = source
        self.seen: Seen | None = None
        self._marking = threading.Lock()
        self._own = threading.local()

    def _buffers(self) -> tuple[Octets, Octets]:
        """Return a thread's own memory for two blocks: what a file holds, and what it must hold."""
        if not hasattr(self._own, "buffers"):
            self._own.buffers = np.empty(BLOCK_BYTES, np.uint8), np.empty(BLOCK_BYTES, np.uint8)
        buffers: tuple[Octets, Octets] = self._own.buffers
        return buffers

    def look(self, task: Task) -> tuple[int, list[Problem]]:
        """Return how many bytes the blocks of a task have, and what is wrong with them."""
        chunk = task.chunk
        num_bytes = min(task.size, task.stop * BLOCK_BYTES) - task.first * BLOCK_BYTES
        data, _ = self._buffers()
        problems: list[Problem] = []

        def note(block: int, said: str) -> None:
            said = f"{chunk.name}, block {block}: {said}"
            problems.append(Problem(chunk.epoch, chunk.number, chunk.kind, block, said))

        path = f"{self.root.path}/{chunk.name}"
        with explained("readable", path), self.root.open(chunk.name) as stream:
            if (size := stream.seek(0, 2)) != task.size:
                note(0, f"the file must hold {task.size} bytes; got {size}")
                return num_bytes, problems
            stream.seek(task.first * BLOCK_BYTES)
            expected = self._expected(task, data)
            hashes = self._hashes(task, note)
            for number in range(task.first, task.stop):
                length = min(BLOCK_BYTES, task.size - number * BLOCK_BYTES)
                got = data[: stream.readinto(data[:length].data)]
                if hashes is not None and kernels.xxh64.xxh64(got) != hashes[number]:
                    note(number, "its hash is another")
                must = next(expected, data[:0])
                if len(got) != len(must) or (got.view("<u4") != must.view("<u4")).any():
                    note(number, _first_difference(self.build, chunk, number, got, must))
                self._mark(chunk, number, got)
        return num_bytes, problems

    def _hashes(self, task: Task, note: Callable[[int, str], None]) -> list[int] | None:
        """Return the hashes of a chunk; None if its file of them cannot be right."""
        content = self.root.read(task.chunk.hashes_name)
        try:
            return hashes_in(content, self.build.sha256, task.chunk, task.size)
        except IndexPlanError as error:
            note(0, str(error))
            return None

    def _expected(self, task: Task, data: Octets) -> Iterator[Octets]:
        """Yield what the blocks of a task must hold; if that is not known, what they do hold."""
        chunk, (_, block) = task.chunk, self._buffers()
        if self.source is not None and self.build.traits.deals_bins:
            for content in self.build.content(self.source, chunk):
                yield np.frombuffer(content, np.uint8)
            return
        for number in range(task.first, task.stop):
            if self.source is not None:
                yield self.build.fill_block(self.source, chunk, number, block)
                continue
            yield data[: min(BLOCK_BYTES, task.size - number * BLOCK_BYTES)]

    def _mark(self, chunk: Chunk, number: int, got: Octets) -> None:
        if self.seen is not None and chunk.kind == INDICES:
            numbers = got[0 if number else HEADER_BYTES :]
            each = self.build.itemsize
            with self._marking:
                self.seen.mark(numbers[: len(numbers) // each * each].view(self.build.dtype))


def _first_difference(build: Build, chunk: Chunk, block: int, got: Octets, must: Octets) -> str:
    """Return a message about the first wrong number of a block, or about its header."""
    skip = HEADER_BYTES if block == 0 else 0
    if (got[:skip] != must[:skip]).any():
        return "the .npy header is wrong"
    dtype = np.dtype(build.type_of(chunk.kind)[0])
    there = got[skip : len(got) // dtype.itemsize * dtype.itemsize].view(dtype)
    right = must[skip:].view(dtype)
    if len(there) != len(right):
        return f"it holds {len(there)} numbers, not {len(right)}"
    i = int(np.argmax(there != right))
    store = (block * BLOCK_BYTES + skip - HEADER_BYTES) // dtype.itemsize + i
    what = "number" if build.traits.deals_bins else "position"
    first = store if build.traits.deals_bins else chunk.start + store
    return f"{what} {first} of epoch {chunk.epoch} holds {there[i]}, not {right[i]}"
