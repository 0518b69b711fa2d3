"""Whatever is killed, joined or split, each step of a live run is read as lists say, once."""

from __future__ import annotations

from random import Random
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import indexplan as ip
from indexplan.plan.plan import smallest_step
from indexplan_torch.live import LiveLoader
from tests.histories.quorums import MOST_GROUPS, Manager, Quorums, Rank, Told, steps
from tests.support.bins import Shrinking
from tests.support.examples import examples


@st.composite
def plans(draw: st.DrawFn, inner: int) -> ip.Plan:
    """Draw a plan of which every step has a unit for each rank."""
    size = draw(st.integers(2 * MOST_GROUPS * inner, 40))
    num_samples = draw(st.integers(size, 150))
    order = draw(st.sampled_from([ip.Shuffle(num_samples, seed=3), ip.Sequential(num_samples)]))
    remainder = draw(st.sampled_from(["spread", "drop", "pad", "carry"]))
    return ip.Plan(order, global_batch_size=size, remainder=remainder)


@pytest.mark.slow
@examples(30)  # each of 60 steps of up to 12 loaders
@given(st.data(), st.integers(0, 2**32), st.sampled_from([1, 2, 3]), st.booleans(), st.booleans())
def test_quorums_read_what_lists_say(
    data: st.DataObject, seed: int, inner: int, sync: bool, spares: bool
) -> None:
    """L1 to L4, L6 and L7, each step of a drawn run."""
    plan = data.draw(plans(inner))
    Quorums(plan, Random(seed), inner, sync, spares).run(60)  # noqa: S311


@pytest.mark.slow
def test_a_simulation_has_all_that_happens() -> None:
    """Kills, joins, heals, swaps, void commits and failed steps are there to be survived."""
    plan = ip.Plan(ip.Shuffle(97, seed=5), global_batch_size=10)
    quorums = Quorums(plan, Random(1))  # noqa: S311
    quorums.run(1000)
    seen = "kills,joins,swaps,heals,restarts,void,commits,failed,failed for some,epochs"
    assert set() == set(seen.split(",")) - {name for name, count in quorums.counts.items() if count}


WHOLE = ip.Plan(ip.Shuffle(100), global_batch_size=12)


@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize("remainder", ["spread", "drop", "pad", "carry"])
def test_weighted_gradients_are_equal_for_any_world(world: int, remainder: str) -> None:
    """The mean over ranks of sums times `world_size / step_size`, whatever their shares."""
    plan = ip.Plan(ip.Shuffle(23, seed=4), global_batch_size=5, remainder=remainder)  # type: ignore[arg-type]
    column, unequal = np.random.default_rng(0).normal(size=23), 0
    ranks = [Rank(plan, 0, inner_rank=rank, inner_size=world) for rank in range(world)]
    for number, reads in enumerate(steps(plan, 4)[:14]):
        shares, valid = [], len(reads) - 2 * (remainder == "pad" and number % 5 == 4)
        for rank in ranks:
            batch, loader = rank.read(Told(1, 0, sync=True), again=False), rank.loader
            assert (world, valid) == (loader.world_size, loader.step_size)
            losses = column[batch[: loader.num_valid]]
            shares.append(losses.sum() * loader.world_size / loader.step_size)
            unequal += loader.num_valid * world != valid
            rank.decide(counts=True)
        assert np.mean(shares) == pytest.approx(np.mean(column[reads[:valid]]))
    assert bool(unequal) == (world > 1)


def test_the_smallest_step_decides_how_many_ranks_there_may_be() -> None:
    """Ever, where the order says when epochs change; the last phase is looked at too."""
    whole = ip.Plan(ip.Shuffle(100), global_batch_size=30)  # 25, 25, 25, 25
    assert 25 == smallest_step(whole)
    assert 30 == smallest_step(whole.replace(remainder="drop"))
    later = [ip.Phase(0, 30), ip.Phase((50, 0), 7)]  # 15 steps of 7 or 6
    assert 6 == smallest_step(whole.replace(global_batch_size=later))
    place = [ip.Phase(0, 30), ip.Phase(5025, 12)]  # 30, and then 70 in six steps
    assert 11 == smallest_step(whole.replace(global_batch_size=place))
    since = ip.Plan(ip.Shuffle(100), global_batch_size=30).cursor(9, step=0)
    fewer = ip.Without(ip.Shuffle(100), range(55, 100), since=since)  # 55: 28, 27
    assert 25 == smallest_step(whole.replace(order=fewer))
    fewest = ip.Without(ip.Shuffle(100), range(9, 100), since=since)
    assert 9 == smallest_step(whole.replace(order=fewest))
    rest = whole.resume(whole.cursor(0, step=1))  # 75 are left, in steps of 30: three of 25
    assert 25 == smallest_step(rest)


