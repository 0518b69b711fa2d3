"""Contenders answer right, each by its own rules; nothing is timed."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import test_quality as quality
from benchmarks.contenders import binners, dealers, planners, standing
from benchmarks.contenders.binners import BINNERS
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
