"""The cache: a folder of one user, where chunks of remote plans and tables of orders are kept."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from io import BufferedReader
from pathlib import Path
from typing import TypeVar

from indexplan import kernels
from indexplan.errors import IndexPlanError, PlanFileError, cure_of
from indexplan.stores.plain import hold, kind_of, open_inside
from indexplan.stores.publish import write_all
from indexplan.stores.store import BLOCK_BYTES, Store
from indexplan.stores.temporary import LOCKS

CACHE = "INDEXPLAN_CACHE"
PATIENCE = 5.0  # seconds of waiting for another process after which one line says so
Kept = TypeVar("Kept")


def cache_folder(url: str, identity: str) -> Path:
    """Return the folder for the chunks of one plan; another plan at that URL has another folder.

    Raises
    ------
    PlanFileError
        If the user has no home folder, and no environment variable names another one.
    """
    key = hashlib.sha256(f"{url}\n{identity}".encode()).hexdigest()[:32]
    return user_folder(f"chunks of {url}") / key


def user_folder(what: str) -> Path:
    """Return this user's folder for what is kept; raise `PlanFileError` if there is none."""
    if folder := os.environ.get(CACHE):
        user = getattr(os, "geteuid", int)()  # several may share it; Windows has no numbers
        return Path(folder).absolute() / f"indexplan-{user}"
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        rule, cure = f"must be known, to keep {what}", f"set {CACHE} to a folder"
        raise PlanFileError("the home folder", rule, "none", cure) from None
    return Path(base).absolute() / "indexplan"


def fetch(
    store: Store, size: int, blocks: Callable[[], Iterator[bytes]], path: Path
) -> BufferedReader:
    """Open a kept chunk; unless it is there whole, download it first, by `blocks` that are checked.

    Raises
    ------
    PlanFileError
        If the file cannot be read or kept, or is not what it has to be; nothing is kept then. If
        another user could have written what is there.
    IndexPlanError
        If this system has no POSIX file locks.
    """
    if not LOCKS:
        raise IndexPlanError(
            "reading from an object store",
            "needs POSIX file locks, which this system lacks",
            None,
            "copy the plan to a folder, and read it there",
        )

    def whole(held: int) -> BufferedReader | None:
        stream = open_kept(path, held)
        if stream and os.fstat(stream.fileno()).st_size != size:
            stream.close()
            return None
        return stream

    try:
        return keep(path, whole, blocks)
    except OSError as error:
        cure = f"free some space, or set {CACHE} to a folder on a disk of this machine with space"
        raise PlanFileError(
            path,
            f"must be written, to read {store.path}",
            f"{error.strerror!r}",
            cure_of(error, cure),
        ) from error


def keep(
    path: Path,
    whole: Callable[[int], Kept | None],
    blocks: Callable[[], Iterator[bytes | memoryview]],
) -> Kept:
    """Return what `whole` finds of a file, in a folder that is held open; write it if it is None.

    One process writes, and others that want the file wait for it. The last four parts of `path`
    are a folder of this user, two folders in it and the file: no link among them is followed, and
    no other user may own or write to them. So whatever is there was checked.

    Raises
    ------
    OSError
        If the file cannot be read or written; then nothing is kept.
    PlanFileError
        If another user could have written what is there.
    """
    inner, outer, user, base = path.parents[:4]
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    with ExitStack() as stack:
        held = stack.enter_context(hold(str(base)))
        for folder in (user, outer, inner):
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder.name, 0o700, dir_fd=held)
            _look(folder, held, folder=True)
            held = stack.enter_context(hold(folder.name, held))
            _check_ours(folder, os.fstat(held), folder=True)
        while (found := whole(held) or _written(path, whole, blocks, held)) is None:
            pass
        return found


def _look(path: Path, held: int, *, folder: bool = False) -> os.stat_result:
    """Return the status of what is in a folder that is held open; refuse what is not ours alone."""
    found = os.stat(path.name, dir_fd=held, follow_symlinks=False)
    _check_ours(path, found, folder=folder)
    return found


