"""Bins of samples by their lengths, compared with other libraries; each in fresh processes.

Times are of the CPU, in one thread, as the machine is shared. Takes some fifteen minutes.
"""

from __future__ import annotations

import statistics
from itertools import product
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contenders.binners import BATCH, FLAT, NAMES, Case, Int64, given
from benchmarks.render.tables import power

CASES = (
    Case("packing", "chats", 10**5, 4096),
    Case("packing", "chats", 10**6, 4096),
    Case("packing", "documents", 10**5, 8192),
    Case("packing", "speech", 10**5, 4096),
    Case("packing", "functions", limit=4096),
    Case("packing", "tool calls", limit=4096),
    Case("packing", "kernel documentation", limit=8192),
    Case("batches", "chats", 10**6),
    Case("batches", "documents", 10**6),
    Case("batches", "speech", 10**6),
    Case("batches", "functions"),
    Case("batches", "dictionary"),
    Case("budget", "chats", 10**5, 16384),
    Case("budget", "chats", 10**6, 16384),
    Case("budget", "speech", 10**5, 8000),
    Case("budget", "speech", 10**6, 8000),
    Case("budget", "dictionary", limit=16384),
    Case("balance", "chats", 10**5, ranks=32),
    Case("balance", "documents", 10**5, ranks=32),
    Case("balance", "speech", 10**5, ranks=16, per_rank=4),
    Case("balance", "functions", ranks=32),
    Case("balance", "code files", ranks=32),
    Case("windows", "documents", 10**6, 4096),
    Case("windows", "API documentation", limit=4096),
)
FEW = 500
"""Samples that code is loaded on before anything is timed."""
STEPS = 8
"""Steps that are balanced."""
WINDOWS = 500
"""Windows that are asked for, picked at random."""
Record = dict[str, Any]
Array = NDArray[Any]


def bins_of(dealt: tuple[Int64, Int64]) -> Int64:
    """Return the bin of each sample; each is in one."""
    samples, offsets = dealt
    n = len(samples)
    np.testing.assert_array_equal(np.bincount(samples, minlength=n), np.ones(n))
    assert (np.diff(offsets) > 0).all()
    assert (offsets[0], offsets[-1]) == (0, n)
    of = np.empty(n, np.int64)
    of[samples] = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return of


def again(one: Int64, other: Int64) -> float:
    """Return how often a sample and one that shares its bin share one again in another epoch."""
    _, cells, together = np.unique(
        one * (other.max() + 1) + other, return_inverse=True, return_counts=True
    )
    mates = np.bincount(one)[one] - 1
    alike = together[cells] - 1
    return float((alike[mates > 0] / mates[mates > 0]).mean())


