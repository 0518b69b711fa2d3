"""Files that appear whole or not at all, and are never replaced."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path

from indexplan.errors import PlanFileError

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}

TEMPORARY = ".tmp"


def publish(path: Path, blocks: Iterable[bytes | memoryview]) -> bool:
    """Write a file so that it appears under its name at once, whole, and only if the name is free.

    Written with `write`, since a full disk under a memory map kills the process; synced to disk
    before it gets its name, and its folder after.

    Returns
    -------
    bool
        Whether this call gave the file its name; False if somebody was there first.

    Raises
    ------
    PlanFileError
        If the file cannot be written. What was published before stays whole.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(6)}{TEMPORARY}")
    with explained("written", path):
        try:
            with temporary.open("xb", buffering=0) as stream:
                for block in blocks:
                    _write_all(stream.fileno(), block)
                os.fsync(stream.fileno())
            published = _give_name(temporary, path)
            sync_folder(path.parent)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
    return published


def _write_all(descriptor: int, block: bytes | memoryview) -> None:
    rest = memoryview(block)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _give_name(temporary: Path, path: Path) -> bool:
    try:
        try:
            path.hardlink_to(temporary)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            temporary.replace(path)  # the same bytes, so replacing another builder's is harmless
    except FileExistsError:
        return False
    except FileNotFoundError:  # whoever finished the build has swept the temporary file away
        if path.exists():
            return False
        raise
    return True


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
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
            errno.ENOSPC: "free some space, then run the same build again",
            errno.EDQUOT: "free some space, then run the same build again",
            errno.EFBIG: "raise the limit on file sizes, then run the same build again",
            errno.EEXIST: "delete what is there, or choose another path",
            errno.ENOENT: "check the path",
            errno.ENOTDIR: "check the path",
            errno.ENAMETOOLONG: "check the path",
        }.get(error.errno or 0, "check its permissions and its file system")
        raise PlanFileError(f"{path} must be {what}; got {reason!r}; {cure}") from error
