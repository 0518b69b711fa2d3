"""Streams: whatever a loop draws, gives back, counts and resumes, each unit is settled once."""

from __future__ import annotations

import copy
import json
import pickle
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from tests.support.in_a_fork import refused_in_a_fork
from tests.support.pulls import Run, check, runs
from tests.support.strategies import cursors, fresh_plans

PLAN = ip.Plan(ip.Sequential(10), world_size=2, batch_size=2)


@given(runs)
def test_each_unit_is_settled_once_in_any_history(run: Run) -> None:
    """Draws, returns, counts, stops and crashes on changing ranks read the list of all units.

    What was given back, or was in hand at a resume, is drawn again, and nothing else is.
    """
    check(run, ip.stream)


@given(fresh_plans(remainder="carry"), st.data())
def test_draws_of_a_global_batch_are_the_steps_of_the_plan(
    plan: ip.Plan, data: st.DataObject
) -> None:
    """A loop that gives nothing back reads what the plan's own steps read, rank by rank."""
    plan = plan.replace(batch_size=data.draw(st.integers(1, 9), label="size"))
    cursor = data.draw(cursors(plan), label="start")
    size = plan.batch_size * plan.world_size
    rest = plan.resume(cursor)
    rank = data.draw(st.integers(0, plan.world_size - 1), label="rank")
    stream = ip.stream(plan, cursor, rank=rank)
    for sub_epoch in range(cursor.sub_epoch, plan.sub_epochs):
        for batch in rest.batches(cursor.epoch, sub_epoch, rank=rank):
            assert batch.tolist() == stream.draw(size).tolist()


def test_a_resumed_plan_starts_its_stream_there() -> None:
    """Without a cursor, a stream starts where the plan does."""
    plan = ip.Plan(ip.Sequential(10), world_size=1, batch_size=2)
    stream = ip.stream(plan.resume(plan.cursor(0, step=3)), rank=0)
    assert [6, 7, 8, 9, 0] == stream.draw(5).tolist()
    assert (1, 9) == (stream.epoch, stream.num_left)
    assert plan.cursor(0, step=3) == stream.cursor


def test_the_end_of_an_epoch_is_the_start_of_the_next() -> None:
    """An empty sub-epoch at the end leaves nothing to draw, so a loop up to the end would hang."""
    plan = ip.Plan(ip.Sequential(3), world_size=1, batch_size=2, sub_epochs=5)
    stream = ip.stream(plan, plan.cursor(0, 4, step=0), rank=0)
    assert (1, 3) == (stream.epoch, stream.num_left)
    assert plan.cursor(1, 0, step=0) == stream.cursor


def test_a_plan_continues_a_stream() -> None:
    """A stream's cursor is a plan's: steps of a fixed size may follow, and the other way round."""
    plan = ip.Plan(ip.Shuffle(100), world_size=4, batch_size=5, remainder="carry")
    stream = ip.stream(plan, rank=0)
    stream.draw(50)
    stream.trained(33)
    rest = plan.resume(stream.cursor)
    first = [x for rank in range(4) for x in rest.batch(0, step=2, rank=rank).tolist()]
    assert plan.order.take(0, 33, 53).tolist() == first


def test_the_state_has_one_size_and_costs_nothing_to_load() -> None:
    """After 1e4 draws, and 1e15 units into a run, it has a few digits more than at its start."""
    plan = ip.Plan(ip.Sequential(100), world_size=1, batch_size=2, remainder="carry")
    stream = ip.stream(plan, rank=0)
    size = len(json.dumps(stream.state_dict()))
    for number in range(10_000):
        stream.draw(1 + number % 2)
        if number % 10 == 9:
            stream.give_back(5)
            stream.trained(7)
            stream.discarded(3)
    counts = stream.num_drawn, stream.num_trained, stream.num_discarded, stream.num_given_back
    assert (15_000, 7_000, 3_000, 5_000) == counts
    assert len(json.dumps(stream.state_dict())) < size + 30
    far = ip.stream(plan, plan.cursor_at(10**10), rank=0)
    assert len(json.dumps(far.state_dict())) < size + 30


