"""Temporary files: by their names nobody's own, and locked for as long as somebody writes them.

A builder that is killed leaves its temporary file behind, and the kernel lets go of its lock.
Whoever builds there next removes the file. So no live builder loses one, and none stays for ever.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
import stat
import time
from contextlib import suppress
from io import FileIO
from pathlib import Path

try:
    import fcntl

    LOCKS = True
except ImportError:  # Windows, where nobody can delete what somebody has open
    LOCKS = False

PATIENCE = 3600  # seconds without a write, after which a file is dead whose lock cannot be seen

_MACHINE = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
_NAME = re.compile(
    r"\.[a-z0-9.-]+\.(?:npy|json|parquet|arrow)\."
    r"(?:indexplan-(?P<machine>[0-9a-f]{8})-)?[0-9]+-[0-9a-f]{12}\.tmp"
)


def temporary_name(path: Path) -> Path:
    """Return the name of a file to be written, before it gets the name `path`."""
    who = f"indexplan-{_MACHINE}-{os.getpid()}-{secrets.token_hex(6)}"
    return path.with_name(f".{path.name}.{who}.tmp")


def lock(stream: FileIO, path: Path) -> bool:
    """Lock a temporary file that was just made; False if somebody who sweeps up was faster."""
    if not LOCKS:
        return True
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return os.path.lexists(path)


def sweep(folder: Path) -> None:
    """Remove the temporary files of builders that are dead; `OSError` if that is not allowed."""
    with suppress(FileNotFoundError, NotADirectoryError):
        for path in folder.iterdir():
            if match := _NAME.fullmatch(path.name):
                with suppress(FileNotFoundError):
                    _sweep(path, ours=match["machine"] == _MACHINE)


def _sweep(path: Path, *, ours: bool) -> None:
    """Remove a temporary file, unless it may be written yet.

    On this machine a lock that is free is proof. Elsewhere it is not, as some network file systems
    keep the locks of each machine to itself.
    """
    found = os.lstat(path)
    if not (stat.S_ISREG(found.st_mode) and os.access(path, os.R_OK)):  # another's, or nobody's
        return
    old = time.time() - found.st_mtime > PATIENCE
    with open(path, "rb", 0, opener=_without_waiting) as stream:
        free = _is_free(stream)
        if (free and ours) or (free is not False and old):
            path.unlink()


def _without_waiting(name: str, flags: int) -> int:
    return os.open(name, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _is_free(stream: FileIO) -> bool | None:
    """Return whether nobody has locked a file; None where locks are not known."""
    if not LOCKS:
        return None
    try:
        fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
