"""The thread that fetches the shards that a node's ranks read next, and drops the others."""

from __future__ import annotations

import atexit
import os
import threading
import time
from contextlib import suppress
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np

from indexplan import IndexPlanError, Shards
from indexplan.errors import shown
from indexplan_fetch.fetch import Attempt, Clock, Fetch, Settings
from indexplan_fetch.folder import FAILURES, Failure, Folder, disk_error
from indexplan_fetch.following import Loop, Reader
from indexplan_fetch.future import NEVER, Epoch, Future
from indexplan_fetch.locks import hold, make_room_for_notes, write_note
from indexplan_fetch.room import Room
from indexplan_fetch.source import Source
from indexplan_fetch.stalls import BEAT, NOTE, TOLD, Beat, Coming

TICK = 0.01  # seconds between looks at how far the ranks are
TURN = 0.2  # seconds between attempts to become the process that fetches
STILL = 5.0  # seconds without progress of the loops, after which a process that waits comes first
GRACE = 5.0  # seconds that a process waits at its end for fetches to end
ALL = -1  # the shard of a failure of the thread itself


class Fetcher:
    """A thread of this process. Only one such thread of a node fetches and drops at a time.

    It knows what will be read from `follow`; without that, it fetches the shards that processes
    wait for.
    """

    def __init__(self, folder: Folder, shards: Shards, settings: Settings) -> None:
        self.folder, self.shards, self.settings = folder, shards, settings
        self.num_fetches = self.num_samples = self.num_bytes = self.num_retries = 0
        self._pid = os.getpid()
        self._stop, self._wake = threading.Event(), threading.Event()
        self._reader: Reader | None = None
        self._left: list[Reader] = []  # those before it, for the thread to close
        self._position: tuple[int, int] | None = None
        self._moved = 0.0  # when that last changed, or something was being fetched
        self._still = False  # whether a process waits while the loops make no progress
        self.broken: str | None = None  # why it cannot go on, for waits in this process
        self._future: Future | None = None
        self._source: Source | None = None
        self._lock: FileIO | None = None
        self._next_turn = 0.0
        self._whole: dict[int, int] = {}  # shards that are there, and their bytes on disk
        self._fetches: dict[int, Fetch] = {}
        self.room = Room(folder, shards, settings.cache_bytes, settings.ahead)
        self._full = False  # whether the next shard has to wait for room
        self._clock = Clock()
        self._counts = threading.Lock()
        self._beaten = 0.0  # when it last noted that it runs
        self._failures: dict[int, Failure] = {}
        self._answered: set[str] = set()  # notes of processes that wait and were told of a failure
        self._thread = threading.Thread(target=self._run, name="indexplan-shards", daemon=True)
        self._thread.start()
        atexit.register(self.stop)

    @property
    def alive(self) -> bool:
        """Whether its thread runs in this process, which is not a forked child."""
        return self._pid == os.getpid() and self._thread.is_alive()

    def follow(self, loop: Loop) -> None:
        """Fetch what the ranks of this node read, from where this rank's loop is."""
        reader = self._reader
        if reader is None or reader.loop is not loop:
            reader = Reader(self.folder, loop)
            reader.tell()
            if self._reader is not None:
                self._left.append(self._reader)
            self._reader = reader
        else:
            reader.tell()
        self._wake.set()

    def stop(self) -> None:
        """Give up what is being fetched, and let another process fetch."""
        if self._pid != os.getpid():
            return
        atexit.unregister(self.stop)
        self._stop.set()
        self._wake.set()
        if self._thread is not threading.current_thread():
            self._thread.join(GRACE)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._tick()
                self.broken = None
            except Exception as error:  # whatever it is, processes that wait must be told
                self._break(error)
                self._stop.wait(TURN)
            self._wake.wait(TICK)
            self._wake.clear()
        running = [fetch.attempt for fetch in self._fetches.values() if fetch.attempt is not None]
        for attempt in running:
            attempt.leave()
        deadline = time.monotonic() + GRACE
        while not all(attempt.done for attempt in running) and time.monotonic() < deadline:
            time.sleep(TICK)
        for reader in (*self._left, self._reader):
            if reader is not None:
                with suppress(OSError):
                    reader.note.close()
        if self._lock is not None:
            self._lock.close()

    def _break(self, error: Exception) -> None:
        if isinstance(error, IndexPlanError):
            message = str(error)
        elif isinstance(error, OSError):
            message = str(disk_error(self.folder.path, error))
        else:
            message = (
                f"shards must be fetched by a thread that goes on; got {shown(error)}; run again, "
                "and report it if it comes back"
            )
        self.broken = message
        try:
            self.folder.tell_failures([Failure(ALL, time.monotonic(), message)])
        except OSError:  # then the missing file tells it
            with suppress(OSError):
                self.folder.failed.unlink(missing_ok=True)

    def _tick(self) -> None:
        while self._left:
            self._left.pop().note.close()
        if self._reader is not None:
            self._reader.tell()
        if self._lock is None:
            self._lock = self._take_turn()
        if self._lock is None:
            return
        self._beat(self._lock)
        self._reap()
        self._drop_to_fit()
        self._schedule()

    def _take_turn(self) -> FileIO | None:
        """Become the process that fetches, if no other is."""
        if time.monotonic() < self._next_turn:
            return None
        self._next_turn = time.monotonic() + TURN
        lock = hold(self.folder.fetcher)
        if lock is None:
            return None
        with suppress(OSError):  # of a full disk: then processes that wait are told less
            make_room_for_notes(lock, NOTE)
        self._beat(lock, first=True)
        self._source = Source(self.shards, self.folder.place, self.folder.columns)
        self._whole = {}
        for shard, path in self.folder.there().items():
            status, noted = path.lstat(), self.folder.sums.read(path.name)
            if (
                shard >= len(self.shards)
                or noted is None
                or status.st_size != self._source.file(shard)[2]
                or not self._source.recognise(shard, noted.stamp)
            ):
                self.folder.drop(path)
                continue
            self._whole[shard] = self._source.bytes_on_disk(shard) or status.st_blocks * 512
        return lock

    def _beat(self, lock: FileIO, *, first: bool = False) -> None:
        """Note that this process runs, and how far its fetches are, for processes that wait."""
        now = time.monotonic()
        if not first and now - self._beaten < BEAT:
            return
        self._beaten = now
        coming = [
            Coming(each.shard, each.num_bytes, each.idle, each.num_tries)
            for each in list(self._fetches.values())[:TOLD]
        ]
        rank = None if self._reader is None else self._reader.rank
        with suppress(OSError):
            write_note(lock, Beat(os.getpid(), rank, now, self._full, coming), NOTE)

    def _reap(self) -> None:
        """Check on what is being fetched."""
        lived = self._clock.lived()
        for fetch in [fetch for fetch in self._fetches.values() if fetch.over(lived)]:
            del self._fetches[fetch.shard]
            self.num_retries += fetch.num_tries - 1
            if fetch.failed:
                self._fail(fetch.shard, fetch.failed)
            elif fetch.size is not None:
                self._whole[fetch.shard] = fetch.size
            else:
                with self._counts:
                    self.num_bytes += fetch.num_bytes

    def _fail(self, shard: int, message: str) -> None:
        self._failures[shard] = Failure(shard, time.monotonic(), message)
        waits = self.folder.waits()
        self._answered |= {name for name, wanted in waits.items() if wanted == shard}
        latest = sorted(
            self._failures.values(), key=lambda each: (each.shard in waits.values(), each.time)
        )[-FAILURES:]
        told = {failure.shard for failure in latest}  # waits for other shards are tried once more
        self._answered -= {name for name, wanted in waits.items() if wanted not in told}
        self.folder.tell_failures(latest)

    def _find_position(self) -> tuple[int, int] | None:
        """Return how far the slowest live rank of the node has come, if this process has a plan."""
        if self._reader is None:
            return None
        reader = self._reader
        if self._future is None or self._future.plan is not reader.plan:
            most = self.settings.num_epochs
            self._future = Future(reader.plan, self.shards, reader.ranks, most)
            if self._lock is not None:
                self._beat(self._lock, first=True)  # with this rank
        return min(self.folder.positions(reader.name), default=None)

    def _schedule(self) -> None:
        """Begin what is to be fetched next, in the order in which it is needed."""
        assert self._source is not None  # noqa: S101 (of the one that fetches)
        waits = self.folder.waits()
        self._answered &= waits.keys()
        wanted = {shard for name, shard in waits.items() if name not in self._answered}
        for shard in wanted & self._whole.keys():
            if not self.path(shard).exists():  # somebody removed it
                del self._whole[shard]
        position = self._find_position()
        self._notice(position, wanted)
        if position is not None and self._future is not None:
            there = sum(self._whole.values())  # what is being fetched is not on the disk yet
            self.room.follow(self._future.epoch(*position), self._source, there)
        self._full = blocked = False  # blocked: by a shard whose size is not known yet
        for shard, use in self._queue(wanted, position):
            if shard in self._whole or shard in self._fetches:
                continue
            if shard in self._failures and shard not in wanted:
                continue
            if len(self._fetches) >= self.settings.num_threads:
                return
            size = self._source.bytes_on_disk(shard)
            if size is not None:
                self._full = not blocked and not self._make_room(size, shard, use, position, wanted)
                if blocked or self._full:
                    break
            else:
                blocked = True
            self._failures.pop(shard, None)
            self._begin(shard, size)
        if position is not None and self._future is not None and self._future.look(*position):
            self._wake.set()

    def _notice(self, position: tuple[int, int] | None, wanted: set[int]) -> None:
        """Note whether the loops make no progress while a process waits and nothing is fetched."""
        now = time.monotonic()
        if position != self._position:
            self._position, self._moved, self._still = position, now, False
        elif (
            any(each.idle < STILL for each in self._fetches.values())
            or not wanted - self._whole.keys()
        ):
            self._moved = now
        elif now - self._moved > STILL:
            self._still = True

    @property
    def _used(self) -> int:
        """How many bytes shards take, with those that are being fetched."""
        return sum(self._whole.values()) + sum(each.size or 0 for each in self._fetches.values())

    def path(self, shard: int) -> Path:
        """Return the path of a shard once it is whole."""
        return self.folder.shard(shard, self.shards.part(shard)[0])

    def _queue(self, wanted: set[int], position: tuple[int, int] | None) -> list[tuple[int, int]]:
        """Return what to fetch, and the step that needs it: shards that are waited for come first.

        A process that waits for a shard of a later step is ahead of the others, whose shards come
        first; or it reads beside them, as a validation loader does, while they make no progress.
        """
        if position is None or self._future is None:
            return [(shard, -1) for shard in sorted(wanted)]
        now = self._future.epoch(*position)
        step, ahead = position[1], self.settings.ahead
        upcoming = [(shard, int(now.first[shard])) for shard in now.upcoming(step, ahead)]
        if len(upcoming) < ahead and now.complete and self.settings.num_epochs is not None:
            then = self._future.after(now.number)
            if then is not None:
                rest = then.upcoming(0, ahead - len(upcoming))
                upcoming += [(shard, now.stop + int(then.first[shard])) for shard in rest]
        beside = self._still or step >= now.stop
        urgent, later = [], []
        for shard in sorted(wanted - self._whole.keys() - self._fetches.keys()):
            use = int(now.first[shard])
            if use < step <= now.last[shard]:
                (use,) = now.next_uses(np.array([shard]), step).tolist()
            if beside:
                urgent.append((shard, -1))
            elif use <= step or (use == NEVER and now.complete):
                urgent.append((shard, step))
            else:
                later.append((shard, use))
        return urgent if self._still else [*urgent, *upcoming, *later]

    def _make_room(
        self,
        size: int,
        shard: int,
        use: int,
        position: tuple[int, int] | None,
        wanted: set[int],
    ) -> bool:
        """Drop shards needed later than this one, the last first; False if there is no room yet."""
        used, there = self._used, sum(self._whole.values())
        limit = self.room.limit(there)
        short = used + size - self.room.most(there)
        if short <= 0:
            return True
        if size > limit:
            self._fail(shard, self.room.rule(f"shard {shard} takes", size, there))
            return False
        ids = np.array(sorted(self._whole.keys() - wanted), np.int64)
        urgent = position is None or use <= position[1]
        again = np.zeros(len(ids), np.bool_)  # whether it is read again in this epoch
        if position is None or self._future is None:
            uses = np.full(len(ids), NEVER, np.int64)
        else:
            now = self._future.epoch(*position)
            if not now.complete and (not urgent or used + size <= limit):
                return urgent
            while not now.complete and not self._stop.is_set() and self._lock is not None:
                now.look()
                self._beat(self._lock)
            uses = self._uses(ids, now, position[1], exact=urgent)
            again = now.last[ids] >= position[1]
        out, freed = [], 0
        for at in np.argsort(-uses, kind="stable").tolist():
            if freed >= short or uses[at] <= use:
                break
            if again[at] and used + size - freed <= limit:
                break  # rather take more than the plan seemed to need
            out.append(int(ids[at]))
            freed += self._whole[out[-1]]
        if freed < short and not (urgent and used + size - freed <= limit):
            if urgent and position is not None and self._future is not None:
                self._check_step(shard, self._future.epoch(*position), position[1])
            return False
        for each in out:
            self.folder.drop(self.path(each))
            del self._whole[each]
        return True

    def _uses(
        self, ids: np.ndarray[Any, np.dtype[np.int64]], now: Epoch, step: int, *, exact: bool
    ) -> Any:
        """Return the step in which each shard is read next; this step for those in use."""
        assert self._future is not None  # noqa: S101 (asked with a plan)
        first, last = now.first[ids], now.last[ids]
        uses = np.where(first >= step, first, np.where(last >= step, step, NEVER))
        then = self._future.after(now.number)
        if then is not None:
            later = then.first[ids]
            uses = np.where((uses == NEVER) & (later < NEVER), now.stop + later, uses)
        live = (first < step) & (last >= step)
        if exact and live.any():
            found = now.next_uses(ids[live], step, leave=1)
            uses[live] = np.minimum(found, now.stop)
        return uses

    def _drop_to_fit(self) -> None:
        """Drop shards of an earlier run that had more room; any of them, as it happens once."""
        used = sum(self._whole.values())
        while used > (self.settings.cache_bytes or used) and self._whole:
            shard, size = self._whole.popitem()
            self.folder.drop(self.path(shard))
            used -= size

    def _check_step(self, shard: int, now: Epoch, step: int) -> None:
        """Fail a shard if the shards of one step alone do not fit."""
        assert self._source is not None  # noqa: S101 (of the one that fetches)
        if step >= now.stop:
            return
        found, _ = now.reads(step, step + 1)
        sizes = [self._source.bytes_on_disk(each) or 0 for each in found.shards.tolist()]
        there = sum(self._whole.values())
        if sum(sizes) > self.room.limit(there):
            what = f"the {len(sizes)} shards that this node reads in one step take"
            self._fail(shard, self.room.rule(what, sum(sizes), there))

    def _begin(self, shard: int, size: int | None) -> None:
        """Begin to fetch a shard, or to find out how many bytes it takes."""
        assert self._source is not None  # noqa: S101 (of the one that fetches)
        path = None if size is None else self.path(shard)
        attempt = partial(
            Attempt, shard, path, self._source, self.folder.sums, self._count, self._wake
        )
        self._fetches[shard] = Fetch(shard, size, attempt, self._source, self.settings)

    def _count(self, shard: int, num_bytes: int) -> None:
        """Count a shard that is about to get its name; with negative bytes, take that back."""
        sign = 1 if num_bytes > 0 else -1
        with self._counts:
            self.num_fetches += sign
            self.num_samples += sign * int(self.shards.sizes.array[shard])
            self.num_bytes += num_bytes
