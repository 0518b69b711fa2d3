"""Steps that are dealt several times in a row, in runs that stop inside such a turn."""

from __future__ import annotations

import pickle
from fractions import Fraction
from itertools import islice
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import indexplan as ip
from indexplan_torch import PlanLoader
from tests.adapters.small import loaders_of
from tests.support.examples import examples
from tests.support.planned import planned

PLAN = ip.Plan(ip.Repeat(ip.Shuffle(20, seed=3), copies=2), global_batch_size=8)  # 5 steps
Step = tuple[int, ...]  # what all ranks read together


def read(ranks: list[PlanLoader], num_steps: int | None = None) -> list[Step]:
    """Train on steps, on all ranks."""
    steps = zip(*ranks, strict=True)
    return [tuple(unit for part in step for unit in part) for step in islice(steps, num_steps)]


def steps_of(plan: ip.Plan, epoch: int) -> list[Step]:
    """Return what all ranks read together in each step of an epoch."""
    one = plan.replace(world_size=1)
    parts = [one.batches(epoch, sub_epoch, rank=0) for sub_epoch in range(plan.sub_epochs)]
    return [tuple(batch.tolist()) for part in parts for batch in part]


plans = st.builds(
    planned,
    st.builds(
        lambda n, seed, copies: ip.Repeat(ip.Shuffle(n, seed=seed), copies=copies),
        st.integers(8, 20),
        st.integers(0, 3),
        st.integers(1, 3),
    ),
    global_batch_size=st.sampled_from([6, 12]),
    sub_epochs=st.integers(1, 2),
    remainder=st.sampled_from(["spread", "drop", "pad", "carry"]),
)
legs = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from([1, 2, 3, 4, 6]), st.integers(1, 9)),
    min_size=1,
    max_size=5,
)


@given(plan=plans, legs=legs)
@settings(examples(80), derandomize=True, database=None)
def test_every_step_is_trained_once_in_shares(plan: ip.Plan, legs: list[Any]) -> None:
    """Whatever the ranks and `again` of each leg, the shares of each step add up to 1, in turn."""
    wanted = [step for epoch in range(50) for step in steps_of(plan, epoch)]
    trained: list[tuple[Step, Fraction]] = []
    state = None
    for world_size, again, num_steps in legs:
        accounts = [
            plan.replace(world_size=world_size).account(0, each) for each in range(plan.sub_epochs)
        ]
        assume(all(account.min_batch_size or not account.num_steps for account in accounts))
        ranks = loaders_of(plan, world_size, again=again)
        if state is not None:
            try:
                for rank in ranks:
                    rank.load_state_dict(pickle.loads(pickle.dumps(state)))  # noqa: S301
            except ip.IndexPlanError as refused:
                assert str(refused).startswith("again must be a multiple of ")  # noqa: PT017
                continue
        left = num_steps
        for _ in range(30):  # passes
            found = read(ranks, left)
            trained += [(step, Fraction(1, again)) for step in found]
            left -= len(found)
            if not left:
                break
        states = [rank.state_dict() for rank in ranks]
        assert states[1:] == states[:-1]
        state = states[0]
    done = Fraction(0)
    for step, share in trained:
        assert wanted[int(done)] == step
        assert int(done) == int(done + share) or (done + share).denominator == 1
        done += share


def test_views_deal_again() -> None:
    """`loader.sampler`, index by index, after a resume in the first turn."""
    (loader,) = loaders_of(PLAN, 1, again=4)
    read([loader], 3)
    (resumed,) = loaders_of(PLAN, 1, again=4)
    resumed.load_state_dict(loader.state_dict())
    assert 4 * 40 - 3 * 8 == len(resumed.sampler) == len(list(resumed.sampler))
    assert list(steps_of(PLAN, 0)[0]) == list(resumed.sampler)[:8]


def test_another_global_batch_waits_for_the_end_of_the_turn() -> None:
    """Inside a turn it is refused, with the loader as it was; between turns it is taken."""
    (loader,) = loaders_of(PLAN, 1, again=4)
    read([loader], 6)
    larger = PLAN.replace(global_batch_size=16)
    (then,) = loaders_of(larger, 1, again=4)
    with pytest.raises(ip.IndexPlanError) as refused:
        then.load_state_dict(loader.state_dict())
    assert str(refused.value).startswith("the global batch must be 8 units, as before, to resume a")
    assert steps_of(larger, 0)[0] == read([then], 1)[0]
    (loader,) = loaders_of(PLAN, 1, again=4)
    read([loader], 8)
    (then,) = loaders_of(larger, 1, again=5)
    then.load_state_dict(loader.state_dict())
    rest = [unit for step in steps_of(PLAN, 0)[2:] for unit in step]
    assert rest == [unit for step in read([then])[::5] for unit in step]
