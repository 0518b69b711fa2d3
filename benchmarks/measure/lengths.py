"""Padding, randomness and time of bins by length: `python -m benchmarks.measure.lengths`.

Printed are padding, how often samples that shared a bin share one again in the next epoch, how
alike neighbouring bins are, and CPU seconds; the same for a sort inside random mega-batches, as in
Hugging Face's LengthGroupedSampler, which makes the same batches but puts the longest sample first.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import indexplan as ip

Int64 = NDArray[np.int64]

NUM = 10**6
SIZE = 32
MEGA = 50  # batches of a mega-batch, as theirs are


def chats(rng: np.random.Generator, n: int = NUM) -> Int64:
    """Log-normal, mean 366, cut at 4,096 tokens."""
    drawn = rng.lognormal(np.log(366) - 0.5, 1, n)
    return np.clip(np.round(drawn), 1, 4096).astype(np.int64)


def documents(rng: np.random.Generator, n: int = NUM) -> Int64:
    """Log-normal, with a heavy tail, cut at 8,192 tokens."""
    body, tail = rng.lognormal(6.3, 1.1, n), 800 * (1 + rng.pareto(1.2, n))
    drawn = np.where(rng.random(n) < 0.9, body, tail)
    return np.clip(np.round(drawn), 1, 8192).astype(np.int64)


def speech(rng: np.random.Generator, n: int = NUM) -> Int64:
    """Two humps, in frames of 10 ms: commands, and sentences of up to 20 s."""
    sentences, commands = rng.normal(1300, 250, n), rng.normal(350, 120, n)
    drawn = np.where(rng.random(n) < 0.7, sentences, commands)
    return np.clip(np.round(drawn), 50, 2000).astype(np.int64)


def mega_batches(lengths: Int64, epoch: int) -> list[Int64]:
    """Shuffle all samples, cut mega-batches of 50 batches, and sort each by length."""
    row = np.random.default_rng([1, epoch]).permutation(len(lengths))
    parts = [row[i : i + MEGA * SIZE] for i in range(0, len(row), MEGA * SIZE)]
    row = np.concatenate([part[np.argsort(-lengths[part], kind="stable")] for part in parts])
    return [row[i : i + SIZE] for i in range(0, len(row), SIZE)]


def shuffled(lengths: Int64, epoch: int) -> list[Int64]:
    """Cut a shuffle into batches."""
    row = ip.Shuffle(len(lengths), seed=1).take(epoch, 0, len(lengths))
    return [row[i : i + SIZE] for i in range(0, len(row), SIZE)]


def bins_of(order: ip.Order) -> Callable[[Int64, int], list[Int64]]:
    """Return what cuts an epoch of an order into bins."""

    def cut(lengths: Int64, epoch: int) -> list[Int64]:  # noqa: ARG001 (as others do)
        num = order.num_units(epoch)
        samples = order.take(epoch, 0, num)
        return np.split(samples, order.offsets(epoch, 0, num)[1:-1])

    return cut


def quality(lengths: Int64, cut: Callable[[Int64, int], list[Int64]]) -> str:
    """Return padding, the correlation of neighbouring bins' means, and pairs that meet again."""
    one, other = cut(lengths, 0), cut(lengths, 1)
    counts = np.array([len(each) for each in one])
    longest = np.array([lengths[each].max() for each in one])
    means = np.array([lengths[each].mean() for each in one])
    padding = 1 - lengths.sum() / (longest * counts).sum()
    lag = np.corrcoef(means[:-1], means[1:])[0, 1]
    of = np.empty(len(lengths), np.int64)
    for number, each in enumerate(other):
        of[each] = number
    pairs = same = 0
    for each in one:
        _, again = np.unique(of[each], return_counts=True)
        pairs += len(each) * (len(each) - 1)
        same += int((again * (again - 1)).sum())
    return f"{len(one):>7} {padding:>8.1%} {lag:>+6.2f} {same / pairs:>9.1e}"


def seconds(work: Callable[[], Any], times: int = 5) -> float:
    """Return the least CPU seconds of some runs."""
    found = []
    for _ in range(times):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def build(order: ip.Order) -> None:
    """Cut the bins of an order anew."""
    vars(order).pop("_template", None)
    order.num_units(0)


def read(order: ip.Order, some: Int64) -> None:
    """Take a few bins, again and again."""
    for each in some:
        order.take(2, each)


def main() -> None:
    """Print a table for each kind of lengths."""
    for kind in (chats, documents, speech):
        lengths = kind(np.random.default_rng(0))
        column = ip.Column(lengths)
        budget = int(lengths.max()) * 4
        orders: dict[str, Any] = {
            f"LengthGrouped, {num} buckets": ip.LengthGrouped(column, SIZE, num_buckets=num)
            for num in (16, 32, 64, 128)
        }
        fields = {"multiple_of": 8, "max_tokens": budget}
        orders[f"TokenBudget {budget}"] = ip.TokenBudget(column, **fields)
        print(f"{kind.__name__}, mean {lengths.mean():.0f}, longest {lengths.max()}")
        print(f"{'':<28}   bins  padding    lag  together build ms epoch ms 8 bins us")
        rows = {"random": shuffled, "sorted in mega-batches": mega_batches}
        for name, cut in rows.items():
            took = seconds(partial(cut, lengths, 2), 2)
            print(f"{name:<28}{quality(lengths, cut)} {'':>8} {took * 1e3:>8.0f}")
        for name, order in orders.items():
            said = quality(lengths, bins_of(order))
            num = order.num_units(0)
            some = np.random.default_rng(0).integers(num, size=(1000, 8))
            work = partial(build, order), partial(order.take, 2, 0, num), partial(read, order, some)
            built, epoch, few = (1e3 * seconds(each) for each in work)
            print(f"{name:<28}{said} {built:>8.0f} {epoch:>8.0f} {few:>9.0f}")


if __name__ == "__main__":
    main()
