"""The shards that a process has open: as many as its plan reads at a time, and as memory holds."""

from __future__ import annotations

import os
import warnings
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from indexplan import Plan, Shards
from indexplan.errors import printable

UNPLANNED = 64  # shards that are kept open where no plan tells
SAMPLES = 2**20  # of a rank that are looked at, at most, to count what it reads at a time


class Limits(NamedTuple):
    """What a process that reads may keep open.

    Parameters
    ----------
    live : int
        Shards that it reads at a time, by the plan; 0 if no plan tells.
    room : int
        Bytes of memory for them.
    processes : int
        How many processes of this machine read, and share its memory.
    """

    live: int
    room: int
    processes: int


class Held:
    """The rows of the shards that this process has open; those read longest ago are closed first.

    Twice the live ones are kept, since a shard that is over stays until others push it out: with
    as many as are live, the next one to be read would often be out already.

    Parameters
    ----------
    limits : numpy.ndarray
        int64, shape (3,): a `Limits`; or a tensor of them, in memory that all workers share.
    keep_open : int or None
        The most shards, if the user says.
    """

    def __init__(self, limits: Any, keep_open: int | None) -> None:
        self.limits, self.keep_open = limits, keep_open
        self._rows: OrderedDict[int, tuple[Any, int]] = OrderedDict()
        self._num_bytes = 0
        self._warned = False

    def __iter__(self) -> Iterator[int]:
        return iter(list(self._rows))

    def get(self, shard: int) -> Any:
        """Return the rows of a shard; None if it is not open."""
        if shard not in self._rows:
            return None
        self._rows.move_to_end(shard)
        return self._rows[shard][0]

    def close(self, shard: int) -> None:
        """Close a shard."""
        self._num_bytes -= self._rows.pop(shard)[1]

    def close_all(self) -> None:
        """Close all shards."""
        self._rows.clear()
        self._num_bytes = 0

    def add(self, shard: int, rows: Any, path: Path) -> None:
        """Keep the rows of a shard, which were read from a file; close others for it."""
        limits = Limits(*self.limits.tolist())
        most = self.keep_open or 2 * limits.live or UNPLANNED
        taken = _in_memory(rows, path)
        while len(self._rows) >= most:
            self.close(next(iter(self._rows)))
        if self.keep_open is None:
            while self._rows and self._num_bytes + taken > limits.room:
                if len(self._rows) < limits.live:
                    self._warn(limits, self._num_bytes + taken)
                self.close(next(iter(self._rows)))
        self._rows[shard] = rows, taken
        self._num_bytes += taken

    def _warn(self, limits: Limits, num_bytes: int) -> None:
        if self._warned:
            return
        self._warned = True
        shared = f"{limits.processes} process{'es' * (limits.processes > 1)}"
        all_of_them = num_bytes * limits.live // (len(self._rows) + 1)
        message = (
            f"memory must hold the {limits.live} shards that each worker reads at a time, some "
            f"{size_of(all_of_them)} once they are opened; got {size_of(limits.room)}, half of "
            f"this machine's memory divided by {shared}; "
            f"{len(self._rows)} are kept open, and others are opened again and again: use smaller "
            "row groups, fewer columns, lanes or workers, or pass keep_open"
        )
        warnings.warn(printable(message), stacklevel=4)


def read_at_a_time(plan: Plan, shards: Shards, where: tuple[int, int], rank: int, each: int) -> int:
    """Return the most shards of a sub-epoch that one worker of a rank reads at a time.

    A shard counts from the first to the last of the worker's batches that reads it.

    Parameters
    ----------
    plan : Plan
    shards : Shards
    where : tuple
        The epoch and the sub-epoch.
    rank : int
    each : int
        The worker gets one batch of so many.
    """
    batches, num_samples = [], 0
    for number, batch in enumerate(plan.batches(*where, rank=rank)):
        num_samples += len(batch)
        if number % each == 0:
            batches.append(batch)
        if num_samples > SAMPLES:
            break
    if not batches:
        return 1
    step = np.repeat(np.arange(len(batches)), [len(batch) for batch in batches])
    which, _ = shards.locate(np.concatenate(batches))
    read, first = np.unique(which, return_index=True)
    last = np.zeros(len(shards), np.int64)
    np.maximum.at(last, which, step)
    change = np.zeros(len(batches) + 1, np.int64)
    np.add.at(change, step[first], 1)
    np.subtract.at(change, last[read] + 1, 1)
    return int(np.cumsum(change).max())


def limits_of(live: int, processes: int) -> Limits:
    """Return what each of some processes of this machine may keep open: half of its memory."""
    return Limits(live, memory() // 2 // processes, processes)


def memory() -> int:
    """Return the bytes of memory that processes of this machine, or container, may take in all."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # no such file, or "max"
            found = min(found, int(Path(limit).read_text()))
    return found


def size_of(num_bytes: int) -> str:
    """Write a number of bytes for people."""
    number, unit = float(num_bytes), "bytes"
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if number < 1000 or unit == "TB":
            break
        number /= 1000
    return f"{number:.3g} {unit}"


def _in_memory(rows: Any, path: Path) -> int:
    """Return how many bytes rows take; of those that do not tell, take those of the file."""
    if isinstance(rows, np.memmap):
        return 0
    told = getattr(rows, "nbytes", None)
    if isinstance(told, int):
        return told
    with suppress(OSError):  # it was dropped just now
        return path.stat().st_blocks * 512
    return 0
