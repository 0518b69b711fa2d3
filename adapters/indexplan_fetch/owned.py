"""Folders and files that only this user can write to, and opening them: no link is followed."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from io import FileIO
from pathlib import Path

from indexplan import IndexPlanError

_KINDS = {stat.S_IFREG: "a file", stat.S_IFDIR: "a folder", stat.S_IFLNK: "a link"}


def make_base(path: Path) -> None:
    """Make the folder that a user names; refuse one in which anybody can replace what is there."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = path.stat().st_mode
    if mode & 0o002 and not mode & stat.S_ISVTX:
        raise IndexPlanError(
            "cache_dir",
            "must be a folder in which other users cannot replace yours",
            f"{path}, of mode {stat.S_IMODE(mode):o}",
            "run chmod +t on it, or pass a folder of your own",
        )


def make_own(path: Path) -> None:
    """Make a folder of this user's; refuse one that somebody else has made or can write to."""
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    check_own(path)


def check_own(path: Path, found: os.stat_result | None = None) -> None:
    """Raise unless only this user can write to a folder, or to a file whose status is given."""
    what, kind = ("folder", stat.S_IFDIR) if found is None else ("file", stat.S_IFREG)
    found = path.lstat() if found is None else found
    if stat.S_IFMT(found.st_mode) != kind:
        got = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
    elif found.st_uid != os.geteuid():
        got = f"one of user {found.st_uid}"
    elif found.st_mode & 0o022:
        got = f"one of mode {stat.S_IMODE(found.st_mode):o}"
    else:
        return
    raise IndexPlanError(
        path,
        f"must be a {what} that only you, user {os.geteuid()}, can write to",
        got,
        "delete it, or pass another cache_dir",
    )


def open_own(path: Path, flags: int = os.O_RDONLY) -> FileIO:
    """Open a file; if it is made, nobody else can read or write it."""
    flags |= os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe would block
    mode = "rb" if flags & os.O_ACCMODE == os.O_RDONLY else "r+"
    try:
        return FileIO(os.open(path, flags, 0o600), mode)
    except OSError as error:
        if error.errno == errno.ELOOP:
            check_own(path, path.lstat())
        raise
