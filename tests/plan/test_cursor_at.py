"""The cursor of a stream place: how many units a run has read is enough to resume it."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.partition.remainders import REMAINDERS
from tests.support import model
from tests.support.bins import ChangingBins
from tests.support.strategies import (
    EPOCHS,
    cursors,
    epochs_of,
    orders,
    plans,
    steps_of,
    sub_epochs_of,
)

EXACT = sorted(name for name, policy in REMAINDERS.items() if policy.exact)
remainders = st.sampled_from(EXACT)
ORDERS = orders() | st.builds(ChangingBins, st.integers(1, 40))  # whose epochs differ in units


def place_of(cursor: ip.Cursor, plan: ip.Plan) -> int:
    """Return how many units lie before a cursor, counted epoch by epoch."""
    return sum(map(plan.order.num_units, range(cursor.epoch))) + cursor.position


def places_read(plan: ip.Plan, steps: list[tuple[int, int, int]]) -> Counter[int]:
    """Return how often some steps read each stream place, by the model's walk of the plan."""
    wanted, n = set(steps), plan.order.num_units(0)
    return Counter(
        slot.epoch * n + slot.position
        for found in model.walk(model.run_of(plan), epochs_of(plan))
        for step in found.steps
        if (found.epoch, found.sub_epoch, step.number) in wanted
        for slot in step.slots
    )


def read_by(plan: ip.Plan, epochs: int) -> dict[tuple[int, int], list[list[int]]]:
    """Return what the steps of each sub-epoch that reads something read, rank by rank."""
    found = {
        pair: [plan.indices(*pair, rank=rank).tolist() for rank in range(plan.world_size)]
        for pair in sub_epochs_of(plan, epochs)
    }
    return {pair: ranks for pair, ranks in found.items() if any(ranks)}


@given(remainders.flatmap(lambda kind: plans(ORDERS, kind)), st.data())
def test_the_place_of_a_cursor_is_all_of_it(plan: ip.Plan, data: st.DataObject) -> None:
    """`cursor_at` is the inverse of a place; of an empty sub-epoch it finds the next one."""
    cursor = data.draw(cursors(plan), label="cursor")
    found = plan.cursor_at(place_of(cursor, plan))
    if plan.account(cursor.epoch, cursor.sub_epoch).num_units:
        assert cursor == found
    if cursor == found:
        return
    assert found.step == 0
    epochs = max(epochs_of(plan), found.epoch + 1)
    assert read_by(plan.resume(found), epochs) == read_by(plan.resume(cursor), epochs)


@given(remainders.flatmap(lambda kind: plans(remainder=kind)), st.data())
def test_a_place_anywhere_is_resumed_there(plan: ip.Plan, data: st.DataObject) -> None:
    """The run resumes at the place, in its sub-epoch, and numbers steps after those before it."""
    n = plan.order.num_units(0)
    begin = place_of(plan.start, plan)
    place = data.draw(st.integers(begin, max(begin, EPOCHS * n) + n), label="place")
    cursor = plan.cursor_at(place)
    assert (cursor.epoch, cursor.position) == divmod(place, n)
    where = (cursor.epoch, cursor.sub_epoch)
    (there,) = (
        each
        for each in model.walk(model.run_of(plan), cursor.epoch + 1)
        if (each.epoch, each.sub_epoch) == where
    )
    firsts = [step.slots[0].position for step in there.steps]
    assert there.first_step + sum(first < cursor.position for first in firsts) == cursor.step
    rest = plan.resume(cursor)
    assert rest.cursor_at(place) == cursor
    steps = [step for step in steps_of(rest, cursor.epoch + 1) if step[:2] == where]
    assert [step[2] for step in steps] == [*rest.steps(*where)]
    if steps:
        read = places_read(rest, steps)
        assert [*range(place, place + len(read))] == sorted(read.elements())


def test_a_place_of_a_run_too_long_to_walk() -> None:
    """The cost depends neither on the place nor on the dataset."""
    plan = ip.Plan(ip.Shuffle(2**60), world_size=7, batch_size=(3, 5), remainder="carry")
    place = 2**32 * 2**60 - 1
    cursor = plan.cursor_at(place)
    assert (2**32 - 1, 2**60 - 1) == (cursor.epoch, cursor.position)
    # of the steps of 105 units, from that which first starts at or after the epoch's start
    first = -(2**60 * (2**32 - 1)) % 105
    assert -((first - cursor.position) // 105) == cursor.step
