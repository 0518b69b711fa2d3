"""Orders that deal samples, compared with other libraries; each dealer in fresh processes.

Times are of the CPU, in one thread, as the machine is shared. Takes some twenty minutes and 8 GB of
memory.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.contenders.dealers import (
    CLASSES,
    COPIES,
    MIXTURES,
    NAMES,
    PER_CLASS,
    THRESHOLD,
    Case,
    Entry,
    given,
)
from benchmarks.measure.memory import keep, measured
from benchmarks.render.tables import power

CASES = (
    Case("weights", 10**6),
    Case("weights", 10**7),
    Case("weights", 10**8),
    Case("repeat factors", 10**6, num=1203),
    Case("equal classes", 10**6, num=10**4),
    Case("class batches", 10**6, num=10**4, batch=CLASSES * PER_CLASS),
    Case("mixture", 3 * 10**6, num=3, size=10**7),
    Case("mixture", 3 * 10**7, num=30, size=10**7),
    Case("first exhausted", 3 * 10**6, num=3),
    Case("all exhausted", 3 * 10**6, num=3),
    Case("repeats", 1_281_167, world=8, batch=192),  # ImageNet; 8 * 192 is a multiple of COPIES
)
SHORT = 0.1
"""Seconds below which a read is timed again, at other steps, or a dealer is built again."""
AGAIN = 50
OTHERS, FURTHER = 9, 1000
"""How many dealers are built then, each for so many samples more than the one before."""
TOUCHED = 2**27
"""Numbers that are written, and forgotten, before anything is timed."""
PREFIX = 10**6
"""Reads among which the worst deviation of a mixture is looked for."""
WORLD_SIZES = 2, 4, 5, 8, 10, 16
"""For these numbers of ranks, it is looked how unevenly they get the sources of a mixture."""
LOUD = 6
"""Standard deviations from what is expected that no honest draw is away."""
Record = dict[str, Any]
Data = dict[str, Any]
Array = NDArray[Any]


def small(case: Case) -> Case:
    """Return the same with few samples: for outputs, and to load code before anything is timed."""
    num = min(case.num, 100) if "class" in case.need else case.num
    n = 1001 * num if case.need in MIXTURES else 6000
    return case._replace(n=n, num=num, size=min(case.size, 10**4))


def rows(dealt: Any) -> Array:
    """Return what a dealer dealt, one read a row."""
    return np.stack(dealt, axis=-1) if isinstance(dealt, tuple) else np.asarray(dealt)


def read_seconds(batches: Callable[[int], Iterator[Any]], step: int, most: int) -> float:
    """Return the median of the seconds to the first batch from a step on, and its neighbours.

    Where one takes long, it is timed once.
    """
    times: list[float] = []
    for i in range(AGAIN):
        start = process_time()
        next(batches(min(step + i, most)))
        times.append(process_time() - start)
        if times[0] > SHORT:
            break
    return statistics.median(times)


def answer(name: str, fields: dict[str, Any]) -> Record:
    """Measure one dealer in one case, in a process that ran it on few samples before."""
    entry, case = NAMES[name], Case(**fields)
    deal = entry.load()
    trial(entry, small(case))
    data = given(case)
    # memory that a virtual machine has not touched before would cost more than what is measured
    np.full(min(100 * case.n, max(TOUCHED, 4 * case.n)), 1)

    def start(case: Case, data: Data) -> tuple[Any, float]:
        begin = process_time()
        dealer = deal(case, data)
        next(dealer.batches(0))
        return dealer, process_time() - begin

    try:
        (dealer, cold), first = measured(lambda: start(case, data))
    except RuntimeError as error:  # of torch; ours are ValueErrors
        return {"stop": "error", "raised": str(error).partition("\n")[0]}
    keep(TOUCHED)
    others = [case._replace(n=case.n + FURTHER * i) for i in range(1, OTHERS + 1)]
    warm = [start(other, given(other))[1] for other in others if cold < SHORT]
    begin = process_time()
    dealt = dealer.epoch(entry.limit)
    seconds = process_time() - begin
    num = len(dealt[0] if isinstance(dealt, tuple) else dealt)
    last = num // case.batch - 1
    found: Record = {
        "first_seconds": statistics.median(warm or [cold]),
        "cold_seconds": cold,
        "first_bytes": max(first["peak_bytes"], first["held_bytes"], 0),
        "held_bytes": max(first["held_bytes"], 0),
        "num_indices": num,
        "ns": seconds / num * 1e9,
        "start_seconds": read_seconds(dealer.batches, 0, last),
    }
    if entry.seeks:
        found["middle_seconds"] = read_seconds(dealer.batches, last // 2, last)
    return {**found, **check(entry, case, data, dealer, dealt)}


def trial(entry: Entry, case: Case) -> Record:
    """Run a dealer on few samples, and check what it deals, and that it goes on where it should."""
    data = given(case)
    dealer = entry.load()(case, data)
    first, dealt = next(dealer.batches(0)), dealer.epoch(entry.limit)
    assert 0.8 < len(rows(first)) / case.batch <= 1  # ours spreads a remainder over all
    if entry.seeks:
        batches = [rows(batch) for batch in dealer.batches(0)]
        np.testing.assert_array_equal(rows(dealt), np.concatenate(batches))
        rest = [rows(batch) for batch in dealer.batches(3)]
        np.testing.assert_array_equal(np.concatenate(batches[3:]), np.concatenate(rest))
    return check(entry, case, data, dealer, dealt)


def check(entry: Entry, case: Case, data: Data, dealer: Any, dealt: Any) -> Record:
    """Assert that what was dealt is right; return what is found out of mixtures alone."""
    if case.need not in MIXTURES:
        CHECKS[case.need](np.asarray(dealt), case, data, exact=entry.ours)
        return {}
    sources = np.asarray(dealer.sources(dealt))
    if (dealt := rows(dealt)).ndim == 1:
        check_samples(dealt, sources, case, data)
    else:  # a source, and a number in it
        for i in range(case.num):
            numbers = dealt[sources == i, 1]
            np.testing.assert_array_equal(np.arange(len(numbers)), numbers)
    deviation = worst_deviation(sources[:PREFIX], data["shares"])
    assert deviation < LOUD * max(10, len(sources) ** 0.5)
    return {"deviation": deviation, "rank_bias": rank_bias(sources[:PREFIX], len(data["shares"]))}


def check_weights(indices: Array, case: Case, data: Data, *, exact: bool) -> None:
    """Each sample is drawn as its weight says: in the mean of what was drawn, or exactly."""
    weights, total = data["weights"], data["weights"].sum()
    counts = np.bincount(indices, minlength=case.n)
    assert (len(indices), len(counts), counts[weights == 0].sum()) == (case.n, case.n, 0)
    mean = np.square(weights).sum() / total
    variance = np.power(weights, 3).sum() / total - mean**2
    assert abs(weights[indices].mean() - mean) < LOUD * (variance / case.n) ** 0.5
    assert not exact or np.abs(counts - weights * case.n / total).max() < 1 + 1e-6


def check_repeat_factors(indices: Array, case: Case, data: Data, *, exact: bool) -> None:  # noqa: ARG001
    """Each image is read as often as its factor says, rounded down or up."""
    images, held = np.divmod(np.unique(data["images"] * case.num + data["categories"]), case.num)
    shares = np.bincount(held) / case.n
    factors = np.ones(case.n)
    np.maximum.at(factors, images, np.sqrt(THRESHOLD / shares[held]))
    counts = np.bincount(indices, minlength=case.n)
    assert len(counts) == case.n
    # ours deals a whole number of reads, so its factors are scaled by a little
    assert np.abs(counts - factors).max() < 1 + 1e-3


def check_equal_classes(indices: Array, case: Case, data: Data, *, exact: bool) -> None:
    """Each class is read as often as another."""
    present = np.unique(data["labels"])
    counts = np.bincount(data["labels"][indices], minlength=case.num)[present]
    expected = len(indices) / len(present)
    loudness = np.square(counts - expected).sum() / expected - len(present)
    assert loudness < LOUD * (2 * len(present)) ** 0.5
    assert not exact or counts.max() - counts.min() <= 1


def check_class_batches(indices: Array, case: Case, data: Data, *, exact: bool) -> None:  # noqa: ARG001
    """Each batch has so many samples, all different, of so many classes, all different."""
    batches = indices[: len(indices) // case.batch * case.batch].reshape(-1, CLASSES, PER_CLASS)
    labels = data["labels"][batches]
    assert (labels == labels[..., :1]).all()
    assert (np.diff(np.sort(labels[..., 0])) > 0).all()
    assert (np.diff(np.sort(batches)) > 0).all()


def check_repeats(indices: Array, case: Case, data: Data, *, exact: bool) -> None:  # noqa: ARG001
    """Hold reads against a rank's part of an epoch that reads samples several times."""
    counts = np.bincount(indices, minlength=case.n)
    assert len(counts) == case.n
    assert counts.max() <= COPIES
    assert abs(len(indices) * case.world / case.n - 1) < 0.1


