"""Indices computed on a GPU, compared with the package's and timed: for whoever has one.

`python -m benchmarks.measure.on_device` prints, for each order, how many of its values differ (0),
and nanoseconds an index: as `OnDevice` computes them, compiled, and on the host with the copy to
the device. Then it reads epochs through `OnDevice`, and prints how many values are not those of
`plan.batch` (0); on a GPU it fails where the host waits for the device, as torch's
`set_sync_debug_mode` tells. Pass another device, such as `cpu` or `mps`, as its argument.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

import numpy as np
import torch

import indexplan as ip
from indexplan_torch.device_orders import STRETCHES
from indexplan_torch.on_device import AHEAD, OnDevice, compiled

TIMES = 7
ORDERS = (
    ip.Shuffle(60_000, seed=1),
    ip.Shuffle(10**9, seed=1),
    ip.Shuffle(2**63 - 1, seed=1),
    ip.LocalShuffle(10**9, window=2**20, seed=1),
    ip.BlockShuffle(10**9, block_size=4096, window=256, seed=1),
)

READ = ip.Shuffle(2**20, seed=1)  # through OnDevice


@contextmanager
def without_waiting(device: torch.device) -> Iterator[None]:
    """On a GPU, fail where the host waits for it."""
    if device.type == "cuda":
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        if device.type == "cuda":
            torch.cuda.set_sync_debug_mode("default")


def read_row(device: torch.device, *, is_compiled: bool) -> str:
    """Read two epochs, the second one without waiting, and compare both."""
    plan = ip.Plan(READ, world_size=1, batch_size=1000, remainder="spread")
    loader = OnDevice(plan, torch.arange(READ.num_samples, device=device), compiled=is_compiled)
    first = [*loader]  # compiles
    begin = perf_counter()
    with without_waiting(device):
        second = [*loader]
    second[-1].cpu()
    took = (perf_counter() - begin) / READ.num_samples * 1e9
    expected = [[*plan.batches(epoch, rank=0)] for epoch in range(2)]
    differ = sum(
        int(np.sum(np.concatenate(epoch) != torch.cat(found).cpu().numpy()))
        for epoch, found in zip(expected, (first, second), strict=True)
    )
    name = f"OnDevice(compiled={is_compiled}) of {READ!r}"
    return f"{name:66} {differ:6} {took:8.2f}"


def nanoseconds(work: Callable[[], torch.Tensor]) -> tuple[torch.Tensor, float]:
    """Return what some work returns, and the median of its time by index, the device waited for."""
    took = []
    for _ in range(TIMES + 1):
        begin = perf_counter()
        found = work()
        found[-1:].cpu()
        took.append(perf_counter() - begin)
    return found, statistics.median(took[1:]) / len(found) * 1e9


def row(order: ip.Order, device: torch.device) -> str:
    """Compare and time one order, at the end of its first stretch."""
    each = next(iter(STRETCHES[type(order)](order, 3)))
    num = min(AHEAD, each.stop)
    start = each.stop - num
    lanes = torch.arange(start, each.stop, device=device)
    numbers = torch.tensor(each.numbers, device=device)
    one_kernel = compiled(each.arithmetic)
    eager, slow = nanoseconds(lambda: each.arithmetic(lanes, numbers, **each.options))
    fused, fast = nanoseconds(lambda: one_kernel(lanes, numbers, **each.options))
    host, there = nanoseconds(lambda: torch.from_numpy(order.take(3, start, each.stop)).to(device))
    expected = host.cpu().numpy()
    differ = sum(int(np.sum(expected != found.cpu().numpy())) for found in (eager, fused))
    return f"{order!r:66} {differ:6} {slow:8.2f} {fast:9.2f} {there:14.2f}"


def main() -> None:
    """Print a row for each order."""
    device = torch.device(sys.argv[1] if len(sys.argv) > 1 else "cuda")
    print(f"torch {torch.__version__}, {device}; nanoseconds an index")
    print(f"{'order':66} differ    eager  compiled  host and copy")
    for order in ORDERS:
        print(row(order, device), flush=True)
    print(f"{'epochs of batches':66} differ  a sample")
    for is_compiled in (False, True):
        print(read_row(device, is_compiled=is_compiled), flush=True)


if __name__ == "__main__":
    main()
