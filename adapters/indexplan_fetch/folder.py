"""The folder that a node's processes share: whole shards, how far ranks are, who waits for what.

CACHE_DIR/DIGEST-USER/      one for each dataset and user: shards of others are never taken
    shards/00000012.parquet     a whole shard; `.TOKEN.tmp` while an attempt fetches it
    sums/00000012.parquet       the digest of its bytes
    ranks/PLAN-3-PID-TOKEN      held by rank 3; how far its loop has come
    wanted/12-PID-TOKEN         held by a process that waits for shard 12
    fetcher                     held by the one process that fetches and drops; how far that is
    failed                      why shards could not be fetched
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from indexplan import IndexPlanError, Shards
from indexplan.errors import printable
from indexplan_fetch.locks import (
    hold_new,
    is_at,
    make_room_for_notes,
    read_note,
    release,
    sweep,
    write_note,
)
from indexplan_fetch.owned import check_own, make_base, make_own, open_own
from indexplan_fetch.sums import Sums

NOTE = 512  # bytes of a rank's note
FAILURES, PART = 8, 1000  # that are told, and characters of each of their four parts
ROOM = FAILURES * (4 * 4 * PART + 100)  # bytes of the note of failures
LOCAL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}  # of the disk, not of a store

_SHARD = re.compile(r"(\d{8,})\.[\w.]+")


class Failure(NamedTuple):
    """Why a shard could not be fetched, and when, by the machine's monotonic clock."""

    shard: int
    time: float
    parts: Sequence[Any]
    """Of the error: what, the rule, what it got, the cure."""


@contextmanager
def writable(path: Path) -> Iterator[None]:
    """Turn an OSError into an error that names the folder, and what to do."""
    try:
        yield
    except OSError as error:
        raise disk_error(path, error) from None


def disk_error(path: Path, error: OSError) -> IndexPlanError:
    """Return an error about a folder on this machine."""
    cure = "check its permissions and its file system"
    if error.errno in LOCAL:
        cure = "free some space, or pass a smaller cache_bytes; whole shards are kept"
    return IndexPlanError(
        "cache_dir", f"must be writable: {path}", f"{error.strerror or error!r}", cure
    )


class Folder:
    """Paths and notes of a folder; it keeps no file open."""

    def __init__(
        self,
        cache_dir: str | os.PathLike[str],
        shards: Shards,
        columns: tuple[str, ...] | None = None,
    ) -> None:
        self.columns = columns
        # with the place, as files elsewhere may have the same headers and footers
        self.place = shards.path if "://" in shards.path else str(Path(shards.path).resolve())
        held = [self.place, shards.identity.to_dict(), *([columns] if columns else [])]
        identity = json.dumps(held, sort_keys=True)
        digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
        self.base = Path(cache_dir).absolute()
        self.path = self.base / f"{digest}-{os.geteuid()}"
        self.shards = self.path / "shards"
        self.ranks = self.path / "ranks"
        self.wanted = self.path / "wanted"
        self.sums = Sums(self.path / "sums")
        self._stamps, self._stops = shards.stamps, np.cumsum(shards.parts)
        self.fetcher = self.path / "fetcher"
        self.failed = self.path / "failed"

    def make(self) -> None:
        """Make the folder, if it is not there."""
        with writable(self.path):
            make_base(self.base)
            for each in (self.path, self.shards, self.sums.folder, self.ranks, self.wanted):
                make_own(each)
            with (
                suppress(FileExistsError),
                open_own(self.failed, os.O_RDWR | os.O_CREAT | os.O_EXCL) as file,
            ):
                make_room_for_notes(file, ROOM)

    def check(self) -> None:
        """Raise if shards may be there that somebody else has put there."""
        for each in (self.path, self.shards, self.sums.folder):
            with writable(self.path), suppress(FileNotFoundError):
                check_own(each)

    def shard(self, number: int, name: str) -> Path:
        """Return the path of a shard once it is whole; it has the same ending as its file."""
        suffix = PurePosixPath(name).suffix
        suffix = suffix if re.fullmatch(r"\.(?!tmp$)\w+", suffix) else ".shard"
        return self.shards / f"{number:08d}{suffix}"

    def there(self) -> dict[int, Path]:
        """Return the shards that are there; remove what a killed process has left.

        Only the process that fetches may call it.
        """
        found = {}
        for path in self.shards.iterdir():
            match = _SHARD.fullmatch(path.name)
            if path.suffix == ".tmp":
                path.unlink(missing_ok=True)
            elif match:
                found[int(match[1])] = path
        names = {path.name for path in found.values()}
        for path in self.sums.folder.iterdir():
            if path.name not in names:
                path.unlink(missing_ok=True)
        return found

    def drop(self, path: Path) -> None:
        """Remove a shard and its digest.

        Only the process that fetches may call it: another would remove the digest of a shard that
        comes just now. Those remove the shard alone.
        """
        path.unlink(missing_ok=True)
        self.sums.remove(path.name)

    def stamp(self, shard: int) -> str:
        """Return what shards says of the content of a shard's file."""
        return self._stamps[int(np.searchsorted(self._stops, shard, "right"))]

    def waits(self) -> dict[str, int]:
        """Return the shards that live processes wait for, by the names of their notes."""
        found = {}
        for path in self.wanted.iterdir():
            if sweep(path):
                found[path.name] = int(path.name.partition("-")[0])
        return found

    @contextmanager
    def waiting(self, number: int) -> Iterator[None]:
        """Note that this process waits for a shard; on a full disk there is no note."""
        held = None
        with suppress(OSError):
            held = hold_new(self.wanted, f"{number}-{os.getpid()}")
        try:
            yield
        finally:
            if held is not None:
                release(*held)

    def positions(self, plan: str) -> list[tuple[int, int]]:
        """Return the (epoch, step) that each live rank of a plan has come to.

        Notes that no process holds are removed.
        """
        found = []
        for path in self.ranks.iterdir():
            held = sweep(path)
            if held and path.name.startswith(f"{plan}-") and (note := read_note(path)):
                found.append((note[0], note[1]))
        return found

    def failures(self) -> list[Failure]:
        """Return why shards could not be fetched, the latest last.

        Raises
        ------
        IndexPlanError
            If the reasons could not be written, either.
        """
        with writable(self.path):
            self.failed.stat()
        return [Failure(*each) for each in read_note(self.failed) or []]

    def tell_failures(self, failures: list[Failure]) -> None:
        """Write for processes that wait why some shards could not be fetched."""
        cut = [
            each._replace(parts=[part and printable(part)[:PART] for part in each.parts])
            for each in failures[-FAILURES:]
        ]
        with open_own(self.failed, os.O_RDWR) as file:
            write_note(file, cut, ROOM)


class RankNote:
    """A note of how far this rank's loop is, for the process that fetches; held while it runs."""

    def __init__(self, folder: Folder, plan: str, rank: int) -> None:
        self.folder, self.name = folder.ranks, f"{plan}-{rank}-{os.getpid()}"
        self.said: tuple[int, int] | None = None
        self.file, self.path = self._open()

    def _open(self) -> tuple[FileIO, Path]:
        with writable(self.folder):
            file, path = hold_new(self.folder, self.name)
            make_room_for_notes(file, NOTE)
            return file, path

    def say(self, position: tuple[int, int]) -> None:
        """Write how far the loop is."""
        if position == self.said:
            return
        if not is_at(self.file, self.path):
            self.file.close()
            self.file, self.path = self._open()
        write_note(self.file, position, NOTE)
        self.said = position

    def close(self) -> None:
        """Remove the note: shards are no longer kept for this rank."""
        release(self.file, self.path)
