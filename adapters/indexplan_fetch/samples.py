"""Samples: read a dataset whose shards are fetched into a folder, in any process of a node."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from indexplan import IndexPlanError, Plan, Shards
from indexplan.errors import invalid, printable, shown
from indexplan_fetch.checks import check_shards, count, path_of, seconds
from indexplan_fetch.columns import columns_of
from indexplan_fetch.fetch import Clock, Settings
from indexplan_fetch.fetcher import ALL, Fetcher
from indexplan_fetch.folder import Failure, Folder
from indexplan_fetch.following import Loop
from indexplan_fetch.held import Held, limits_of, read_at_a_time
from indexplan_fetch.locks import is_held
from indexplan_fetch.metrics import (
    HITS,
    STALLS,
    WAITED,
    WORKERS,
    Fetched,
    Tally,
)
from indexplan_fetch.opening import ShardFile, by_row
from indexplan_fetch.source import Source
from indexplan_fetch.stalls import warning
from indexplan_fetch.sums import DamagedError, is_still

POLL = 0.005  # seconds between checks whether a shard is there
PATIENCE = 0.05  # seconds of waiting before the process that fetches hears about it
ALONE = 1.0  # seconds of waiting before a worker starts fetching itself, if no process fetches


class Samples:
    """The samples of a dataset in shards, by index; it learns from a loop what will be read.

    The arguments are documented where users pass them, and checked here. A subclass for a library
    whose loaders have workers knows which worker a process is, and which memory they all share.
    """

    def __init__(
        self,
        shards: Shards,
        open_shard: Callable[[ShardFile], Sequence[Any]],
        *,
        cache_dir: str | os.PathLike[str],
        cache_bytes: int | None = None,
        ranks_per_node: int | None = None,
        ahead: int = 16,
        num_epochs: int | None = None,
        num_threads: int = 4,
        tries: int = 4,
        stall_timeout: float = 60.0,
        keep_open: int | None = None,
    ) -> None:
        check_shards(shards)
        if not callable(open_shard):
            raise invalid(
                "open_shard",
                "a function of a ShardFile",
                open_shard,
                "pass open_parquet, or one that returns the rows of a file",
            )
        self.shards, self.open_shard = shards, open_shard
        columns = columns_of(open_shard, shards)
        self.folder = Folder(path_of(cache_dir), shards, columns)
        if columns is not None:
            Source(shards, self.folder.place, columns).check_columns()
        self.settings = Settings(
            cache_bytes=None if cache_bytes is None else count("cache_bytes", cache_bytes),
            ahead=count("ahead", ahead),
            num_threads=count("num_threads", num_threads),
            tries=count("tries", tries),
            num_epochs=None if num_epochs is None else count("num_epochs", num_epochs),
            leave_after=seconds("stall_timeout", stall_timeout),
        )
        if ranks_per_node is not None:
            ranks_per_node = count("ranks_per_node", ranks_per_node)
        self.ranks_per_node = ranks_per_node
        self.keep_open = None if keep_open is None else count("keep_open", keep_open)
        self._limits = self._shared(np.array(limits_of(0, 1)))
        self._tally = Tally(self._shared(np.zeros((WORKERS + 1, 3))))
        self._forget()

    def _shared(self, numbers: np.ndarray[Any, Any]) -> Any:
        """Return numbers in memory that this process shares with its workers."""
        return numbers

    def _worker(self) -> int | None:
        """Return this process's number among a loader's workers; None if it isn't a worker."""
        return None

    def _forget(self) -> None:
        """Reset what belongs to one process."""
        self._fetcher: Fetcher | None = None
        self._closed = False
        self._rows = Held(self._limits, self.keep_open)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to this process."""
        state = {name: each for name, each in vars(self).items() if name != "_rows"}
        return {**state, "_fetcher": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    def __len__(self) -> int:
        return self.shards.num_samples

    def __getitem__(self, index: int) -> Any:
        """Return a sample."""
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Any) -> list[Any]:
        """Return the samples of a batch, shard by shard."""
        shards, rows = self.shards.locate(indices)
        self._close_dropped()
        samples: list[Any] = [None] * len(shards)
        for shard in dict.fromkeys(shards.tolist()):
            places = np.flatnonzero(shards == shard).tolist()
            opened, wanted = self._open(shard), rows[places].tolist()
            read_many = getattr(opened, "__getitems__", None)
            found = [opened[row] for row in wanted] if read_many is None else read_many(wanted)
            for place, sample in zip(places, found, strict=True):
                samples[place] = sample
        return samples

    def stop(self) -> None:
        """Stop fetching; other threads that wait for a shard raise."""
        self._closed = True
        if self._fetcher is not None:
            self._fetcher.stop()

    def close_all(self) -> None:
        """Close all shards that are open."""
        self._rows.close_all()

    def check_open(self) -> None:
        """Raise if they were closed."""
        if self._closed:
            raise IndexPlanError(
                "a loader",
                "must be read before it is closed",
                "one that was closed",
                "make another, of plan.resume(loader.cursor)",
            )

    def report(self) -> Fetched:
        """Return what this process has fetched, and how its batches got their shards."""
        fetcher, sums = self._fetcher, self._tally.sums()
        if fetcher is None:
            return Fetched(0, 0, 0, *sums, 0)
        found = fetcher.counts
        counts = found.num_fetches, found.num_samples, found.num_bytes
        return Fetched(*counts, *sums, found.num_retries)

    def heard(self) -> None:
        """Report warnings; `PlanLoader` calls it when the loop has received a batch."""
        fetcher = self._fetcher
        if fetcher is not None and fetcher.room.warning is not None:
            message, fetcher.room.warning = fetcher.room.warning, None
            warnings.warn(message, stacklevel=3)

    def expect(self, plan: Plan, where: tuple[int, int], rank: int, workers: int) -> None:
        """Count the shards that each worker reads at a time in a sub-epoch, before they start.

        Parameters
        ----------
        plan : Plan
        where : tuple
            The epoch and the sub-epoch.
        rank : int
        workers : int
            How many processes read; each gets every workers-th batch. At least 1.
        """
        live = read_at_a_time(plan, self.shards, where, rank, workers)
        if self.keep_open is not None and self.keep_open < live:
            message = (
                f"keep_open must be at least {live}, the shards that each worker reads at a time; "
                f"got {self.keep_open}; pass {2 * live}, or leave it out: now shards are opened "
                "again and again"
            )
            warnings.warn(printable(message), stacklevel=4)
        live = max(live, int(self._limits[0]))  # another loader may read it, too
        processes = len(self.ranks(plan, rank)) * workers
        for place, number in enumerate(limits_of(live, processes)):
            self._limits[place] = number

    def follow(self, loop: Loop) -> None:
        """Fetch for a loop."""
        self._fetching().follow(loop)

    def ranks(self, plan: Plan, rank: int) -> range:
        """Return the ranks of this node."""
        world_size = plan.world_size or 1
        each = self.ranks_per_node
        if each is None:
            said = os.environ.get("LOCAL_WORLD_SIZE") if world_size > 1 else "1"
            if said is None or world_size not in {1, int(os.environ.get("WORLD_SIZE", "0"))}:
                raise IndexPlanError(
                    "ranks_per_node",
                    "must be given where torchrun does not tell which ranks share a node",
                    f"{world_size} ranks of the plan",
                    "pass how many of them share cache_dir",
                )
            each = int(said)
            if os.environ.get("RANK") == str(rank) and "LOCAL_RANK" in os.environ:
                first = rank - int(os.environ["LOCAL_RANK"])  # nodes may differ in size
                return range(first, min(first + each, world_size))
        first = rank // each * each
        return range(first, min(first + each, world_size))

    def _fetching(self) -> Fetcher:
        """Return the fetcher of this process; it is idle while another process fetches."""
        if self._fetcher is None or not self._fetcher.alive:
            self.folder.make()
            self._fetcher = Fetcher(self.folder, self.shards, self.settings)
            weakref.finalize(self, self._fetcher.stop)
        return self._fetcher

    def _has_fetcher(self) -> bool:
        """Return whether a thread of this process fetches, or waits for its turn."""
        return self._fetcher is not None and self._fetcher.alive

    def _open(self, shard: int) -> Any:
        """Return the rows of a shard, after waiting for it."""
        if (held := self._rows.get(shard)) is not None:
            return held
        name, number = self.shards.part(shard)
        path = self.folder.shard(shard, name)
        part = None if self.shards.whole_files else number
        self.folder.check()
        dropped = False  # a file that could not be read
        with ExitStack() as stack:  # it counts as waiting until it has the rows
            while True:
                self._wait(shard, path, stack)
                found = None
                try:
                    found = path.lstat()
                    self.folder.sums.check(path, self.folder.stamp(shard))
                    rows = by_row(self.open_shard(ShardFile(str(path), shard, part)))
                    break
                except (IndexPlanError, ImportError, MemoryError):
                    raise
                except Exception as error:
                    if not is_still(path, found):  # somebody else has dropped it just now
                        continue
                    if dropped:
                        raise self._unreadable(shard, path, error) from error
                    dropped = True
                    path.unlink(missing_ok=True)  # who fetches removes its digest
        if not hasattr(rows, "__len__"):
            raise invalid(
                "open_shard",
                "a function that returns rows, anything with len(rows) and rows[i]",
                rows,
                "return what it has read of the file",
            )
        expected = int(self.shards.sizes.array[shard])
        if len(rows) != expected:
            raise IndexPlanError(
                "open_shard",
                f"must return the {expected} rows of shard {shard}, {name}",
                len(rows),
                "return a row for each sample",
            )
        self._rows.add(shard, rows, path)
        return rows

    def _unreadable(self, shard: int, path: Path, error: Exception) -> IndexPlanError:
        """Return the error about a shard that cannot be read, though it was fetched twice."""
        what = f"shard {shard}, {self.shards.path}/{self.shards.part(shard)[0]},"
        if isinstance(error, DamagedError):
            cure = "check the disk and the memory of this machine, or pass another cache_dir"
            got = f"other bytes in {path}, twice"
            return IndexPlanError(what, "must be as it was fetched", got, cure)
        cure = "check the file in its place, and what open_shard does with it"
        got = f"{shown(error)} of {path}, twice"
        return IndexPlanError(what, "must be a file that open_shard opens", got, cure)

    def _close_dropped(self) -> None:
        """Close shards that were dropped: their space is free once no process has them open."""
        for shard in self._rows:
            if not self.folder.shard(shard, self.shards.part(shard)[0]).exists():
                self._rows.close(shard)

    def _wait(self, shard: int, path: Path, stack: ExitStack) -> None:
        """Wait until a shard is there, or raise why it will not be."""
        if path.exists():
            self._tally.add(HITS, worker=self._worker())
            return
        self.folder.make()
        begun, told, worker = time.monotonic(), False, self._worker()
        clock, waited, warn_at = Clock(), 0.0, self.settings.warn_after
        before = self.folder.failures()
        while not path.exists():
            self.check_open()
            self._raise_failures(shard, begun, before)
            if waited > PATIENCE and not told:
                stack.enter_context(self.folder.waiting(shard))
                told = True
            # usually the main process fetches, or that of another rank
            alone = (worker is None or waited > ALONE) and not self._has_fetcher()
            if alone and not is_held(self.folder.fetcher):
                self._fetching()
            parent = multiprocessing.parent_process()
            if worker is not None and parent is not None and not parent.is_alive():
                sys.exit(1)
            time.sleep(POLL)
            waited += clock.lived()
            if waited >= warn_at:
                warnings.warn(warning(self.folder, self.shards, shard, waited), stacklevel=2)
                warn_at *= 2
        self._tally.add(WAITED, time.monotonic() - begun, worker=worker)
        self._tally.add(STALLS, worker=worker)

    def _raise_failures(self, shard: int, since: float, before: list[Failure]) -> None:
        """Raise an error if fetching a shard failed since this process began to wait for it.

        `before` has older failures, because the clock starts at 0 when the machine is restarted.
        """
        here = self._fetcher if self._has_fetcher() else None
        found = [] if here is None or here.broken is None else [here.broken.args]
        for failure in self.folder.failures():
            new = failure.time >= since and failure not in before
            if failure.shard in {shard, ALL} and new:
                found.append(tuple(failure.parts))
        if found:
            raise IndexPlanError(*found[0])