def _check_ours(path: Path, found: os.stat_result, *, folder: bool = False) -> None:
    """Raise `PlanFileError` unless only this user can have written what is kept."""
    if stat.S_IFMT(found.st_mode) != (stat.S_IFDIR if folder else stat.S_IFREG):
        got = kind_of(found.st_mode)
    elif found.st_uid != os.geteuid():
        got = f"one of user {found.st_uid}"
    elif found.st_mode & 0o022:
        got = f"one of mode {stat.S_IMODE(found.st_mode):o}"
    elif not folder and found.st_nlink != 1:
        got = "one with other hard links"
    else:
        return
    cure = f"delete it, or set {CACHE} to a folder of your own"
    raise PlanFileError(
        path,
        f"must be a {('folder' if folder else 'file')} that only you, user "
        f"{os.geteuid()}, can write to",
        got,
        cure,
    )


def open_kept(path: Path, held: int) -> BufferedReader | None:
    """Open a kept file, if it is there."""
    try:
        _look(path, held)
        return open_inside(path.name, held)
    except FileNotFoundError:
        return None


def _open_part(name: str, held: int) -> int:
    """Open the file that a chunk is downloaded to, or make it; no link is followed."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    while True:
        with contextlib.suppress(FileExistsError):
            return os.open(name, flags | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=held)
        with contextlib.suppress(FileNotFoundError):  # another process has just renamed it
            return os.open(name, flags, dir_fd=held)


def _lock(number: int, part: Path, held: int) -> None:
    """Lock a file until this process dies; say once for which one this takes long.

    Another process may hold it that is writing, or was stopped.
    """
    import fcntl

    began = time.monotonic()
    while time.monotonic() - began < PATIENCE:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(0.01)
        except OSError:  # a file system without locks
            os.unlink(part.name, dir_fd=held)
            raise
    with contextlib.suppress(Exception):  # no Linux, or no stderr
        file = rf"FLOCK +ADVISORY +WRITE +(\d+) \S+:{os.fstat(number).st_ino} "
        pids = re.findall(file, Path("/proc/locks").read_text())
        holder = f"process {pids[0]}" if pids else "another process"
        sys.stderr.write(f"indexplan: waiting for {holder}, which writes {part}\n")
    fcntl.flock(number, fcntl.LOCK_EX)


def _written(
    path: Path,
    whole: Callable[[int], Kept | None],
    blocks: Callable[[], Iterator[bytes | memoryview]],
    held: int,
) -> Kept | None:
    """Write a file and give it its name, or wait for another process that is doing so.

    Return what that has written; None if this one has, or if the other has failed.
    """
    import fcntl

    part = path.with_name(f".{path.name}.part")
    with contextlib.suppress(FileNotFoundError):
        _look(part, held)  # before it is opened: a pipe would block
    with (
        open(part.name, "r+b", 0, opener=lambda name, _: _open_part(name, held)) as stream,
        ExitStack() as locked,
    ):
        _check_ours(part, os.fstat(stream.fileno()))
        _lock(stream.fileno(), part, held)
        locked.callback(fcntl.flock, stream, fcntl.LOCK_UN)  # a fork would hold it too
        if (found := whole(held)) is not None:
            return found
        try:
            if not os.path.samestat(os.fstat(stream.fileno()), _look(part, held)):
                return None
        except FileNotFoundError:
            return None
        try:
            stream.truncate(0)  # of a killed process
            for block in blocks():
                write_all(stream.fileno(), block)
            os.fsync(stream.fileno())
            os.replace(part.name, path.name, src_dir_fd=held, dst_dir_fd=held)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):  # Ctrl-C may come when it has its name
                os.unlink(part.name, dir_fd=held)
            raise
    return None


def checked_chunk(store: Store, name: str, size: int, hashes: Iterable[int]) -> Iterator[bytes]:
    """Yield the blocks of a chunk; raise at the first that does not fit its hash."""
    with store.open(name) as stream:
        found = stream.seek(0, os.SEEK_END)
        if found != size:
            raise _damaged(store, name, f"{found} instead of {size} bytes")
        stream.seek(0)
        for number, noted in enumerate(hashes):
            block = stream.read(BLOCK_BYTES)
            if kernels.xxh64.xxh64(block) != noted:
                raise _damaged(store, name, f"other bytes in block {number}")
            yield block


def _damaged(store: Store, name: str, got: str) -> PlanFileError:
    cure = "read it again; if that does not help, verify the plan, and restore the file"
    return PlanFileError(f"{store.path}/{name}", "must be what its hashes say", got, cure)
