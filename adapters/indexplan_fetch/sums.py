"""The digest of each shard that is kept, by which damage is noticed when it is opened again."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from indexplan_fetch.locks import read_note, write_note
from indexplan_fetch.owned import check_own, open_own

PIECE = 2**20  # bytes that are hashed at a time


class DamagedError(Exception):
    """A shard that is not, or not any more, what was fetched."""


class Sum(NamedTuple):
    """What is known of a shard that was fetched."""

    sha256: str
    """Of the bytes in its spans."""
    spans: list[tuple[int, int]]
    """Where the bytes are that were fetched; the rest of a row group's file is a hole."""
    stamp: str
    """Of the file that it came from."""


def same_stamp(one: str, other: str) -> bool:
    """Return whether two stamps may be those of one file; those of two kinds tell nothing."""
    return one == other or one.partition(":")[0] != other.partition(":")[0]


def version(found: os.stat_result) -> tuple[int, ...]:
    """Return what changes when somebody writes to a file, or puts another one in its place."""
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def is_still(path: Path, found: os.stat_result | None) -> bool:
    """Return whether a path names the file of a status, which nobody has written to since."""
    try:
        return found is not None and version(path.lstat()) == version(found)
    except FileNotFoundError:
        return False


def sum_of(path: Path, spans: list[tuple[int, int]], stamp: str) -> Sum:
    """Read a file that was fetched."""
    with open_own(path) as file:
        return Sum(_digest(file, spans), spans, stamp)


def _digest(file: FileIO, spans: list[tuple[int, int]]) -> str:
    digest, buffer = hashlib.sha256(), memoryview(bytearray(PIECE))
    for start, stop in spans:
        file.seek(start)
        left = stop - start
        while left > 0 and (count := file.readinto(buffer[: min(PIECE, left)])):
            digest.update(buffer[:count])
            left -= count
    return digest.hexdigest()


class Sums:
    """The digests in a folder, and what this process has found to be whole."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._whole: dict[str, tuple[int, ...]] = {}

    def write(self, name: str, value: Sum) -> None:
        """Keep the digest of a shard that is about to get its name."""
        path = self.folder / name
        with open_own(path, os.O_RDWR | os.O_CREAT) as file:
            write_note(file, value)

    def read(self, name: str) -> Sum | None:
        """Return what is known of a shard; None if that is nothing."""
        note = read_note(self.folder / name)
        return None if note is None else Sum(note[0], [(a, b) for a, b in note[1]], note[2])

    def remove(self, name: str) -> None:
        """Remove the digest of a shard that was dropped."""
        with suppress(FileNotFoundError):
            (self.folder / name).unlink()

    def check(self, path: Path, stamp: str) -> None:
        """Raise unless a shard holds the bytes that were fetched, of a file of this stamp.

        They are read once in a process, and again if the file's inode, size or times have changed.
        """
        with open_own(path) as file:
            found = os.fstat(file.fileno())
            check_own(path, found)
            now = version(found)
            if self._whole.get(path.name) == now:
                return
            noted = self.read(path.name)
            if noted is None or not same_stamp(noted.stamp, stamp):
                raise DamagedError
            if _digest(file, noted.spans) != noted.sha256:
                raise DamagedError
        self._whole[path.name] = now