CHECKS: dict[str, Callable[..., None]] = {
    "weights": check_weights,
    "repeat factors": check_repeat_factors,
    "equal classes": check_equal_classes,
    "class batches": check_class_batches,
    "repeats": check_repeats,
}


def check_samples(indices: Array, sources: Array, case: Case, data: Data) -> None:
    """Assert that none is repeated before all samples of its source were read."""
    ends = np.cumsum(data["sizes"])
    np.testing.assert_array_equal(np.searchsorted(ends, indices, side="right"), sources)
    counts = np.split(np.bincount(indices, minlength=ends[-1]), ends[:-1])
    assert all(np.ptp(each) <= 1 for each in counts)
    if case.need == "first exhausted":
        assert max(each.max() for each in counts) == 1
    if case.need == "all exhausted":
        assert min(each.min() for each in counts) == 1


def worst_deviation(sources: Array, shares: Array) -> float:
    """Return by how much a source's count was away from its share, after any of the reads."""
    share = np.arange(1, len(sources) + 1) / shares.sum()
    counts = (np.cumsum(sources == source) for source in range(len(shares)))
    return max(
        float(np.abs(count - each * share).max())
        for count, each in zip(counts, shares, strict=True)
    )


def rank_bias(sources: Array, num: int) -> float:
    """Return how unevenly ranks that read in turn get the sources, in standard deviations.

    Of the chi-square of counts by source and rank (by Wilson and Hilferty, it is nearly normal),
    beyond what it is of independent draws, for the number of ranks for which that is largest.
    """
    worst = 0.0
    for world_size in WORLD_SIZES:
        some = sources[: len(sources) // world_size * world_size]
        cells = some * world_size + np.arange(len(some)) % world_size
        counts = np.bincount(cells, minlength=num * world_size).reshape(num, world_size)
        expected = counts.sum(axis=1, keepdims=True) / world_size
        kept = expected[:, 0] >= 5  # else it is not of chi-square's kind
        freedom = int(kept.sum()) * (world_size - 1)
        chi = float((np.square(counts - expected)[kept] / expected[kept]).sum())
        spread = 2 / (9 * max(1, freedom))
        worst = max(worst, ((chi / max(1, freedom)) ** (1 / 3) - 1 + spread) / spread**0.5)
    return worst


def size_of(case: Case) -> str:
    """Return what the page calls the size of a case."""
    return f"n = {power(case.n)}{f', {case.num} sources' * (case.need in MIXTURES)}"
