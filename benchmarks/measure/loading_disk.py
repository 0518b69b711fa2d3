"""The file that loading.py reads: made, put into and out of the page cache, and read without torch.

"Cold" and "warm" are asked of the kernel (mincore), not believed.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import shutil
from pathlib import Path
from time import perf_counter

import numpy as np

ROW_BYTES = 512
ROWS_AT_ONCE = 2**15


def check_space(folder: Path, num_bytes: int) -> None:
    """Raise if a folder's disk cannot hold a file and stay usable."""
    free, least = shutil.disk_usage(folder).free, num_bytes + num_bytes // 4
    if free < least:
        raise OSError(
            f"{folder} must have {least:,} bytes free; got {free:,}; "
            "set TMPDIR to a folder on a larger disk"
        )


def make(path: Path, num_rows: int) -> None:
    """Write the dataset: a row's first 8 bytes hold its number, the rest looks random."""
    with path.open("wb") as file:
        for start in range(0, num_rows, ROWS_AT_ONCE):
            file.write(row_words(np.arange(start, min(start + ROWS_AT_ONCE, num_rows))).data)
        file.flush()
        os.fsync(file.fileno())  # the kernel keeps what is not written yet, whatever it is told


def row_words(numbers: np.ndarray) -> np.ndarray:
    """Return the rows of these numbers as int64 words, shape (rows, ROW_BYTES // 8)."""
    salt = np.random.default_rng(0).integers(0, 2**62, ROW_BYTES // 8)  # no zeros, no runs: a
    salt[0] = 0  # virtual disk may not store those
    return numbers[:, None] ^ salt


def resident(path: Path) -> float:
    """Return which share of a file's pages lies in the page cache."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pages:
        mapped = np.frombuffer(pages, np.uint8)
        flags = np.empty(-(-len(mapped) // mmap.PAGESIZE), np.uint8)
        libc = ctypes.CDLL(None, use_errno=True)
        start, length = ctypes.c_void_p(mapped.ctypes.data), ctypes.c_size_t(len(mapped))
        failed = libc.mincore(start, length, ctypes.c_void_p(flags.ctypes.data))
        del mapped  # the map cannot be closed under it
        if failed:
            raise OSError(ctypes.get_errno(), "mincore failed")
        return float((flags & 1).mean())


def cool(path: Path) -> None:
    """Take a file out of the page cache, and see that it is out; nobody may have it mapped."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    share = resident(path)
    if share > 0.001:
        raise OSError(
            f"{path.parent} must be on a disk whose page cache can be dropped; got {share:.1%} of "
            "a file still in memory; set TMPDIR to a folder on a disk, not on a tmpfs"
        )


def warm(path: Path) -> None:
    """Read a file into the page cache, and see that all of it is in."""
    if resident(path) <= 0.999:
        cool(path)  # whoever read it before may have left pages of another size
    for _ in range(3):  # once was seen to leave a few pages out, with most of the memory free
        read_through(path)
        share = resident(path)
        if share > 0.999:
            return
    raise OSError(
        f"the page cache must hold the whole file; got {share:.1%} of it; free some memory"
    )


def heat(path: Path, cache: str) -> None:
    """Make a file "cold" or "warm"."""
    {"cold": cool, "warm": warm}[cache](path)


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
