"""Put files into the page cache or drop them from it, and count what reading takes from the disk.

Whether a file is "cold" or "warm" is asked of the kernel (mincore), not assumed.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path
from time import perf_counter

import numpy as np


def resident(path: Path) -> np.ndarray:
    """Return which of a file's pages lie in the page cache, bool of shape (pages,)."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pages:
        mapped = np.frombuffer(pages, np.uint8)
        flags = np.empty(-(-len(mapped) // mmap.PAGESIZE), np.uint8)
        libc = ctypes.CDLL(None, use_errno=True)
        start, length = ctypes.c_void_p(mapped.ctypes.data), ctypes.c_size_t(len(mapped))
        failed = libc.mincore(start, length, ctypes.c_void_p(flags.ctypes.data))
        del mapped  # the map cannot be closed under it
        if failed:
            raise OSError(ctypes.get_errno(), "mincore failed")
        return (flags & 1).astype(np.bool_)


def drop(path: Path) -> None:
    """Ask the kernel to take a file out of the page cache; nobody may have it mapped."""
    with path.open("rb") as file:
        os.fsync(file.fileno())  # what is not written yet is kept, whatever is asked
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def cool(path: Path) -> None:
    """Take a file out of the page cache, and see that it is out."""
    drop(path)
    share = resident(path).mean()
    if share > 0.001:
        raise OSError(
            f"{path.parent} must be on a disk whose page cache can be dropped; got {share:.1%} of "
            "a file still in memory; set TMPDIR to a folder on a disk, not on a tmpfs"
        )


def warm(path: Path) -> None:
    """Read a file into the page cache, and see that all of it is in."""
    if resident(path).mean() <= 0.999:
        cool(path)  # whoever read it before may have left pages of another size
    for _ in range(3):  # once was seen to leave a few pages out, with most of the memory free
        read_through(path)
        share = resident(path).mean()
        if share > 0.999:
            return
    raise OSError(
        f"the page cache must hold the whole file; got {share:.1%} of it; free some memory"
    )


def read_through(path: Path) -> float:
    """Read a file from start to end, 1 MiB at a time, as `dd bs=1M` does; return bytes per s."""
    buffer = bytearray(2**20)
    start = perf_counter()
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass
    return path.stat().st_size / (perf_counter() - start)


def read_pages(path: Path, seconds: float, seed: int) -> float:
    """Read single pages at random, one after the other, for a while; return pages per s."""
    num_pages = -(-path.stat().st_size // mmap.PAGESIZE)
    pages = np.random.default_rng(seed).permutation(num_pages).tolist()
    with path.open("rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        start, done = perf_counter(), 0
        while done < num_pages and perf_counter() - start < seconds:
            os.pread(file.fileno(), mmap.PAGESIZE, pages[done] * mmap.PAGESIZE)
            done += 1
        return done / (perf_counter() - start)


def read_ahead(path: Path) -> int | None:
    """Return how many bytes around a missed page the disk's settings make the kernel read."""
    device = path.stat().st_dev
    disk = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    for queue in (disk / "queue", disk / ".." / "queue"):  # of a disk, of a partition
        if (queue / "read_ahead_kb").exists():
            return 1024 * int((queue / "read_ahead_kb").read_text())
    return None  # a file system that is not on one disk


def read_by(process: object = "self") -> int:
    """Return how many bytes a process has had the disk read; OSError if the system hides it."""
    lines = Path(f"/proc/{process}/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("read_bytes:"))
