"""The folder in which chunks of remote plans are kept, whole and checked, for all of a machine."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from indexplan.errors import IndexPlanError, PlanFileError
from indexplan.files.format import BLOCK_BYTES
from indexplan.files.places import Place

CACHE = "INDEXPLAN_CACHE"


def cache_folder(url: str, identity: str) -> Path:
    """Return the folder for the chunks of one plan; another plan at the URL has another folder.

    Raises
    ------
    PlanFileError
        If the user has no home folder, and no environment variable names another one.
    """
    key = hashlib.sha256(f"{url}\n{identity}".encode()).hexdigest()[:32]
    if folder := os.environ.get(CACHE):
        return Path(folder).absolute() / key
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        rule = f"the home folder must be known, to keep chunks of {url}"
        raise PlanFileError(f"{rule}; it is not; set {CACHE} to a folder") from None
    return Path(base).absolute() / "indexplan" / key


def fetch(place: Place, name: str, size: int, hashes: Iterable[int], path: Path) -> None:
    """Download a chunk to `path`, checked block by block, unless it is there whole.

    One process downloads, and the others that want the chunk wait for it.

    Raises
    ------
    PlanFileError
        If the chunk cannot be read or kept, or is not what the block table says; nothing is kept
        then.
    IndexPlanError
        If this system has no file locks of POSIX.
    """
    try:
        path.parent.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        while not _whole(path, size):
            _try_fetch(path, size, _checked(place, name, size, hashes))
    except OSError as error:
        raise PlanFileError(
            f"{path} must be written, to read {place.path}; got {error.strerror!r}; free some "
            f"space, or set {CACHE} to a folder on a disk of this machine that has it"
        ) from error


def _whole(path: Path, size: int) -> bool:
    try:
        return path.lstat().st_size == size
    except FileNotFoundError:
        return False


def _try_fetch(path: Path, size: int, blocks: Iterator[bytes]) -> None:
    """Write a file and give it its name, or wait for somebody who is at it."""
    try:
        import fcntl
    except ImportError:  # Windows
        rule = "reading from an object store needs POSIX file locks, which this system lacks"
        raise IndexPlanError(f"{rule}; copy the plan to a folder, and read it there") from None
    part = path.with_name(f".{path.name}.part")
    with part.open("ab", buffering=0) as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)  # released when the file is closed, or its holder dies
        with contextlib.suppress(FileNotFoundError):
            if _whole(path, size) or not os.path.samestat(os.fstat(stream.fileno()), part.stat()):
                return  # somebody was at it; if they failed, ours is the next turn
            try:
                stream.truncate(0)  # of a killed process
                for block in blocks:
                    rest = memoryview(block)
                    while rest:
                        rest = rest[stream.write(rest) :]
                os.fsync(stream.fileno())
                part.replace(path)
            except BaseException:
                part.unlink(missing_ok=True)  # Ctrl-C may come when it has its name already
                raise


def _checked(place: Place, name: str, size: int, hashes: Iterable[int]) -> Iterator[bytes]:
    """Yield the blocks of a chunk as they come, if they are those of the block table."""
    from indexplan.files.xxh64 import xxh64

    with place.open(name) as stream:
        found = stream.seek(0, os.SEEK_END)
        if found != size:
            raise _damaged(place, name, f"{found} bytes instead of {size}")
        stream.seek(0)
        for number, noted in enumerate(hashes):
            block = stream.read(BLOCK_BYTES)
            if xxh64(block) != noted:
                raise _damaged(place, name, f"other bytes in block {number}")
            yield block


def _damaged(place: Place, name: str, got: str) -> PlanFileError:
    cure = "read it again; if that does not help, verify the plan, and restore the file"
    return PlanFileError(f"{place.path}/{name} must be what blocks.npy says; got {got}; {cure}")
