"""How much memory a job adds to its process. Imports are measured too, so nothing heavy is here."""

from time import perf_counter


def rss() -> int:
    """Return the memory that this process holds, in bytes; Linux."""
    with open("/proc/self/smaps_rollup") as lines:  # noqa: PTH123 (pathlib is an import too)
        return next(int(line.split()[1]) for line in lines if line.startswith("Rss:")) * 1024


def reset_peak() -> None:
    """Forget the highest memory so far."""
    with open("/proc/self/clear_refs", "w") as file:  # noqa: PTH123
        file.write("5")


def peak() -> int:
    """Return the highest memory since `reset_peak`, in bytes.

    Not `ru_maxrss`: it cannot be reset, so a small growth hides below the peak of the imports,
    and a child inherits its parent's.
    """
    with open("/proc/self/status") as lines:  # noqa: PTH123
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024


def keep(num_bytes: int) -> None:
    """Let the process keep memory that it frees, and have so much of it; of glibc, else no change.

    A new page costs a virtual machine up to some ten microseconds, as its host has to find one.
    """
    from ctypes import CDLL

    mallopt = getattr(CDLL(None), "mallopt", None)
    if mallopt is None:
        return
    for name, value in ((-1, 2**31 - 1), (-3, 2**25)):  # M_TRIM_THRESHOLD, and M_MMAP_THRESHOLD
        assert mallopt(name, value)
    block = 2**24  # smaller than that threshold, to come from the heap
    blocks = [bytearray(block) for _ in range(num_bytes // block)]
    for each in blocks:
        each[:: 2**12] = b"1" * (block // 2**12)  # touch every page


def measured(job) -> tuple:
    """Return what a job returned, with the seconds that it took and the memory that it added."""
    before = rss()
    reset_peak()
    start = perf_counter()
    output = job()
    seconds = perf_counter() - start
    return output, {
        "seconds": seconds,
        "peak_bytes": peak() - before,
        "held_bytes": rss() - before,
    }
