"""Whatever is killed, joined or split, each step of a live run is read as lists say, once."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from random import Random

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given, settings

import indexplan as ip
from indexplan_torch import PlanLoader
from tests.live.__main__ import A_RUN, drawn
from tests.live.quorums import MOST_GROUPS, Quorums
from tests.live.steps import steps
from tests.support.bins import Shrinking


@st.composite
def plans(draw: st.DrawFn, inner: int) -> ip.Plan:
    """Draw a plan of which every step has a unit for each rank."""
    size = draw(st.integers(2 * MOST_GROUPS * inner, 40))
    num_samples = draw(st.integers(size, 150))
    order = draw(st.sampled_from([ip.Shuffle(num_samples, seed=3), ip.Sequential(num_samples)]))
    remainder = draw(st.sampled_from(["spread", "drop", "pad", "carry"]))
    return ip.Plan(order, global_batch_size=size, remainder=remainder)


@given(st.data(), st.integers(0, 2**32), st.sampled_from([1, 2, 3]), st.booleans(), st.booleans())
def test_quorums_read_what_lists_say(
    data: st.DataObject, seed: int, inner: int, sync: bool, spares: bool
) -> None:
    """L1 to L5, each step of a drawn run."""
    plan = data.draw(plans(inner))
    Quorums(plan, Random(seed), inner, sync, spares).run(60)  # noqa: S311


def test_a_simulation_has_all_that_happens() -> None:
    """Kills, joins, heals, swaps, void commits and failed steps are there to be survived."""
    plan = ip.Plan(ip.Shuffle(97, seed=5), global_batch_size=10)
    quorums = Quorums(plan, Random(1))  # noqa: S311
    quorums.run(2000)
    seen = "kills,joins,swaps,heals,restarts,void,commits,failed,drawn again,as a loader,epochs"
    assert set() == set(seen.split(",")) - {name for name, count in quorums.counts.items() if count}


def test_what_ci_simulates() -> None:
    """Its 5,000 steps are of 25 plans, of each remainder, with at least three steps an epoch."""
    assert 25 == 5000 // A_RUN
    runs = [drawn(seed, Counter()) for seed in range(25)]
    assert all(len(each.plan.replace(world_size=1).steps(0)) > 2 for each in runs)
    assert 4 == len({each.plan.remainder for each in runs})
    assert 9 == len({(each.inner, each.sync, each.spares) for each in runs})


def test_lists_read_each_sample_once() -> None:
    """The oracle itself: whole epochs hold each sample once, unless the remainder says more."""
    for remainder, times in [("spread", {1}), ("carry", {1}), ("pad", {1, 2}), ("drop", {1})]:
        plan = ip.Plan(ip.Shuffle(23), global_batch_size=5, remainder=remainder)  # type: ignore[arg-type]
        read = Counter(each for step in islice(steps(plan), 40) for each in step)
        whole = {epoch: Counter({s: read[e, s] for e, s in read if e == epoch}) for epoch in (0, 1)}
        assert [times, times] == [set(each.values()) for each in whole.values()]
        assert [20 if remainder == "drop" else 23] * 2 == [len(each) for each in whole.values()]


BALANCED = ip.Balance(np.arange(100) % 17 + 1)
WHOLE = ip.Plan(ip.Shuffle(100), global_batch_size=12)
SINCE = WHOLE.cursor(1, step=7)
LENGTHS = [3, 5, 2, 8] * 25
SOURCES = {"a": ip.Shuffle(60), "b": ip.Shuffle(40)}
MANY = [
    WHOLE.replace(balance=BALANCED),
    WHOLE.replace(sub_epochs=7),
    WHOLE.replace(sub_epochs=7, remainder="drop"),
    WHOLE.replace(global_batch_size=[ip.Phase(0, 12), ip.Phase(130, 9)]),
    WHOLE.replace(global_batch_size=[ip.Phase(0, 12), ip.Phase((1, 0), 9)]),
    WHOLE.replace(global_batch_size=(2, 6), remainder="carry", sub_epochs=3),
    WHOLE.replace(order=ip.Without(WHOLE.order, [3, 4, 5], since=SINCE)),
    WHOLE.replace(order=ip.LengthGrouped(LENGTHS, batch_size=2, num_buckets=4)),
    WHOLE.replace(order=ip.Mixture(SOURCES, weights={"a": 1, "b": 2})),
]


@pytest.mark.parametrize("plan", MANY, ids=lambda plan: type(plan.order).__name__)
@settings(max_examples=20)  # each of some 30 steps under as many worlds
@given(seed=st.integers(0, 2**32))
def test_a_step_is_one_set_for_any_world(plan: ip.Plan, seed: int) -> None:
    """L2 and L5, for schedules, sub-epochs, balance and bins: as the plan for one rank reads it.

    The state is given on from one process to another in between, and a run resumed from a cursor.
    """
    random = Random(seed)  # noqa: S311 (which is repeatable)
    standing, cursor = ip.live.Standing(plan), plan.start
    for epoch in range(2):
        for sub_epoch in range(plan.sub_epochs):
            alone = plan.replace(world_size=1)
            for step in alone.steps(epoch, sub_epoch):
                world = random.randint(1, standing.max_world)
                ranks = range(world)
                got = [standing.deal(world, rank, units=True) for rank in ranks]
                parts = [batch.bins if plan.order.deals_bins else batch.samples for batch in got]
                read = sorted(tuple(np.ravel(each)) for part in parts for each in part)
                want = alone.units(epoch, sub_epoch, step=step, rank=0)
                expected = want.bins if plan.order.deals_bins else want.samples
                assert read == sorted(tuple(np.ravel(each)) for each in expected)
                fixed = plan.replace(world_size=world)
                for rank, batch in zip(ranks, got, strict=True):  # to the bit, and in order
                    same = fixed.batch(epoch, sub_epoch, step=step, rank=rank)
                    assert same.tolist() == batch.samples.tolist()
                assert all(len(batch) for batch in got)
                standing.commit()
                cursor = alone.cursor(epoch, sub_epoch, step=step + 1)
                if random.random() < 0.2:
                    other = ip.live.Standing(plan)
                    other.load_json(standing.to_json())
                    standing = other
                elif random.random() < 0.2:
                    standing = ip.live.Standing(plan, standing.cursor)
    assert standing.cursor.epoch >= cursor.epoch


@given(st.integers(1, 5), st.integers(0, 30))
@example(3, 7)
def test_a_constant_world_reads_as_a_loader_does(world: int, first: int) -> None:
    """L5: to the bit what PlanLoader reads, from any cursor."""
    plan = ip.Plan(ip.Shuffle(97, seed=2), global_batch_size=11)
    cursor = plan.cursor(first // 9, step=first % 9)
    standings = [ip.live.Standing(plan, cursor) for _ in range(world)]
    loaders = [PlanLoader(range(97), plan.resume(cursor), rank=r, world_size=world, as_array=True)
               for r in range(world)]  # fmt: skip
    for _ in range(2):
        for batches in zip(*loaders, strict=True):
            for rank, (standing, batch) in enumerate(zip(standings, batches, strict=True)):
                assert batch.tolist() == standing.deal(world, rank).tolist()
                standing.commit()
    assert 1 == len({standing.to_json() for standing in standings})


def test_a_step_that_does_not_count_leaves_no_trace() -> None:
    """L4: only commit moves, however often and to whomever a step was dealt."""
    standing = ip.live.Standing(ip.Plan(ip.Shuffle(50), global_batch_size=8))
    before = standing.to_json()
    for world in (3, 1, 7):
        for rank in range(world):
            standing.deal(world, rank)
    assert before == standing.to_json()


@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize("remainder", ["spread", "drop", "pad", "carry"])
def test_weighted_gradients_are_equal_for_any_world(world: int, remainder: str) -> None:
    """The mean over ranks of sums times `world_size / step_size`, whatever their shares."""
    plan = ip.Plan(ip.Shuffle(23, seed=4), global_batch_size=5, remainder=remainder)  # type: ignore[arg-type]
    column, standing = np.random.default_rng(0).normal(size=23), ip.live.Standing(plan)
    unequal = 0
    for number, reads in enumerate(islice(steps(plan), 14)):
        size = standing.step_size
        alone = plan.replace(world_size=1).units(standing.epoch, step=standing.cursor.step, rank=0)
        assert size == alone.num_valid
        assert size == len(reads) - 2 * (remainder == "pad" and number % 5 == 4)
        shares = []
        for rank in range(world):
            batch = standing.deal(world, rank, units=True)
            valid = standing.num_valid(world, rank)
            assert valid == batch.num_valid
            shares.append(column[batch.samples[:valid]].sum() * world / size)
            unequal += valid * world != size
        expected = np.mean([column[sample] for _, sample in reads[:size]])
        assert np.mean(shares) == pytest.approx(expected)
        standing.commit()
    assert bool(unequal) == (world > 1)


def test_the_end_of_the_last_epoch() -> None:
    """There is no step, so there is no size of one."""
    plan = ip.Plan(ip.Shuffle(4), global_batch_size=4)
    standing = ip.live.Standing(plan, plan.cursor(2**32 - 1, step=0))
    standing.deal(1, 0)
    standing.commit()
    for ask in (lambda: standing.step_size, lambda: standing.num_valid(1, 0)):
        with pytest.raises(ip.IndexPlanError, match="epoch must be"):
            ask()


def test_the_largest_world_is_that_of_the_smallest_step() -> None:
    """Ever, where the order says when epochs change; the last phase is looked at too."""
    whole = ip.Plan(ip.Shuffle(100), global_batch_size=30)  # 25, 25, 25, 25
    assert 25 == ip.live.Standing(whole).max_world
    assert 30 == ip.live.Standing(whole.replace(remainder="drop")).max_world
    later = [ip.Phase(0, 30), ip.Phase((50, 0), 7)]  # 15 steps of 7 or 6
    assert 6 == ip.live.Standing(whole.replace(global_batch_size=later)).max_world
    place = [ip.Phase(0, 30), ip.Phase(5025, 12)]  # 30, and then 70 in six steps
    assert 11 == ip.live.Standing(whole.replace(global_batch_size=place)).max_world
    since = ip.Plan(ip.Shuffle(100), global_batch_size=30).cursor(9, step=0)
    fewer = ip.Without(ip.Shuffle(100), range(55, 100), since=since)  # 55: 28, 27
    assert 25 == ip.live.Standing(whole.replace(order=fewer)).max_world
    fewest = ip.Without(ip.Shuffle(100), range(9, 100), since=since)
    assert 9 == ip.live.Standing(whole.replace(order=fewest)).max_world
    assert 4 == ip.live.Standing(whole, max_world=4).max_world
    rest = whole.cursor(0, step=1)  # 75 are left, in steps of 30: three of 25
    assert 25 == ip.live.Standing(whole, rest).max_world


def test_a_small_step_of_a_later_epoch_is_refused_when_it_comes() -> None:
    """Where an order does not say when its epochs change, nobody is dealt an empty batch."""
    standing = ip.live.Standing(ip.Plan(Shrinking(20), global_batch_size=100))
    assert 8 == standing.max_world  # as in the least of four epochs
    for epoch, units in enumerate([10, 10, 9, 8, 7, 6]):
        assert (epoch, units) == (standing.epoch, len(standing.deal(1, 0, units=True).bins))
        if units < 8:
            with pytest.raises(ip.IndexPlanError, match="each step must hold a unit for every"):
                standing.deal(8, 0)
        standing.commit()
