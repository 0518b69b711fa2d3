"""What a soak has seen, as a table for people."""

from __future__ import annotations

import platform
from datetime import datetime
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import indexplan as ip
from indexplan.files.machine import num_cores
from tests.soak.history import Counts

TOTALS = (
    "legs",
    "histories",
    "samples lost",
    "samples repeated",
    "legs that raised",
    "jobs that died",
    "steps",
    "samples read",
    "units dropped, as accounted for",
    "units padded, as accounted for",
)
GROUPS = (
    "histories with",
    "killed",
    "orders",
    "remainders",
    "legs with",
    "plans",
    "states carried by",
    "read by",
)
PACKAGES = ("numpy", "numba", "torch", "torchdata")


def summary(counts: Counts, seconds: float, begun: datetime, command: str, failed: int) -> str:
    """Return the table of a soak, with what it ran on."""
    legs, histories = counts["", "legs"], counts["", "histories"]
    lines = [f"$ {command}"]
    lines += [f"{counts['', name]:>15,}  {name}" for name in TOTALS]
    for group in GROUPS:
        names = {name: number for (of, name), number in counts.items() if of == group}
        ranked = sorted(names.items(), key=lambda pair: (-pair[1], str(pair[0])))
        lines += [f"{group}:"]
        lines += [f"{number:>15,}  {name}" for name, number in ranked] or [f"{'none':>15}"]
    lines += worlds(counts)
    lines += [
        f"{seconds:,.0f} s, {legs / seconds:,.0f} legs/s, {begun:%Y-%m-%d %H:%M} UTC",
        f"{processor()}, {num_cores()} cores; {platform.system()} {platform.machine()}; "
        f"Python {platform.python_version()}, indexplan {ip.__version__}, "
        + ", ".join(f"{name} {version(name)}" for name in PACKAGES),
        f"result: {failed} of {histories:,} histories went wrong"
        if failed
        else f"result: each sample was read once, or accounted for, in all {histories:,} histories",
    ]
    return "\n".join(lines)


def worlds(counts: Counts) -> list[str]:
    """Return which world sizes there were, and how many legs on how many ranks."""
    by_size = {size: number for (of, size), number in counts.items() if of == "world sizes"}
    edges = [1, 2, 5, 9, 33, 101, 201]
    lines = [f"world sizes: {len(by_size)} different ones"]
    for low, high in pairwise(edges):
        number = sum(by_size[size] for size in by_size if low <= size < high)
        lines.append(f"{number:>15,}  {low}{f' to {high - 1}' if high > low + 1 else ''}")
    return lines


def processor() -> str:
    """Return the processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown processor"
