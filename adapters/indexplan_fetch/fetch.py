"""Fetch a shard: attempts, each in a thread of its own, given up when no more bytes come."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from indexplan import IndexPlanError, PlanFileError
from indexplan_fetch.answers import AnswerError
from indexplan_fetch.folder import LOCAL, disk_error
from indexplan_fetch.owned import open_own
from indexplan_fetch.source import LeftError, Source, StalledError
from indexplan_fetch.sums import Sums, sum_of


class Settings(NamedTuple):
    """How shards are fetched; times are in seconds."""

    cache_bytes: int | None
    ahead: int
    num_threads: int
    tries: int
    num_epochs: int | None
    pause: float = 0.5  # before a second attempt; twice as long before the next, and so on
    warn_after: float = 60.0  # of waiting for a shard; twice as long before the next warning
    leave_after: float = 60.0  # without a byte: with all tries less than process groups wait


class Clock:
    """Counts the seconds that this process has run; time in which it was stopped does not count."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def lived(self) -> float:
        """Return the seconds since the last call; at most one, as no sleep here is longer."""
        last, self._last = self._last, time.monotonic()
        return min(self._last - last, 1.0)


class Attempt:
    """One attempt, in a thread; without a path, it only finds out how many bytes the shard takes.

    A read that never returns cannot be ended, only given up: the attempt's temporary file is its
    own, and it does not get the shard's name any more.

    Parameters
    ----------
    shard : int
    path : Path or None
        The shard's path once it is whole.
    source : Source
    sums : Sums
        Where the digest of the shard is kept.
    count : callable
        Called as count(shard, num_bytes) for a whole shard, before it appears under its name.
    wake : threading.Event
        Set at the end.
    """

    def __init__(
        self,
        shard: int,
        path: Path | None,
        source: Source,
        sums: Sums,
        count: Callable[[int, int], None],
        wake: threading.Event,
    ) -> None:
        self.shard, self.path, self.source, self.sums = shard, path, source, sums
        self.count, self.wake = count, wake
        self.num_bytes = 0  # that have come
        self.fetched = self.left = self.done = False
        self.failed: Exception | None = None
        self.final = False  # whether another attempt would fail, too
        self.temporary: Path | None = None
        if path is not None:
            self.temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
        name = f"indexplan-shard-{shard}"
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def _run(self) -> None:
        try:
            if self.path is None or self.temporary is None:
                self.num_bytes = self.source.look(self.shard)
            else:
                self._fetch(self.path, self.temporary)
        except IndexPlanError as error:
            self.failed, self.final = error, not isinstance(error, PlanFileError)
        except AnswerError as error:
            self.failed = self.source.replaced(self.shard) or error
        except Exception as error:  # whatever a store raises
            self.failed = error
        finally:
            self._remove()
            self.done = True
            self.wake.set()

    def _fetch(self, path: Path, temporary: Path) -> None:
        """Fetch the shard, check it, sync it, and give it its name."""
        try:
            open_own(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL).close()
            came = self.source.fetch(self.shard, temporary, self._hear)
        except OSError as error:
            if error.errno not in LOCAL:
                raise
            self.failed, self.final = disk_error(path.parents[1], error), True
            return
        self.fetched = True
        self.failed = self.source.problem(self.shard, temporary, came)
        if self.failed is not None:
            return
        try:
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            kept = sum_of(temporary, came.spans, came.before)
            if self.left:
                return
            self.sums.write(path.name, kept)
            self.count(self.shard, came.num_bytes)
            try:
                temporary.replace(path)
            except OSError:
                self.count(self.shard, -came.num_bytes)
                raise
        except OSError as error:
            self.failed = disk_error(path.parents[1], error)

    def _hear(self, num_bytes: int) -> None:
        """Count bytes that came."""
        self.num_bytes += num_bytes
        if self.left:
            raise LeftError

    def _remove(self) -> None:
        """Remove the temporary file; its space is free at once, even if a thread has it open."""
        if self.temporary is None:
            return
        with suppress(OSError), self.temporary.open("rb+") as file:
            self.temporary.unlink()  # raises if the shard has got its name meanwhile
            file.truncate(0)

    def leave(self) -> None:
        """Give it up: it may end by itself, or never, and nothing of it is used."""
        self.left = True  # first: a file that its thread makes after this is not published
        self._remove()

    def came(self) -> int:
        """Return how many bytes have come; if the store does not tell, the file's size."""
        if self.num_bytes == 0 and self.temporary is not None:
            with suppress(OSError):
                return self.temporary.stat().st_size
        return self.num_bytes


class Fetch:
    """The attempts to fetch a shard; if `size` is None, to find out how many bytes it takes.

    Parameters
    ----------
    shard : int
    size : int or None
    begin : callable
        Begins an Attempt, and returns it.
    source : Source
    settings : Settings
    """

    def __init__(
        self,
        shard: int,
        size: int | None,
        begin: Callable[[], Attempt],
        source: Source,
        settings: Settings,
    ) -> None:
        self.shard, self.size, self.source, self.settings = shard, size, source, settings
        self.failed: IndexPlanError | None = None
        self.num_bytes = 0  # that have come in this attempt
        self.idle = 0.0  # seconds since the last byte came
        self.num_tries = 1
        self._begin = begin
        self._pause = 0.0
        self.attempt: Attempt | None = begin()

    def over(self, lived: float) -> bool:
        """Check on it, `lived` seconds later; return whether it has come, or failed for good."""
        attempt = self.attempt
        if attempt is None:
            self._pause -= lived
            if self._pause <= 0:
                self.attempt = self._begin()
                self.num_tries, self.idle = self.num_tries + 1, 0.0
            return False
        done = attempt.done  # asked first: else its last bytes might come between
        before, self.num_bytes = self.num_bytes, attempt.came()
        failed: Exception | None
        if done:
            failed = attempt.failed
        else:
            self.idle = 0.0 if before != self.num_bytes else self.idle + lived
            if attempt.fetched or self.idle < self.settings.leave_after:
                return False
            attempt.leave()
            failed = StalledError(f"no byte in {self.settings.leave_after:g} seconds")
        if failed is not None and not isinstance(failed, IndexPlanError):
            failed = self.source.fetch_error(self.shard, failed, self.num_tries)
        self.failed = failed
        if failed is None or attempt.final or self.num_tries == self.settings.tries:
            return True
        self.attempt = None
        self._pause = self.settings.pause * 2 ** (self.num_tries - 1)
        return False
