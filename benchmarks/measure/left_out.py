"""What it costs to take a million samples out of a thousand millions.

    python -m benchmarks.measure.left_out

CPU time of this process: what an epoch needs first, a batch of 256, and a plan's first steps under
"carry", without and with excluded samples. Then what it costs to change a run again and again, one
change after another, at two numbers of changes a factor of 4 apart.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np

import indexplan as ip

SAMPLES, EXCLUDED, BATCH, TIMES = 10**9, 10**6, 256, 2000


def timed(call: Callable[[], Any]) -> float:
    """Return seconds of CPU time."""
    start = process_time()
    call()
    return process_time() - start


def batches(plan: ip.Plan, epoch: int) -> float:
    """Return the median seconds for a batch, over rounds."""

    def some() -> None:
        for step in range(TIMES):
            plan.batch(epoch, step=100 * step, rank=3)

    some()
    return float(np.median([timed(some) for _ in range(7)])) / TIMES


def excluded(num: int, inner: ip.Order, size: int) -> Callable[[], Any]:
    """Return what excludes some samples at places of one epoch, from checkpoint to checkpoint."""
    parts = np.array_split(np.random.default_rng(0).permutation(inner.num_samples)[:size], num)

    def chain() -> None:
        plan = ip.Plan(inner, world_size=2, batch_size=2)
        for step, samples in enumerate(parts):
            cursor = plan.cursor(0, step=step + 1)
            order = ip.Without(plan.order, samples, since=cursor)
            plan = plan.replace(order=order).resume(cursor)
            plan.batch(0, step=step + 1, rank=1)

    return chain


def phases(num: int) -> Callable[[], Any]:
    """Return what changes the weights of a mixture in each epoch."""
    sources = {"a": ip.Shuffle(7000, seed=1), "b": ip.Shuffle(3000, seed=2)}

    def chain() -> None:
        order = ip.Mixture(sources, {"a": 1, "b": 1})
        plan = ip.Plan(order, world_size=2, batch_size=5)
        for epoch in range(num):
            cursor = plan.cursor(epoch, step=3)
            order = order.with_phase(cursor, {"a": epoch + 2, "b": 3})
            plan = plan.replace(order=order).resume(cursor)
            plan.batch(epoch, step=4, rank=1)

    return chain


def joined(num: int) -> Callable[[], Any]:
    """Return what lets a source join a mixture in each epoch."""

    def chain() -> None:
        order, weights = ip.Mixture({"a": ip.Shuffle(7000, seed=1)}, {"a": 1}), {"a": 1}
        plan = ip.Plan(order, world_size=2, batch_size=5)
        for epoch in range(num):
            cursor, name = plan.cursor(epoch, step=3), f"new {epoch}"
            weights[name] = epoch + 1
            new = {name: ip.Shuffle(500, seed=epoch + 9)}
            order = order.with_phase(cursor, weights, sources=new)
            plan = plan.replace(order=order).resume(cursor)
            plan.batch(epoch, step=4, rank=1)

    return chain


def updated(num: int) -> Callable[[], Any]:
    """Return what changes the weights of samples in each epoch."""
    weights = np.random.default_rng(0).random((num + 1, 2000))

    def chain() -> None:
        order = ip.Weighted(weights[0], seed=1)
        plan = ip.Plan(order, world_size=2, batch_size=5)
        for epoch in range(1, num + 1):
            cursor = plan.cursor(epoch, step=0)
            order = order.updated(epoch, weights[epoch])
            plan = plan.replace(order=order).resume(cursor)
            plan.batch(epoch, step=1, rank=0)

    return chain


def parts(num: int) -> Callable[[], Any]:
    """Return what splits a dataset into parts."""
    return lambda: ip.Split(10**5, {f"part {number}": 1 for number in range(num)})


def chains() -> list[str]:
    """Return what chains of changes cost, in lines."""
    lengths = np.random.default_rng(0).integers(1, 100, 40_000)
    shuffle = ip.Shuffle(100_000, seed=1)
    bins = ip.TokenBudget(lengths, max_tokens=1000)
    kinds: dict[str, Callable[[int], Callable[[], Any]]] = {
        "phases of a mixture": phases,
        "sources that join a mixture": joined,
        "updates of weights": updated,
        "parts of a split": parts,
        "places that exclude 100 samples": lambda num: excluded(num, shuffle, 100 * num),
        "places that exclude 5,000 samples of bins": lambda num: excluded(num, bins, 5000),
    }
    said = []
    for name, chain in kinds.items():
        chain(2)()
        few, many = (float(np.median([timed(chain(num)) for _ in range(3)])) for num in (50, 200))
        said.append(f"50 and 200 {name}: {few:.3f} and {many:.3f} s, {many / few:.1f} times")
    return said


def main() -> None:
    """Measure, and write what was found."""
    shuffle = ip.Shuffle(SAMPLES, seed=1)
    samples = np.sort(np.random.default_rng(0).choice(SAMPLES, EXCLUDED, replace=False))
    plan = ip.Plan(shuffle, world_size=8, batch_size=BATCH)
    said = [f"{SAMPLES:,} samples, {EXCLUDED:,} of them excluded"]
    order: ip.Order = shuffle
    made = timed(lambda: ip.Without(shuffle, samples, since=plan.cursor(1, step=9)))
    order = ip.Without(shuffle, samples, since=plan.cursor(1, step=9))
    without = plan.replace(order=order)
    said.append(f"make the order, which checks the samples: {1e3 * made:.0f} ms")
    said.append(f"its fingerprint, once: {1e3 * timed(lambda: order.fingerprint):.0f} ms")
    said.append(f"the find of all of them: {1e3 * timed(lambda: shuffle.find(2, samples)):.0f} ms")
    firsts = [timed(lambda e=e: without.batch(e, step=5, rank=0)) for e in range(3, 8)]  # type: ignore[misc]
    said.append(f"what an epoch needs first: {1e3 * float(np.median(firsts)):.0f} ms")
    said.append(f"a batch of {BATCH} of the plan before: {1e6 * batches(plan, 3):.1f} us")
    said.append(f"a batch of {BATCH} of the plan after: {1e6 * batches(without, 3):.1f} us")
    sys.stdout.write("\n".join([*said, *chains()]) + "\n")


if __name__ == "__main__":
    main()
