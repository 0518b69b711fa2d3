"""Files that appear whole or not at all, and are never replaced."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from indexplan.errors import PlanFileError, cure_of
from indexplan.stores.temporary import LOCKS, lock, temporary_name

_MISSING = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
_NO_LINKS = _MISSING | {errno.EPERM, errno.EMLINK}


def publish(path: Path, blocks: Iterable[bytes | memoryview]) -> bool:
    """Write a file so that it appears under its name whole or not at all, if the name is free.

    It is written with `write`, since a full disk under a memory map kills the process. It is synced
    to disk before it gets its name, and its folder after that.

    Returns
    -------
    bool
        Whether this call gave the file its name; False if another process was first.

    Raises
    ------
    PlanFileError
        If the file cannot be written. What was published before stays whole.
    Exception
        What the iterator of blocks raises, unchanged.
    """
    while True:
        temporary = temporary_name(path)
        try:
            published = _write(temporary, path, blocks)
            with explained("written", path):
                sync_folder(path.parent)
            return published
        except _SweptError:
            continue
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


class _SweptError(Exception):
    """Another process removed a temporary file as soon as it was made; nothing was written yet."""


def _write(temporary: Path, path: Path, blocks: Iterable[bytes | memoryview]) -> bool:
    try:
        with explained("written", path):
            stream = temporary.open("xb", buffering=0)
        with stream:
            if not lock(stream, temporary):
                raise _SweptError
            for block in blocks:
                with explained("written", path):
                    write_all(stream.fileno(), block)
            with explained("written", path):
                os.fsync(stream.fileno())
                if not LOCKS:  # Windows, where an open file cannot be renamed
                    stream.close()
                return _give_name(temporary, path)
    except PlanFileError as error:
        # a machine that sees no locks may have removed the temporary file; how that shows depends
        # on the file system: over NFS even a write may fail
        if isinstance(error.__cause__, OSError) and os.path.lexists(path):
            return False
        raise


def write_all(descriptor: int, block: bytes | memoryview) -> None:
    """Write all of a block, in as many calls as it takes."""
    rest = memoryview(block)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _give_name(temporary: Path, path: Path) -> bool:
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return _rename(temporary, path)
    return True


def _rename(temporary: Path, path: Path) -> bool:
    """Rename a file unless the name is taken; return whether it was free.

    To look first is not enough if two builders do it at once, so on Linux the kernel looks. On a
    file system that supports neither links nor this, one builder may still replace another's file.
    """
    if os.path.lexists(path):
        return False
    if sys.platform == "linux":
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        if hasattr(libc, "renameat2"):
            here, keep = -100, 1  # AT_FDCWD, RENAME_NOREPLACE
            sys.audit("os.rename", str(temporary), str(path), -1, -1)  # as os.rename does
            if not libc.renameat2(here, os.fsencode(temporary), here, os.fsencode(path), keep):
                return True
            if ctypes.get_errno() == errno.EEXIST:
                return False
    temporary.rename(path)
    return True


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut, if its file system supports that."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows, where folders cannot be opened
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _MISSING:
            raise
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def explained(what: str, path: Path | str) -> Iterator[None]:
    """Turn an OSError into a PlanFileError that names the file and what to do."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        cure = {
            errno.ENOSPC: "free some space, then run it again",
            errno.EDQUOT: "free some space, then run it again",
            errno.EFBIG: "raise the limit on file sizes, then run it again",
            errno.ENOENT: "check the path",
            errno.ENOTDIR: "check the path",
            errno.ENAMETOOLONG: "check the path",
        }.get(error.errno or 0, cure_of(error, "check its permissions and its file system"))
        raise PlanFileError(path, f"must be {what}", f"{reason!r}", cure) from error
