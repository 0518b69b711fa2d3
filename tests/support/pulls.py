"""Drawn histories of a loop that pulls units, held against a list of all units in reading order."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from hypothesis import strategies as st

import indexplan as ip
from tests.support.bins import ChangingBins
from tests.support.every_order import every_order


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
Open = Callable[..., Any]


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


def some_run(random: random.Random) -> Run:
    """Return a run without Hypothesis: many of them are quick."""
    steps = range(random.randrange(20))
    acts = [Act(random.choice(KINDS), random.randrange(41), random.randrange(2**16)) for _ in steps]
    return Run(random.choice(ORDERS), random.randint(1, 4), random.randint(1, 5), acts)


@cache
def unit(number: int, epoch: int, position: int) -> Any:
    """Return what a unit of one of ORDERS holds."""
    order = ORDERS[number]
    samples = order.take(epoch, position, position + 1).tolist()
    cuts = order.traits.cuts_samples
    return samples, order.spans(epoch, position, position + 1).tolist() if cuts else None


class Units:
    """All units of an order, epoch after epoch, in a list that grows."""

    def __init__(self, order: ip.Order) -> None:
        self.number, self.order = ORDERS.index(order), order
        self.places: list[tuple[int, int]] = []
        self.epoch = 0

    def place(self, number: int) -> tuple[int, int]:
        """Return the epoch and the position of a unit."""
        while number >= len(self.places):
            self.places += [(self.epoch, at) for at in range(self.order.num_units(self.epoch))]
            self.epoch += 1
        return self.places[number]

    def __getitem__(self, number: int) -> Any:
        return unit(self.number, *self.place(number))


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
    found = []
    for part in parts:
        assert part.num_valid == len(part)
        for low, high in zip(part.offsets, part.offsets[1:], strict=False):
            spans = None if part.spans is None else part.spans[low:high].tolist()
            found.append((part.samples[low:high].tolist(), spans))
    return found


def check(run: Run, open_stream: Open) -> None:
    """Live through a run on all ranks, and compare it with the list of units after each act."""
    units = Units(run.order)
    plan = plan_of(run, run.world_size, 0)
    streams = [open_stream(plan, rank=rank) for rank in range(run.world_size)]
    settled = in_hand = 0
    counts = dict.fromkeys(("num_drawn", "num_trained", "num_discarded"), 0)
    saved: list[tuple[str, int, dict[str, int]]] = []
    for kind, size, more in run.acts:
        if kind == "draw":
            told_apart = bool(more % 2)
            parts = [stream.draw(size, units=told_apart) for stream in streams]
            next_ones = [units[settled + in_hand + i] for i in range(size)]
            expected = next_ones if told_apart else [x for one in next_ones for x in one[0]]
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
            streams = [open_stream(plan, rank=rank) for rank in range(world_size)]
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
