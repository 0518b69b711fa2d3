"""Hypothesis strategies for specs: small enough to enumerate, wide enough to be awkward."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

import indexplan as ip
from indexplan.partition.remainders import REMAINDERS
from tests.support.planned import planned

MAX_UNITS = 120
EPOCHS = 3  # what the laws walk; phases start within them, or just after

seeds = st.one_of(st.integers(0, 3), st.integers(0, 2**128 - 1))
remainders = st.sampled_from(sorted(REMAINDERS, key="spread".__ne__))
worlds = st.one_of(st.integers(1, 8), st.integers(1, 70))
nums_samples = st.one_of(st.integers(1, 4), st.integers(1, 40), st.integers(1, MAX_UNITS))


def some_ranks(world_size: int) -> list[int]:
    """Return all ranks of a small world, and six of a large one: for what each rank has alone."""
    few = {0, 1, world_size // 3, world_size // 2, world_size - 2, world_size - 1}
    return [*range(world_size)] if world_size <= 9 else sorted(few)


@st.composite
def orders(draw: st.DrawFn, *kinds: type[ip.Order]) -> ip.Order:
    """Draw an order of any kind; block sizes and windows reach past the dataset."""
    n = draw(nums_samples)
    kind = draw(st.sampled_from(kinds or (ip.Sequential, ip.Shuffle, ip.BlockShuffle)))
    if kind is ip.Sequential:
        return ip.Sequential(n)
    if kind is ip.Shuffle:
        return ip.Shuffle(n, draw(seeds))
    return ip.BlockShuffle(n, draw(st.integers(1, n + 2)), draw(st.integers(1, 5)), draw(seeds))


def sizes(most: int) -> st.SearchStrategy[Any]:
    """Return a strategy for batch sizes, plain and nested."""
    nested = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple)
    return st.one_of(st.integers(1, most), nested)


parameters = st.dictionaries(
    st.sampled_from(["resolution", "mask", "name"]),
    st.one_of(st.integers(-3, 300), st.booleans(), st.none(), st.text(max_size=3)),
    max_size=2,
)


@st.composite
def schedules(
    draw: st.DrawFn, n: int, sub_epochs: int, most: int, *, places: bool
) -> list[ip.Phase]:
    """Draw phases at sub-epochs, and if `places`, at stream places inside them too."""
    starts: st.SearchStrategy[Any] = st.tuples(
        st.integers(0, EPOCHS), st.integers(0, sub_epochs - 1)
    )
    if places:
        starts = st.one_of(st.integers(1, EPOCHS * n + 1), starts)

    def place(at: Any) -> int:
        if isinstance(at, int):
            return at
        each, more = divmod(n, sub_epochs)
        return at[0] * n + at[1] * each + min(at[1], more)

    first: Any = draw(st.sampled_from([0, (0, 0)]))
    later = [at for at in draw(st.lists(starts, max_size=3)) if at != (0, 0)]
    if any(isinstance(at, int) for at in later):  # rising as places
        unique = {place(at): at for at in later if place(at) > 0}
        ats = [unique[key] for key in sorted(unique)]
    else:  # rising as pairs; where sub-epochs are empty, several may share a place
        ats = sorted(set(later))
    return [ip.Phase(at, draw(sizes(most)), draw(parameters)) for at in [first, *ats]]


@st.composite
def partitions(
    draw: st.DrawFn, order: ip.Order, sub_epochs: int, remainder: str | None = None
) -> dict[str, Any]:
    """Draw the fields of a plan that may change when a run goes on."""
    remainder = draw(remainders) if remainder is None else remainder
    if not order.constant_num_units and remainder == "carry":
        remainder = "spread"
    name, most = draw(st.sampled_from([("batch_size", 9), ("global_batch_size", 100)]))
    n = order.num_units(0)
    scheduled = schedules(n, sub_epochs, most, places=order.constant_num_units)
    size = draw(st.one_of(sizes(most), scheduled))
    fields = {"world_size": draw(worlds), name: size, "remainder": remainder}
    made = planned(order, sub_epochs=sub_epochs, **fields)
    return {**fields, "remainder": made.remainder}


@st.composite
def fresh_plans(draw: st.DrawFn, order: Any = None, remainder: str | None = None) -> ip.Plan:
    """Draw a plan that starts at the beginning of its run."""
    drawn = draw(orders() if order is None else order)
    sub_epochs = draw(st.one_of(st.just(1), st.integers(1, 9), st.integers(1, MAX_UNITS + 9)))
    fields = draw(partitions(drawn, sub_epochs, remainder))
    return ip.Plan(drawn, sub_epochs=sub_epochs, **fields)


@st.composite
def cursors(draw: st.DrawFn, plan: ip.Plan, epochs: int = EPOCHS - 1) -> ip.Cursor:
    """Draw a cursor of a plan, in one of its first epochs."""
    epoch, sub_epoch = draw(st.sampled_from(sub_epochs_of(plan, epochs)))
    return plan.cursor(epoch, sub_epoch, step=draw(stops(plan, epoch, sub_epoch)))


def stops(plan: ip.Plan, epoch: int, sub_epoch: int) -> st.SearchStrategy[int]:
    """Return a strategy for where a sub-epoch may stop; often at its end, or a step before."""
    steps = plan.steps(epoch, sub_epoch)
    return st.sampled_from([steps.stop, *steps[-1:]]) | st.integers(steps.start, steps.stop)


@st.composite
def resumed_plans(draw: st.DrawFn, order: Any = None, remainder: str | None = None) -> ip.Plan:
    """Draw a plan that goes on where a run of another partition was stopped."""
    before = draw(fresh_plans(order))
    fields = draw(partitions(before.order, before.sub_epochs, remainder))
    after = ip.Plan(before.order, sub_epochs=before.sub_epochs, **fields)
    return after.resume(draw(cursors(before)))


def plans(order: Any = None, remainder: str | None = None) -> st.SearchStrategy[ip.Plan]:
    """Return a strategy for plans, fresh and resumed."""
    return st.one_of(fresh_plans(order, remainder), resumed_plans(order, remainder))


@st.composite
def balances(draw: st.DrawFn, num_samples: int) -> ip.Balance:
    """Draw a balance: lengths are often equal, as ties are what can go wrong."""
    lengths = st.one_of(st.integers(1, 3), st.integers(1, 100))
    row = draw(st.lists(lengths, min_size=num_samples, max_size=num_samples))
    linear, quadratic = draw(st.sampled_from([(1, 0), (0, 1), (7, 2)]))
    return ip.Balance(row, linear=linear, quadratic=quadratic)


@st.composite
def balanced_plans(draw: st.DrawFn, order: Any = None, remainder: str | None = None) -> ip.Plan:
    """Draw a plan with balance, fresh or resumed."""
    plan = draw(plans(order, remainder))
    balance = draw(balances(plan.order.num_samples))
    changed = plan.replace(balance=balance)
    return changed if plan._resumed is None else changed.resume(plan.start)


def start_of(plan: ip.Plan) -> tuple[int, int]:
    """Return the (epoch, sub_epoch) where a plan starts."""
    return (0, 0) if plan._resumed is None else plan._resumed[:2]


def epochs_of(plan: ip.Plan, epochs: int = EPOCHS) -> int:
    """Return how many epochs to look at: `epochs`, or up to that in which a plan is resumed."""
    return max(epochs, start_of(plan)[0] + 1)


def sub_epochs_of(plan: ip.Plan, epochs: int = EPOCHS) -> list[tuple[int, int]]:
    """Return every (epoch, sub_epoch) that is left of a plan's first epochs; at least one."""
    epoch, sub_epoch = start_of(plan)
    first = [(epoch, s) for s in range(sub_epoch, plan.sub_epochs)]
    return first + [
        (e, s) for e in range(epoch + 1, epochs_of(plan, epochs)) for s in range(plan.sub_epochs)
    ]


def steps_of(plan: ip.Plan, epochs: int = EPOCHS) -> list[tuple[int, int, int]]:
    """Return every (epoch, sub_epoch, step) that is left of a plan's first epochs."""
    return [
        (epoch, sub_epoch, step)
        for epoch, sub_epoch in sub_epochs_of(plan, epochs)
        for step in plan.steps(epoch, sub_epoch)
    ]
