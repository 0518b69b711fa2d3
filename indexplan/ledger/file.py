"""The file of a ledger: lines are only added, whole or not at all, and synced to disk.

What follows the last line end was being written when its writer was killed: it is no line, and the
next one takes its place. A lock is held while lines are added, not longer, so a dead process never
keeps one; that another has written since is seen from what the file holds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from indexplan.errors import IndexPlanError, PlanFileError, in_file
from indexplan.files.columns import finder, publish
from indexplan.ledger.lines import (
    CURE,
    FIRST,
    LONGEST,
    MOST_BYTES,
    Line,
    line_of,
    sha256_of,
    text_of,
)
from indexplan.orders.columns import Columns
from indexplan.plan.plan import Plan, columns_of
from indexplan.stores.folder import Folder
from indexplan.stores.plain import check_kind, open_file
from indexplan.stores.publish import explained, sync_folder, write_all

try:
    import fcntl
except ImportError:  # Windows, where only the file's end tells of another writer
    fcntl = None  # type: ignore[assignment]

ONE_WRITER = "let one process of the run write it, or give each run a ledger of its own"


class LedgerFile:
    """The file, as far as this process has read or written it.

    Attributes
    ----------
    path : pathlib.Path
        Where it is; it need not be there yet.
    lines : list of Line
        What it holds.
    hashes : list of str
        The sha256 of each line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._at = path.absolute()  # wherever the process goes
        self.lines: list[Line] = []
        self.hashes: list[str] = []
        self._size = 0  # bytes of the lines
        self._last = b""  # the last of them, with its end
        self._kept: set[str] = set()  # columns that this process has written or compared
        with explained("readable", path):
            try:
                os.lstat(self._at)  # not lexists, which takes a file that may not be seen for none
            except FileNotFoundError:
                return
            with open_file(self._at.parent, self._at.name) as stream:
                self._check_size(os.fstat(stream.fileno()).st_size)
                self._take(stream)

    @property
    def hash(self) -> str:
        """The sha256 of the last line."""
        return self.hashes[-1] if self.hashes else FIRST

    def where(self, number: int) -> str:
        """Return how errors name a line."""
        return f"{self.path}, line {number}"

    def _check_size(self, size: int) -> None:
        if size > MOST_BYTES:
            cure = "check the path, or leave this ledger, and keep a new file"
            raise PlanFileError(self.path, f"must hold at most {MOST_BYTES} bytes", size, cure)

    def _take(self, stream: BufferedReader) -> None:
        """Read all lines, or raise `PlanFileError`."""
        while text := stream.readline(LONGEST):
            where = self.where(len(self.lines) + 1)
            if not text.endswith(b"\n"):
                if len(text) < LONGEST:
                    return  # its writer was killed
                raise PlanFileError(where, f"must be shorter than {LONGEST} bytes", "more", CURE)
            try:
                line = line_of(text[:-1], self.hash)
            except IndexPlanError as error:
                raise in_file(where, error) from error
            self.lines.append(line)
            self.hashes.append(sha256_of(text[:-1]))
            self._size += len(text)
            self._last = text

    def append(self, lines: list[Line]) -> None:
        """Add lines to the file, all or none, and sync it.

        Raises
        ------
        PlanFileError
            If another process has written it since it was read, or it cannot be written; what was
            there is still there.
        """
        texts, previous = [], self.hash
        for line in lines:
            texts.append(text_of(line, previous))
            previous = sha256_of(texts[-1])
        data = b"".join(text + b"\n" for text in texts)
        self._check_size(self._size + len(data))
        with self._locked() as descriptor:
            self._check_same(descriptor)
            with explained("written", self.path):
                new = not self._size
                try:
                    os.ftruncate(descriptor, self._size)
                    os.lseek(descriptor, self._size, os.SEEK_SET)
                    write_all(descriptor, data)
                    os.fsync(descriptor)
                    if new:
                        sync_folder(self._at.parent)
                except BaseException:  # Ctrl-C too: half a line would only be cut later
                    os.ftruncate(descriptor, self._size)
                    raise
        self.lines += lines
        self.hashes += [sha256_of(text) for text in texts]
        self._size += len(data)
        self._last = texts[-1] + b"\n"

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Open the file for writing, and hold its lock."""
        with explained("written", self.path):
            if os.path.lexists(self._at):
                check_kind(self.path, os.lstat(self._at).st_mode)
            flags = os.O_RDWR | (0 if self._size else os.O_CREAT)
            for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_BINARY"):  # each where there is one
                flags |= getattr(os, name, 0)
            descriptor = os.open(self._at, flags, 0o666)
        try:
            if fcntl is not None:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise self._other("one that is writing it now") from None
                except OSError:  # a file system without locks: the file's end tells, as below
                    pass
            yield descriptor
        finally:
            os.close(descriptor)

    def _check_same(self, descriptor: int) -> None:
        """Raise `PlanFileError` if the file does not end as this process has left it."""
        with explained("readable", self.path):
            start = self._size - len(self._last)
            size = os.fstat(descriptor).st_size
            os.lseek(descriptor, start, os.SEEK_SET)
            end = os.read(descriptor, len(self._last)) if size >= self._size else b""
            torn = os.read(descriptor, size - self._size) if size > self._size else b""
        if end != self._last or b"\n" in torn:
            raise self._other("lines of another one, since this one has read it")

    def _other(self, got: str) -> PlanFileError:
        return PlanFileError(self.path, "must have one writer at a time", got, ONE_WRITER)

    def columns(self) -> Columns:
        """Return where the columns of plans are: the folder `columns` next to the file."""
        return finder(Folder(self._at.parent), self._at.parent)

    def keep_columns(self, plan: Plan) -> None:
        """Write the columns that a plan needs next to the file, before a line names it.

        Those that are there are compared once; from then on they only have to be there.
        """
        folder = Folder(self._at.parent)
        needed = {
            digest: column
            for digest, column in columns_of(plan).items()
            if digest not in self._kept or not folder.has(f"columns/{digest}.npy")
        }
        try:
            for column in needed.values():  # of a plan that was read from here
                column.check_file()
        except PlanFileError as error:
            rule = "must have the columns of its plans in the folder `columns` next to it"
            cure = "restore that folder, or pass the plan as your own script makes it"
            raise PlanFileError(self.path, rule, f"{error.what}: {error.got}", cure) from error
        publish(folder, needed)
        self._kept.update(needed)