def quality(case: Case, lengths: Int64, dealt: tuple[Int64, Int64], *, exact: bool) -> Record:
    """Return what the bins of an epoch are like; they keep their bound, if it is an exact one.

    `variance` is that of the mean length in global batches of many bins, in units of what it would
    be if their samples were drawn one by one: of sum / count, to first order in either.
    """
    samples, offsets = dealt
    counts, row = np.diff(offsets), lengths[samples]
    sums = np.add.reduceat(row, offsets[:-1])
    padded = np.maximum.reduceat(row, offsets[:-1]) * counts
    found: Record = {"num_bins": len(counts)}
    if case.need == "packing":
        assert sums.max() <= case.limit
        found["fill"] = float(sums.sum() / (case.limit * len(sums)))
    else:
        found["padding"] = float(1 - sums.sum() / padded.sum())
    if case.need == "batches":
        assert counts.max() <= BATCH
        assert len(counts) == -(-len(samples) // BATCH)
    if case.need == "budget":
        found["fullest"] = float(padded.max() / case.limit)
        assert found["fullest"] <= 1 or not exact
    means = sums / counts
    apart = sums - lengths.mean() * counts
    varied = np.ptp(means[:-1]) > 0 and np.ptp(means[1:]) > 0
    found["lag"] = float(np.corrcoef(means[:-1], means[1:])[0, 1]) if varied else 0.0
    found["variance"] = float((apart**2).mean() / (counts.mean() * lengths.var()))
    return found


def epochs(binner: Any, case: Case, lengths: Int64, *, exact: bool) -> Record:
    """Return the time that an epoch takes, and what its bins are like."""
    begin = process_time()
    first = binner.epoch(1)
    middle = process_time()
    second = binner.epoch(2)
    end = process_time()
    found = quality(case, lengths, first, exact=exact)
    found["again"] = again(bins_of(first), bins_of(second))
    return {"first_seconds": middle - begin, "epoch_seconds": end - middle, **found}


def unevenness(case: Case, costs: Int64, shares: Array) -> float:
    """Return by how much the dearest rank is above the mean of a step; each unit is in one share.

    Shares are of (ranks, units of each).
    """
    assert shares.shape == (case.ranks, case.per_rank)
    np.testing.assert_array_equal(np.sort(shares, axis=None) - shares.min(), np.arange(shares.size))
    sums = costs[shares].sum(axis=1)
    return float(sums.max() / sums.mean())


def steps(binner: Any, case: Case, lengths: Int64, *, exact: bool) -> Record:  # noqa: ARG001
    """Return the time until a rank has its share of a step, and how even all ranks' are."""
    costs = FLAT * lengths + lengths**2
    seconds, uneven, as_dealt, bounds = [], [], [], []
    for step in range(min(STEPS, len(lengths) // (case.ranks * case.per_rank))):
        begin = process_time()
        share = binner.share(step, 0)
        seconds.append(process_time() - begin)
        shares = [share, *(binner.share(step, rank) for rank in range(1, case.ranks))]
        uneven.append(unevenness(case, costs, np.array(shares)))
        dealt = step * np.size(shares) + np.arange(np.size(shares)).reshape(case.ranks, -1)
        as_dealt.append(unevenness(case, costs, dealt))
        # no rank can be below the mean, nor below its dearest unit
        found = costs[dealt]
        bounds.append(max(1, found.max() / (found.sum() / case.ranks)))
    return {
        "step_seconds": statistics.median(seconds),
        "uneven": statistics.mean(uneven),
        "as_dealt": statistics.mean(as_dealt),
        "bound": float(statistics.mean(bounds)),
    }


def windows(binner: Any, case: Case, lengths: Int64, *, exact: bool) -> Record:  # noqa: ARG001
    """Return the time until an epoch's first window, and from then on."""
    begin = process_time()
    binner.window(0, 0)
    begin_next = process_time()
    num = binner.num_windows()
    assert num == (lengths.sum() - 1) // case.limit
    binner.window(1, 0)
    middle = process_time()
    for place in np.random.default_rng(0).integers(num, size=WINDOWS).tolist():
        documents, starts, stops = binner.window(1, place).T
        assert (stops - starts).sum() == case.limit + 1
        assert (stops[:-1] == lengths[documents[:-1]]).all()
    return {
        "first_seconds": begin_next - begin,
        "epoch_seconds": middle - begin_next,
        "window_seconds": (process_time() - middle) / WINDOWS,
        "num_windows": num,
    }


MEASURES = {"balance": steps, "windows": windows}
"""How a need is measured that is not of bins in an epoch."""


def answer(name: str, fields: dict[str, Any], most: int) -> Record:
    """Measure one binner in one case, in a process that ran it on few samples before."""
    entry, case = NAMES[name], Case(**fields)
    measure_it = MEASURES.get(case.need, epochs)
    lengths = given(case, most)
    few = lengths[: case.ranks * case.per_rank or FEW]  # one step, or some bins
    for given_to in (few, lengths):
        begin = process_time()
        binner = entry.load()(case, given_to, **entry.options)
        built = process_time() - begin
        found = measure_it(binner, case, given_to, exact=entry.ours)
    if "first_seconds" in found:
        found["first_seconds"] += built
    return {"n": len(lengths), "build_seconds": built, **found}


def asked(names: list[str]) -> list[tuple[Case, str]]:
    """Return who is asked for what."""
    return [
        (case, name)
        for case, name in product(CASES, names)
        if case.need in NAMES[name].needs and case.n <= NAMES[name].most
    ]


def size_of(case: Case, most: int) -> str:
    """Return what the page calls the size of a case."""
    return f"{case.kind}, n = {power(len(given(case, most)))}"
