"""The thread that fetches the shards that a node's ranks read next, and drops the others."""

from __future__ import annotations

import atexit
import os
import threading
import time
from contextlib import suppress

from indexplan import IndexPlanError, Shards
from indexplan.errors import shown
from indexplan_fetch.fetch import Settings
from indexplan_fetch.folder import Failure, Folder, disk_error
from indexplan_fetch.following import Loop, Reader
from indexplan_fetch.locks import hold
from indexplan_fetch.metrics import Counts
from indexplan_fetch.room import Room
from indexplan_fetch.turn import Turn

TICK = 0.01  # seconds between looks at how far the ranks are
TURN = 0.2  # seconds between attempts to become the process that fetches
GRACE = 5.0  # seconds that a process waits at its end for fetches to end
ALL = -1  # the shard of a failure of the thread itself


class Fetcher:
    """A thread of this process. Only one such thread of a node fetches and drops at a time.

    It knows what will be read from `follow`; without that, it fetches the shards that processes
    wait for.
    """

    def __init__(self, folder: Folder, shards: Shards, settings: Settings) -> None:
        self.folder, self.shards, self.settings = folder, shards, settings
        self.counts = Counts(shards)
        self.room = Room(folder, shards, settings.cache_bytes, settings.ahead)
        self.broken: IndexPlanError | None = None  # why it cannot go on, for waits in this process
        self._pid = os.getpid()
        self._stop, self._wake = threading.Event(), threading.Event()
        self._reader: Reader | None = None
        self._left: list[Reader] = []  # those before it, for the thread to close
        self._turn: Turn | None = None  # while this is the process that fetches
        self._next_turn = 0.0
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
        running = [] if self._turn is None else self._turn.leave()
        deadline = time.monotonic() + GRACE
        while not all(attempt.done for attempt in running) and time.monotonic() < deadline:
            time.sleep(TICK)
        for reader in (*self._left, self._reader):
            if reader is not None:
                with suppress(OSError):
                    reader.note.close()
        if self._turn is not None:
            self._turn.lock.close()

    def _break(self, error: Exception) -> None:
        if isinstance(error, IndexPlanError):
            self.broken = error
        elif isinstance(error, OSError):
            self.broken = disk_error(self.folder.path, error)
        else:
            rule, cure = "must be fetched by a thread that goes on", "report it if it comes back"
            self.broken = IndexPlanError("shards", rule, shown(error), f"run again, and {cure}")
        try:
            self.folder.tell_failures([Failure(ALL, time.monotonic(), self.broken.args)])
        except OSError:  # then the missing file tells it
            with suppress(OSError):
                self.folder.failed.unlink(missing_ok=True)

    def _tick(self) -> None:
        while self._left:
            self._left.pop().note.close()
        reader = self._reader
        if reader is not None:
            reader.tell()
        if self._turn is None:
            self._turn = self._take_turn()
        if self._turn is not None:
            self._turn.work(reader)

    def _take_turn(self) -> Turn | None:
        """Become the process that fetches, if no other is."""
        if time.monotonic() < self._next_turn:
            return None
        self._next_turn = time.monotonic() + TURN
        lock = hold(self.folder.fetcher)
        if lock is None:
            return None
        return Turn(
            lock,
            self.folder,
            self.shards,
            self.settings,
            self.room,
            self.counts,
            self._stop,
            self._wake,
        )
