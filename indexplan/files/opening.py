"""Opening the files of a plan directory: plain files only, and no link below it is followed.

A named pipe would block its reader, a device may do anything, and a link leads elsewhere; each is
refused by its kind, before it is opened.
"""

from __future__ import annotations

import os
import stat
from io import BufferedReader
from pathlib import Path

from indexplan.errors import PlanFileError
from indexplan.files.publish import explained

SMALL_BYTES = 2**30  # no manifest or block table is larger: 2**27 blocks are 512 TiB

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
# without O_NONBLOCK, a pipe that takes the place of a file just now would still block
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


def check_kind(path: Path, mode: int, *, folder: bool = False) -> None:
    """Raise `PlanFileError` unless what lies at a path, of this `st_mode`, is what has to be."""
    if stat.S_IFMT(mode) != (stat.S_IFDIR if folder else stat.S_IFREG):
        what = "folder" if folder else "file"
        kind = _KINDS.get(stat.S_IFMT(mode), "a file" if folder else "something else")
        cure = f"put the {what} itself in its place, or build the plan again at another path"
        raise PlanFileError(f"{path} must be a plain {what}; got {kind}; {cure}")


def open_file(root: Path, name: str) -> BufferedReader:
    """Open a file of a plan directory for reading; the directory itself may be a link.

    Raises
    ------
    PlanFileError
        If the file, or a folder on the way to it, is a link or of another kind.
    OSError
        If it cannot be opened.
    """
    *folders, last = name.split("/")
    descriptor = os.open(root, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    path = root
    try:
        for folder in folders:
            path = path / folder
            check_kind(path, _status(folder, descriptor), folder=True)
            inner = os.open(folder, _FLAGS | os.O_DIRECTORY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        check_kind(path / last, _status(last, descriptor))
        stream = os.fdopen(os.open(last, _FLAGS, dir_fd=descriptor), "rb")
    finally:
        os.close(descriptor)
    try:
        check_kind(path / last, os.fstat(stream.fileno()).st_mode)
    except PlanFileError:
        stream.close()
        raise
    return stream


def _status(name: str, folder: int) -> int:
    return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode


def open_chunk(path: Path) -> BufferedReader:
    """Open a file as `open_file` does, in a folder that was found to be a folder before."""
    return open_file(path.parent, path.name)


def read_small(path: Path) -> bytes:
    """Return the bytes of a manifest or block table, or raise `PlanFileError`."""
    with explained("readable", path), open_chunk(path) as stream:
        if (size := os.fstat(stream.fileno()).st_size) > SMALL_BYTES:
            cure = "restore it, or build the plan again at another path"
            raise PlanFileError(f"{path} must hold at most {SMALL_BYTES} bytes; got {size}; {cure}")
        return stream.read(size)
