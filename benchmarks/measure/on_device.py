"""Indices computed on a GPU, compared with the package's and timed: for whoever has one.

`python -m benchmarks.measure.on_device` prints, for each size, how many of its values differ (0),
and nanoseconds an index: as `OnDevice` computes them, compiled, and on the host with the copy to
the device. Then it reads epochs through `OnDevice`, and prints how many values are not those of
`plan.batch` (0), and microseconds a batch, beside those of a loop that copies each batch's indices
from the host; on a GPU it fails where `OnDevice` lets the host wait for the device, as torch's
`set_sync_debug_mode` tells. Pass another device, such as `cpu` or `mps`, as its argument.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from time import perf_counter

import numpy as np
import torch

import indexplan as ip
from indexplan_torch.networks import num_walks, numbers_of, shuffled
from indexplan_torch.on_device import AHEAD, OnDevice, one_kernel

TIMES = 7
ORDERS = (
    ip.Shuffle(60_000, seed=1),
    ip.Shuffle(10**9, seed=1),
    ip.Shuffle(2**63 - 1, seed=1),
)

READ = ip.Shuffle(2**20, seed=1)  # through OnDevice
PLANS = (
    ip.Plan(READ, world_size=1, batch_size=256),
    ip.Plan(READ, world_size=1, batch_size=8192),
    ip.Plan(READ, world_size=64, batch_size=256),
)


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


def read_row(plan: ip.Plan, device: torch.device) -> str:
    """Read two epochs of a rank in three ways, the second epochs with the clock running."""
    rows = torch.arange(READ.num_samples, device=device)
    rank, epochs = plan.world_size // 2, range(2)
    expected = [np.concatenate([*plan.batches(epoch, rank=rank)]) for epoch in epochs]

    def copied(epoch: int) -> Iterator[torch.Tensor]:
        for batch in plan.batches(epoch, rank=rank):
            yield rows[torch.from_numpy(batch).to(device)]

    def loaded(*, is_compiled: bool) -> Callable[[int], Iterator[torch.Tensor]]:
        ranks: dict[str, int] = {"rank": rank, "world_size": plan.world_size}
        loader = OnDevice(plan, rows, compiled=is_compiled, **ranks)
        return lambda _: iter(loader)

    ways = loaded(is_compiled=False), loaded(is_compiled=True), copied
    differ, took = 0, []
    for way in ways:
        first = [*way(0)]  # compiles
        begin = perf_counter()
        with nullcontext() if way is copied else without_waiting(device):
            second = [*way(1)]
        second[-1].cpu()
        took.append((perf_counter() - begin) / len(second) * 1e6)
        for found, epoch in zip((first, second), expected, strict=True):
            differ += int(np.sum(torch.cat(found).cpu().numpy() != epoch))
    name = f"batches of {plan.batch_size}, rank {rank} of {plan.world_size}"
    return f"{name:66} {differ:6} {took[0]:8.1f} {took[1]:9.1f} {took[2]:14.1f}"


def nanoseconds(work: Callable[[], torch.Tensor]) -> tuple[torch.Tensor, float]:
    """Return what some work returns, and the median of its time by index, the device waited for."""
    took = []
    for _ in range(TIMES + 1):
        begin = perf_counter()
        found = work()
        found[-1:].cpu()
        took.append(perf_counter() - begin)
    return found, statistics.median(took[1:]) / len(found) * 1e9


def row(order: ip.Shuffle, device: torch.device) -> str:
    """Compare and time one order, at the end of an epoch."""
    stop, walks = order.num_samples, num_walks(order.num_samples)
    start = stop - min(AHEAD, stop)
    lanes = torch.arange(start, stop, device=device)
    numbers = torch.tensor(numbers_of(order, 3), device=device)
    eager, slow = nanoseconds(lambda: shuffled(lanes, numbers, walks))
    fused, fast = nanoseconds(lambda: one_kernel()(lanes, numbers, walks))
    host, there = nanoseconds(lambda: torch.from_numpy(order.take(3, start, stop)).to(device))
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
    print(f"{'microseconds a batch of ' + repr(READ):66} differ    eager  compiled  host and copy")
    for plan in PLANS:
        print(read_row(plan, device), flush=True)


if __name__ == "__main__":
    main()
