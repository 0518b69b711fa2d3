"""What a column costs: its sha256, compared with that of plain bytes, and a worker that gets it."""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from benchmarks.conftest import Effort
from benchmarks.measure.columns import BATCH, Rounded, growth

BLOCK = 2**22


def plain(path: Path, dtype: str, length: int) -> str:
    """Return the sha256 that a column has, by one call of hashlib over the mapped numbers."""
    digest = hashlib.sha256(f"{dtype} {length}\n".encode())
    digest.update(np.load(path, mmap_mode="r").data)
    return digest.hexdigest()


@pytest.mark.parametrize("dtype", ["<f8", "<i8", "<u4"])
def test_hash(dtype: str, timed: Callable[..., Any], effort: Effort, tmp_path: Path) -> None:
    """Hash the numbers of a warm file, in turns with hashlib alone, by the time of the CPU."""
    n = min(10**8, effort.largest)
    path = tmp_path / "a.npy"
    numbers = np.lib.format.open_memmap(path, "w+", dtype, (n,))
    for start in range(0, n, BLOCK):
        block = np.arange(start, min(n, start + BLOCK))
        numbers[start : start + BLOCK] = -block if dtype == "<i8" else block
    numbers.flush()
    column = ip.Column(path)
    if dtype == "<f8":
        batch, grown = growth(Rounded(column, n))
        assert list(range(n // 2, n // 2 + BATCH)) == batch
    seconds: dict[str, list[float]] = {"ours": [], "plain": []}
    for _ in range(min(effort.rounds, 5)):
        for name, job in {
            "plain": lambda: plain(path, dtype, n),
            "ours": lambda: ip.Column(path).to_dict()["sha256"],
        }.items():
            begin = process_time()
            digest = job()
            seconds[name].append(process_time() - begin)
            assert column.identity["sha256"] == digest
    pairs = zip(seconds["plain"], seconds["ours"], strict=True)
    bytes_of = n * int(dtype[-1])
    identity = timed(
        lambda: ip.Column(path).to_dict(),
        "columns",
        rounds=min(effort.rounds, 5),
        case=f"{dtype}, n = 1e{len(str(n)) - 1}",
        indices=n,
        num_bytes=bytes_of,
        bytes_per_cpu_second=bytes_of / statistics.median(seconds["ours"]),
        plain_per_cpu_second=bytes_of / statistics.median(seconds["plain"]),
        ratio=statistics.median(theirs / ours for theirs, ours in pairs),
        **({"grown_bytes": grown} if dtype == "<f8" else {}),
    )
    assert {"dtype": dtype, "length": n, "sha256": digest} == identity