def test_another_order_is_refused_and_a_mixture_may_change() -> None:
    """A state belongs to its order, or to one that continues it; a refused one changes nothing."""
    sources = {"a": ip.Sequential(10), "b": ip.Shuffle(30)}
    mixture = ip.Mixture(sources, {"a": 1, "b": 1})
    stream = ip.stream(ip.Plan(mixture, world_size=1, batch_size=4), rank=0)
    stream.draw(12)
    stream.trained(10)
    state = stream.state_dict()
    changed = mixture.with_phase(10, {"a": 3, "b": 1})
    other = ip.stream(ip.Plan(changed, world_size=1, batch_size=4), rank=0)
    other.load_state_dict(state)
    assert changed.take(0, 10, 14).tolist() == other.draw(4).tolist()
    before = other.state_dict()
    with pytest.raises(ip.IndexPlanError, match="a cursor must belong to the plan's order; got"):
        other.load_state_dict({**state, "cursor": PLAN.start.to_dict()})
    assert before == other.state_dict()
    assert 4 == other.num_in_hand


def test_a_draw_that_fails_draws_nothing() -> None:
    """At the end of the run, and where an order fails, a stream is as before."""
    plan = ip.Plan(ip.Sequential(10), world_size=1, batch_size=2)
    cursor = plan.cursor(2**32 - 1, step=4)
    stream = ip.stream(plan, cursor, rank=0)
    message = (
        "a draw must be inside the run, which ends with epoch 2**32 - 1; got one that reads on "
        "into the next; draw stream.num_left units at most"
    )
    with pytest.raises(ip.IndexPlanError) as raised:
        stream.draw(3)
    assert message == str(raised.value)
    assert (0, 2, cursor) == (stream.num_drawn, stream.num_left, stream.cursor)
    assert [8, 9] == stream.draw(2).tolist()


def test_one_thread_draws_while_another_counts() -> None:
    """Of threads that draw, count and save at once, each unit is drawn and counted once."""
    stream = ip.stream(ip.Plan(ip.Sequential(10**6), world_size=1, batch_size=2), rank=0)
    rows: list[list[int]] = [[] for _ in range(3)]

    def rollouts(row: list[int]) -> None:
        for _ in range(2_000):
            row += stream.draw(3).tolist()

    threads = [threading.Thread(target=rollouts, args=(row,)) for row in rows]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        stream.trained(stream.num_in_hand)
        state = stream.state_dict()
        assert state["num_drawn"] >= state["num_trained"] == state["cursor"]["position"]
    assert [*range(18_000)] == sorted(x for row in rows for x in row)


def test_a_copy_is_refused() -> None:
    """A copy, in a fork as well, would draw the same units again."""
    stream = ip.stream(PLAN, rank=0)
    rule = "a stream must be drawn from in the process that made it; got "
    cure = "; load its state_dict into a stream that is made there"
    for travel in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(ip.IndexPlanError) as raised:
            travel(stream)
        assert f"{rule}one to be copied or pickled{cure}" == str(raised.value)
    assert f"{rule}a fork of that process{cure}" == refused_in_a_fork(lambda: stream.draw(4))
    assert 2 == len(stream.draw(4))


def test_what_is_refused_changes_nothing() -> None:
    """Wrong numbers and states leave a stream as it was; what is said of them is in errors.txt."""
    stream = ip.stream(PLAN, rank=0)
    before = stream.state_dict()
    states = [4, *({**before, **each} for each in ({"version": True}, {"num_trained": -1}))]
    states.append({**before, "num_trained": 2, "num_discarded": 1})
    wrong = [(stream.draw, (-1, 2.0)), (stream.give_back, (1,)), (stream.trained, (1,))]
    for call, values in [*wrong, (stream.load_state_dict, states)]:
        for value in values:
            with pytest.raises(ip.IndexPlanError):
                call(value)
            assert before == stream.state_dict()
