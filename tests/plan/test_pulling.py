"""Streams: whatever a loop draws, gives back, counts and resumes, each unit is settled once.

Drawn histories of a loop that pulls units are held against a list of all units in reading order.
"""

from __future__ import annotations

import copy
import json
import pickle
import threading
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from tests.support.bins import ChangingBins
from tests.support.every_order import every_order
from tests.support.in_a_fork import refused_in_a_fork
from tests.support.strategies import cursors, fresh_plans
from tests.support.units import units_of

PLAN = ip.Plan(ip.Sequential(10), world_size=2, batch_size=2)


@ip.register
@dataclass(frozen=True, eq=False)
class Sparse(ChangingBins):
    """Bins in every third epoch, and in the others none."""

    algorithm = "test-sparse-bins-v1"

    def row(self, epoch: int) -> list[range]:
        """Return the bins of an epoch, in the order in which they are dealt."""
        return [] if epoch % 3 else super().row(epoch)


KINDS = ("draw", "draw", "draw", "give_back", "trained", "discarded", "stop", "crash")
ORDERS = [
    *(order for order in every_order().values() if order.ip_global_batch == 1),
    ChangingBins(10),
    Sparse(10),
    ip.Sequential(1),
    ip.Sequential(7),
]


class Act(NamedTuple):
    """What a loop does: of what kind, how much of what is possible, and what else is drawn."""

    kind: str
    size: int
    more: int


class Run(NamedTuple):
    """A plan, and what a loop that draws from it does."""

    order: ip.Order
    sub_epochs: int
    world_size: int
    acts: list[Act]


acts = st.builds(Act, st.sampled_from(KINDS), st.integers(0, 40), st.integers(0, 2**16))
runs = st.builds(
    Run, st.sampled_from(ORDERS), st.integers(1, 4), st.integers(1, 5), st.lists(acts, max_size=20)
)


units_in = cache(units_of)


class Units:
    """All units of an order, epoch after epoch, in a list that grows."""

    def __init__(self, order: ip.Order) -> None:
        self.order, self.epoch = order, 0
        self.places: list[tuple[int, int]] = []
        self.held: list[list[Any]] = []

    def place(self, number: int) -> tuple[int, int]:
        """Return the epoch and the position of a unit."""
        while number >= len(self.places):
            row = units_in(self.order, self.epoch)
            self.places += [(self.epoch, at) for at in range(len(row))]
            self.held += row
            self.epoch += 1
        return self.places[number]

    def next_ones(self, first: int, num: int, *, told_apart: bool) -> list[Any]:
        """Return some units, or their samples in one row."""
        self.place(first + num)
        held = self.held[first : first + num]
        samples = [each for one in held for each in one]
        if self.order.traits.cuts_samples:
            samples = [sample for sample, *_ in samples]
        return held if told_apart else samples


def plan_of(run: Run, world_size: int, more: int) -> ip.Plan:
    """Return a plan of a run, with some sizes of its own."""
    carry = run.order.constant_num_units and more % 2
    size = {"batch_size" if more % 3 else "global_batch_size": 1 + more % 11}
    return ip.Plan(
        run.order,
        world_size=world_size,
        sub_epochs=run.sub_epochs,
        remainder="carry" if carry else "spread",
        **size,
    )


def drawn(parts: list[Any], *, told_apart: bool) -> list[Any]:
    """Return what all ranks drew, in rank order: units, or samples in one row."""
    if not told_apart:
        return [index for part in parts for index in part.tolist()]
    assert all(part.num_valid == len(part) for part in parts)
    return [unit.tolist() for part in parts for unit in part.bins]


