"""The cores and the memory of the machine that this process may use."""

from __future__ import annotations

import os
from pathlib import Path


def num_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def free_bytes() -> int | None:
    """Return the free memory that this process, or its container, may use; None if unknown."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return None
    group = Path("/sys/fs/cgroup")
    try:
        most = int((group / "memory.max").read_text())
        return max(0, min(free * 1024, most - int((group / "memory.current").read_text())))
    except (OSError, ValueError):  # no such file, or "max": no limit
        return free * 1024