def test_more_ranks_than_a_step_has_units_are_refused_when_they_come() -> None:
    """At the quorum, and the step is read once there are fewer."""
    rank = Rank(ip.Plan(ip.Shuffle(100), global_batch_size=30), 0)  # in steps of 25
    with pytest.raises(ip.IndexPlanError, match=r"^world_size must be a number .* got 26; "):
        rank.read(Told(26, 0, sync=True), again=False)
    assert 1 == len(rank.read(Told(25, 0, sync=True), again=True))
    rank = Rank(ip.Plan(Shrinking(20), global_batch_size=100), 0, keep_bins=False)
    for _ in range(4):  # of 10, 10, 9 and 8 bins
        assert rank.read(Told(8, 7, sync=True), again=False)
        rank.decide(counts=True)
    with pytest.raises(ip.IndexPlanError, match="each step must hold a unit for every"):
        rank.read(Told(8, 7, sync=True), again=False)
    assert rank.read(Told(7, 6, sync=True), again=True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"inner_size": 0}, "inner_size must be an integer from 1"),
        ({"inner_rank": 1}, "inner_rank must be the integer 0"),
        ({"num_epochs": 0}, "num_epochs must be an integer from 1"),
        ({"dataset": range(9)}, "dataset must hold 101"),
        *(
            ({name: True}, f"{name} must be left out of a LiveLoader")
            for name in ("shuffle", "again", "rank", "world_size", "mesh", "partial", "compare")
        ),
        ({"batch_sampler": None}, "batch_sampler must be left out of a LiveLoader"),
        ({"batch_size": 3}, "batch_size must be left out of a LiveLoader"),
    ],
)
def test_what_would_go_wrong_is_refused(options: dict[str, Any], said: str) -> None:
    """What cannot be right at the start, and what the manager and the plan decide."""
    plan = ip.Plan(ip.Shuffle(101, seed=3), global_batch_size=12)
    with pytest.raises(ip.IndexPlanError, match=said):
        LiveLoader(**{"dataset": range(101), "plan": plan, "manager": Manager(0), **options})


@pytest.mark.parametrize(
    ("changed", "other_plan", "said"),
    [
        ({"more": 1}, False, "a live run's state must be a dict with a cursor"),
        ({"step": "5"}, False, "a live run's step must be an integer"),
        ({}, "no", "other_plan must be True or False"),
    ],
)
def test_a_state_is_what_a_loader_returned(
    changed: dict[str, Any], other_plan: Any, said: str
) -> None:
    """A field more, a step that is text or a flag that is none is not passed over in silence."""
    loader = Rank(WHOLE, 0).loader
    with pytest.raises(ip.IndexPlanError, match=f"^{said}"):
        loader.load_state_dict({**loader.state_dict(), **changed}, other_plan=other_plan)


@pytest.mark.parametrize("remainder", ["spread", "pad", "drop"])
def test_sub_epochs_without_a_step_are_passed_over(remainder: str) -> None:
    """However many end an epoch, none is looked at by itself, and no epoch too many is read."""
    plan = ip.Plan(ip.Shuffle(10), global_batch_size=1, sub_epochs=2**40, remainder=remainder)  # type: ignore[arg-type]
    rank, read = Rank(plan, 0, num_epochs=2), []
    for _ in range(20):
        read += rank.read(Told(1, 0, sync=True), again=True)
        rank.decide(counts=True)
    assert [*plan.order.take(0, 0, 10), *plan.order.take(1, 0, 10)] == read
    assert [] == [*rank.loader]
