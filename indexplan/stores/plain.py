"""Opening the files of a plan directory: plain files only, and no link below it is followed.

A named pipe would block its reader, a device may do anything, and a link leads elsewhere; each is
refused by its kind, before it is opened.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BufferedReader
from pathlib import Path

from indexplan.errors import PlanFileError

SMALL_BYTES = 2**30  # no plan.json, and no hashes of a chunk, are larger

_KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
# without O_NONBLOCK, a pipe that replaces a file at this moment would still block
_FLAGS = ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_BINARY")


def kind_of(mode: int) -> str:
    """Return what is at a path, by its `st_mode`."""
    return _KINDS.get(stat.S_IFMT(mode), "something else")


def check_kind(path: Path, mode: int, *, folder: bool = False) -> None:
    """Raise `PlanFileError` unless this `st_mode` is that of a plain file, or of a folder."""
    if stat.S_IFMT(mode) != (stat.S_IFDIR if folder else stat.S_IFREG):
        what = "folder" if folder else "file"
        kind = kind_of(mode)
        cure = f"put the {what} itself in its place, or choose another path"
        raise PlanFileError(path, f"must be a plain {what}", kind, cure)


def open_file(root: Path, name: str) -> BufferedReader:
    """Open a file of a plan directory for reading; the directory itself may be a link.

    Raises
    ------
    PlanFileError
        If the file, or a folder on the way to it, is a link or of another kind.
    OSError
        If it cannot be opened.
    """
    if os.open not in os.supports_dir_fd:  # Windows
        return _open_by_path(root, name)
    *folders, last = name.split("/")
    path = root
    with ExitStack() as stack:
        held = stack.enter_context(hold(str(root)))
        for folder in folders:
            path = path / folder
            check_kind(path, _status(folder, held), folder=True)
            held = stack.enter_context(hold(folder, held))
        check_kind(path / last, _status(last, held))
        return _if_plain(open_inside(last, held), path / last)


@contextmanager
def hold(name: str, inside: int | None = None) -> Iterator[int]:
    """Hold a folder open; one inside another must not be a link.

    Each descriptor is closed once, and in one place: if Ctrl-C came between a close and its record,
    the number would be closed again, when it may be another file's.
    """
    flags = _flags("O_CLOEXEC", "O_DIRECTORY") if inside is None else _flags(*_FLAGS, "O_DIRECTORY")
    descriptor = os.open(name, flags, dir_fd=inside)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_inside(path: str | Path, inside: int | None = None) -> BufferedReader:
    """Open a file; its descriptor belongs to the stream from the start, which alone closes it."""
    return open(path, "rb", opener=lambda name, _: os.open(name, _flags(*_FLAGS), dir_fd=inside))


def _open_by_path(root: Path, name: str) -> BufferedReader:
    """Open a file of a plan directory on systems where a folder cannot be held open."""
    *folders, last = name.split("/")
    path = root
    for folder in folders:
        path = path / folder
        check_kind(path, os.lstat(path).st_mode, folder=True)
    path = path / last
    check_kind(path, os.lstat(path).st_mode)
    return _if_plain(open_inside(path), path)


def _if_plain(stream: BufferedReader, path: Path) -> BufferedReader:
    """Return a file that was opened; raise if it is not a plain file after all."""
    try:
        check_kind(path, os.fstat(stream.fileno()).st_mode)
    except PlanFileError:
        stream.close()
        raise
    return stream


def _status(name: str, folder: int) -> int:
    return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode


def _flags(*names: str) -> int:
    """Return the flags for reading; Windows lacks most of these."""
    return os.O_RDONLY | sum(getattr(os, name, 0) for name in names)


def read_small(stream: BufferedReader, path: Path | str) -> bytes:
    """Return the bytes of a small file, any but a chunk; raise `PlanFileError` if it is large."""
    if (size := stream.seek(0, os.SEEK_END)) > SMALL_BYTES:
        cure = "restore it, or build the plan again at another path"
        raise PlanFileError(path, f"must hold at most {SMALL_BYTES} bytes", size, cure)
    stream.seek(0)
    return stream.read(size)
