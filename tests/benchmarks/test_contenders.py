"""Contenders answer right, each by its own rules, and wrong answers are found; nothing is timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks import test_quality as quality
from benchmarks.contenders import binners, dealers, planners, standing
from benchmarks.contenders.binners import BATCH, BINNERS, Int64
from benchmarks.contenders.dealers import DEALERS, MIXTURES
from benchmarks.contenders.planners import Job, Rival
from benchmarks.measure import bins, orders
from benchmarks.measure.lengths import real
from benchmarks.render.pages import OF_BINNERS, SHOWN

pytestmark = pytest.mark.benchmarks

# Planners.

# Whole global batches, so that nobody drops, pads or spreads: 5 of 4 * 16.
EVEN = Job(5 * 4 * 16 * 12, world=4, rank=1, batch=16, limit=2**62)
PRESENT = {rival.name: rival for rival in planners.present()}


def flat(batches: Any) -> Any:
    """Return batches one after another."""
    return np.concatenate([np.asarray(batch) for batch in batches])


def ready(rival: Rival, job: Job, folder: Path) -> tuple[Any, Job]:
    """Return a rival's functions, with its file there, if it has one."""
    module, job = rival.load(), job._replace(folder=str(folder))
    module.prepare(job)
    return module, job


@pytest.mark.parametrize("name", PRESENT)
def test_a_planner_answers_in_every_index(name: str, tmp_path: Path) -> None:
    """A share holds what its stream does, all shares every index, and a resume what is left."""
    module, job = ready(PRESENT[name], EVEN, tmp_path)
    whole, step = flat(module.stream(job)), job.steps() // 2
    assert whole.tolist() == np.asarray(module.share(job)).tolist()
    rest = module.resume(job, module.saved(job, step))
    assert whole[step * job.batch :].tolist() == flat(rest).tolist()
    shares = [np.asarray(module.share(job._replace(rank=rank))) for rank in range(job.world)]
    assert [job.n // job.world] * job.world == [len(share) for share in shares]
    assert [*range(job.n)] == sorted(flat(shares).tolist())


@pytest.mark.parametrize("n", [100_003, 65_537])
@pytest.mark.parametrize("name", [rival.name for rival in planners.RIVALS if rival.ours])
def test_our_shares_cover_any_dataset(name: str, n: int, tmp_path: Path) -> None:
    """Ours do so at sizes that nothing divides."""
    module, job = ready(PRESENT[name], EVEN._replace(n=n, world=7), tmp_path)
    shares = [module.share(job._replace(rank=rank)) for rank in range(job.world)]
    assert [*range(n)] == sorted(flat(shares).tolist())


@pytest.mark.parametrize(
    "name", [name for name, rival in PRESENT.items() if rival.module == "stateful_sampler"]
)
def test_state_is_the_rivals_own(name: str) -> None:
    """The state that its resume starts from is the one that it saves there."""
    module = PRESENT[name].load()
    sampler = module.sampler(EVEN)
    assert len(list(islice(sampler, 3 * EVEN.batch))) == 3 * EVEN.batch
    assert module.saved(EVEN, 3) == sampler.state_dict()


def test_quality_tells_good_from_bad() -> None:
    """A shuffle is near 1 in both tests; a row of blocks and a reversal are far from it."""
    n = 2**18
    shuffle = np.random.default_rng(3).permutation(n)
    assert 0.8 < quality.variance_ratio(shuffle) < 1.2
    assert quality.variance_ratio(np.arange(n)) > 100
    assert quality.variance_ratio(np.arange(n).reshape(2, -1).T.ravel()) == 0
    assert quality.distinct_xors(np.arange(n)) == 1
    assert quality.is_bijection(shuffle, n)
    assert not quality.is_bijection(np.where(shuffle == 5, 6, shuffle), n)


# Dealers.

CASES = list(dict.fromkeys(map(orders.small, orders.CASES)))
NEEDS = {case.need: case for case in CASES}


@pytest.mark.parametrize(
    ("dealer", "case"),
    [
        pytest.param(dealer, case, id=f"{dealer.name}, {case.need}, {case.num}")
        for dealer in DEALERS
        if not dealer.standing()["missing"]
        for case in CASES
        if case.need in dealer.needs
    ],
)
def test_dealer_deals_what_it_is_asked_for(dealer: dealers.Entry, case: dealers.Case) -> None:
    """Draws are of the right samples, shares are right, and a resume goes on."""
    found = orders.trial(dealer, case)
    assert ({"deviation", "rank_bias"} <= set(found)) == (case.need in MIXTURES)


def at(indices: Any, *places: int) -> Any:
    """Return which of the draws stand at some places."""
    return np.isin(np.arange(len(indices)), places)


SPOILT: dict[str, Callable[[Any, dealers.Case], Any]] = {
    "drawn evenly": lambda indices, case: np.arange(len(indices)) % case.n,
    "twice more": lambda indices, _: np.where(at(indices, 5, 6), indices[4], indices),
    "rolled": lambda indices, _: np.roll(indices, 1),
    "neighbours": lambda indices, case: np.where(at(indices, 7), (indices + 1) % case.n, indices),
    "rare left out": lambda indices, _: np.where(indices == indices.max(), 0, indices),
    "all the same": lambda indices, _: np.full_like(indices, 1),
}


@pytest.mark.parametrize(
    ("need", "how"),
    [
        ("weights", "drawn evenly"),
        ("weights", "rare left out"),
        ("repeat factors", "drawn evenly"),
        ("repeat factors", "all the same"),
        ("equal classes", "drawn evenly"),
        ("class batches", "twice more"),
        ("class batches", "rolled"),
        ("class batches", "neighbours"),
        ("repeats", "all the same"),
        ("mixture", "twice more"),
        ("mixture", "all the same"),
        ("first exhausted", "twice more"),
        ("all exhausted", "rare left out"),
    ],
)
def test_wrong_draws_are_found(need: str, how: str) -> None:
    """A check fails for draws that are even, repeated, shifted or left out."""
    case = NEEDS[need]
    data = dealers.given(case)
    dealer = dealers.ours()(case, data)
    indices = dealer.epoch(2**62)
    orders.check(DEALERS[0], case, data, dealer, indices)
    with pytest.raises(AssertionError):
        orders.check(DEALERS[0], case, data, dealer, SPOILT[how](indices, case))


def test_wrong_resume_is_found() -> None:
    """A dealer that goes on one step late fails its trial."""

    class Late(dealers.ours()):  # type: ignore[misc]
        def batches(self, step: int) -> Iterator[Any]:
            return super().batches(step + (step > 0))

    late: Any = SimpleNamespace(load=lambda: Late, seeks=True, ours=True, limit=2**62)
    with pytest.raises(AssertionError):
        orders.trial(late, NEEDS["weights"])
    late.load = dealers.ours
    orders.trial(late, NEEDS["weights"])


def test_shares_are_exact_for_all() -> None:
    """No dealer rounds them, and a warm-up has others."""
    for case in orders.CASES:
        if case.need in MIXTURES:
            shares, few = dealers.shares_of(case), dealers.shares_of(orders.small(case))
            assert shares.tolist() != few.tolist()
            assert (shares.sum(), shares.min()) == ((10, 1) if case.num == 3 else (2**16, 100))


def test_numbers_of_mixtures() -> None:
    """Two reads of one source are off by 1, reads in turn by 1/2; and each rank reads one."""
    assert orders.worst_deviation(np.array([0, 0, 1, 1]), np.array([1, 1])) == 1
    assert orders.worst_deviation(np.array([0, 1, 0, 1]), np.array([3, 3])) == 0.5
    assert orders.rank_bias(np.arange(10_000) % 2, 2) > 20
    assert orders.rank_bias(np.random.default_rng(0).integers(3, size=10_000), 3) < 4


# Binners.

OF_BINS = {case.need: case for case in bins.CASES}


def test_binners_are_there() -> None:
    """Every rival is installed, and every need has a case, one of ours, and words."""
    assert [row["missing"] for row in standing(BINNERS)] == [""] * len(BINNERS)
    ours = {need for binner in BINNERS if binner.ours for need in binner.needs}
    assert set(OF_BINS) == set(binners.NEEDS) == set(SHOWN) == ours
    assert {column for shown in SHOWN.values() for column in shown} == set(OF_BINNERS)


@pytest.mark.parametrize(
    ("name", "need"), [(binner.name, need) for binner in BINNERS for need in binner.needs]
)
def test_binner_makes_what_it_is_asked_for(name: str, need: str) -> None:
    """Every sample is in one bin, bounds are kept, and all that the page shows is measured."""
    assert bins.answer(name, OF_BINS[need]._asdict(), 2000).keys() >= set(SHOWN[need])


def test_lengths() -> None:
    """As many as are asked for, within the limit, in no order."""
    for case in bins.CASES:
        lengths = binners.given(case, 3000)
        left = 3000 % (case.ranks * case.per_rank or 1)
        assert len(lengths) == min(case.n or len(real(case.kind)), 3000) - left
        assert lengths.min() > 0
        assert (np.diff(lengths) < 0).any()
        assert case.need != "packing" or lengths.max() <= case.limit
    assert {case.kind for case in bins.CASES} > set(binners.DRAWN)


UNBINNED: dict[str, Callable[[Int64, Int64], tuple[Int64, Int64]]] = {
    "once more": lambda samples, offsets: (np.where(at(samples, 5), samples[4], samples), offsets),
    "left out": lambda samples, offsets: (samples[: offsets[-2]], offsets[:-1]),
    "empty": lambda samples, offsets: (samples, np.insert(offsets, 3, offsets[3])),
}


@pytest.mark.parametrize("how", UNBINNED)
def test_wrong_bins_are_found(how: str) -> None:
    """A sample that comes twice or not at all, or a bin without any, fails."""
    case = OF_BINS["batches"]
    dealt = binners.ours()(case, binners.given(case, 2000)).epoch(0)
    bins.bins_of(dealt)
    with pytest.raises(AssertionError):
        bins.bins_of(UNBINNED[how](*dealt))


@pytest.mark.parametrize("need", ["packing", "batches", "budget"])
def test_bins_above_their_bound_are_found(need: str) -> None:
    """Two bins in one are too much."""
    case = OF_BINS[need]
    size = BATCH if need == "batches" else case.limit // 256
    lengths = 256 - np.random.default_rng(0).integers(100, size=size * 4)
    samples, offsets = np.arange(size * 4), np.arange(0, size * 4 + 1, size)
    bins.quality(case, lengths, (samples, offsets), exact=True)
    with pytest.raises(AssertionError):
        bins.quality(case, lengths, (samples, np.delete(offsets, 1)), exact=True)


def test_uneven_ranks_are_found() -> None:
    """Ranks of a step get as many units, each unit once; the dearest is held against the mean."""
    case = OF_BINS["balance"]._replace(ranks=16, per_rank=4)
    costs = np.ones(128, np.int64)
    shares = 64 + np.arange(64).reshape(16, 4)
    assert bins.unevenness(case, costs, shares) == 1
    costs[67] = 65
    assert bins.unevenness(case, costs, shares) == 68 / 8
    for wrong in (np.minimum(shares, 126), shares.reshape(8, 8), shares * 2 - 128):
        with pytest.raises(AssertionError):
            bins.unevenness(case, costs, wrong)


def test_numbers_of_bins() -> None:
    """Fill, padding and neighbours by hand; random batches have the variance of random samples."""
    one, other = np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 1])
    assert bins.again(one, one) == 1
    # of 3 in a bin and 2 in another, one moved: 2 of 3 pairs are left, seen by each sample
    assert bins.again(one, other) == pytest.approx((0.5 + 0.5 + 0 + 1 + 1) / 5)
    case = binners.Case("packing", "chats", limit=10)
    dealt = binners.joined([[0, 1], [2], [3, 4, 5]])
    lengths = np.array([4, 2, 9, 1, 1, 2])
    found = bins.quality(case, lengths, dealt, exact=True)
    assert found["fill"] == pytest.approx(19 / 30)
    padded = bins.quality(case._replace(need="budget", limit=20), lengths, dealt, exact=True)
    assert padded["padding"] == pytest.approx(1 - 19 / (8 + 9 + 6))
    assert padded["fullest"] == 9 / 20
    lengths = np.random.default_rng(0).integers(1, 100, 32 * 2000)
    cut, case = np.arange(0, len(lengths) + 1, 32), OF_BINS["batches"]
    random = bins.quality(case, lengths, (np.arange(len(lengths)), cut), exact=True)
    assert random["variance"] == pytest.approx(1, abs=0.1)
    alike = bins.quality(case, lengths, (np.argsort(lengths), cut), exact=True)
    assert (alike["variance"], alike["lag"]) == pytest.approx((32, 1), abs=0.1)