def check(run: Run) -> None:
    """Live through a run on all ranks, and compare it with the list of units after each act."""
    units = Units(run.order)
    plan = plan_of(run, run.world_size, 0)
    streams = [ip.stream(plan, rank=rank) for rank in range(run.world_size)]
    settled = in_hand = 0
    counts = dict.fromkeys(("num_drawn", "num_trained", "num_discarded"), 0)
    saved: list[tuple[str, int, dict[str, int]]] = []
    for kind, size, more in run.acts:
        if kind == "draw":
            told_apart = bool(more % 2)
            parts = [stream.draw(size, units=told_apart) for stream in streams]
            expected = units.next_ones(settled + in_hand, size, told_apart=told_apart)
            assert expected == drawn(parts, told_apart=told_apart)
            if told_apart:
                assert 1 >= max(map(len, parts)) - min(map(len, parts))
            in_hand, counts["num_drawn"] = in_hand + size, counts["num_drawn"] + size
        elif kind == "give_back":
            in_hand -= (many := min(size, in_hand))
            for stream in streams:
                stream.give_back(many)
        elif kind in {"trained", "discarded"}:
            many = min(size, in_hand)
            settled, in_hand = settled + many, in_hand - many
            counts[f"num_{kind}"] += many
            for stream in streams:
                getattr(stream, kind)(many)
        else:
            text = json.dumps(streams[0].state_dict())
            saved.append((text, settled, dict(counts)))
            chosen = saved[more % len(saved)] if kind == "crash" else saved[-1]
            world_size = 1 + size % 6
            plan = plan_of(run, world_size, more)
            streams = [ip.stream(plan, rank=rank) for rank in range(world_size)]
            for stream in streams:
                if more % 5 == 0:
                    stream.draw(more % 7)  # is forgotten
                stream.load_state_dict(json.loads(chosen[0]))
            settled, in_hand, counts = chosen[1], 0, dict(chosen[2])
        following = units.place(settled + in_hand)
        left = run.order.num_units(following[0]) - following[1]
        assert streams[0].state_dict() == streams[-1].state_dict()
        for stream in streams:
            assert {name: getattr(stream, name) for name in counts} == counts
            assert in_hand == stream.num_in_hand
            back = stream.num_drawn - stream.num_trained - stream.num_discarded - in_hand
            assert back == stream.num_given_back >= 0
            assert settled == stream.num_trained + stream.num_discarded
            assert (following[0], left) == (stream.epoch, stream.num_left)
        cursor = streams[0].cursor
        assert units.place(settled) == (cursor.epoch, cursor.position)
        assert plan.cursor_at(settled) == cursor


@given(runs)
def test_each_unit_is_settled_once_in_any_history(run: Run) -> None:
    """Draws, returns, counts, stops and crashes on changing ranks read the list of all units.

    What was given back, or was in hand at a resume, is drawn again, and nothing else is.
    """
    check(run)


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
    start = (rest,) if data.draw(st.booleans()) else (plan, cursor)  # where the plan does
    stream = ip.stream(*start, rank=rank)
    for sub_epoch in range(cursor.sub_epoch, plan.sub_epochs):
        for batch in rest.batches(cursor.epoch, sub_epoch, rank=rank):
            assert batch.tolist() == stream.draw(size).tolist()


def test_the_end_of_an_epoch_is_the_start_of_the_next() -> None:
    """An empty sub-epoch at the end leaves nothing to draw, so a loop up to the end would hang."""
    plan = ip.Plan(ip.Sequential(3), world_size=1, batch_size=2, sub_epochs=5)
    stream = ip.stream(plan, plan.cursor(0, 4, step=0), rank=0)
    assert (1, 3) == (stream.epoch, stream.num_left)
    assert plan.cursor(1, 0, step=0) == stream.cursor


def test_the_state_has_one_size() -> None:
    """1e10 units into a run, and after many acts, it has a few digits more than at its start."""
    plan = ip.Plan(ip.Sequential(100), world_size=1, batch_size=2, remainder="carry")
    size = len(json.dumps(ip.stream(plan, rank=0).state_dict()))
    far = ip.stream(plan, plan.cursor_at(10**10), rank=0)
    for _ in range(300):
        far.draw(5)
        far.give_back(1)
        far.trained(3)
        far.discarded(1)
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
    with pytest.raises(ip.IndexPlanError, match="a draw must be inside the run, which ends with"):
        stream.draw(3)
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
