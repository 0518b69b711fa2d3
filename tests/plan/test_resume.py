"""A run may stop anywhere and go on under anything: goal 4 of the design."""

from __future__ import annotations

import copy
import json
import pickle
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.partition.remainders import REMAINDERS
from tests.support import model
from tests.support.bins import ChangingBins
from tests.support.planned import phase_at
from tests.support.strategies import (
    EPOCHS,
    balanced_plans,
    cursors,
    epochs_of,
    fresh_plans,
    nums_samples,
    orders,
    partitions,
    plans,
    steps_of,
    stops,
    sub_epochs_of,
)
from tests.support.units import valid_samples

EXACT = st.sampled_from(sorted(name for name, policy in REMAINDERS.items() if policy.exact))
EVERYWHERE = nums_samples.map(ip.Sequential)  # an order in which index == position
MORE = orders() | st.builds(ChangingBins, st.integers(1, 40))  # whose epochs differ in units


def saved(cursor: ip.Cursor) -> ip.Cursor:
    """Return a cursor as it comes back from a checkpoint."""
    return ip.Cursor.from_json(cursor.to_json())


def batches_from(plan: ip.Plan, epochs: int = EPOCHS) -> dict[tuple[int, int, int, int], list[int]]:
    """Return every batch of a plan's first epochs, by (epoch, sub_epoch, step, rank)."""
    return {
        (*pair, step, rank): batch.tolist()
        for pair in sub_epochs_of(plan, epochs)
        for rank in range(plan.world_size)
        for step, batch in enumerate(plan.batches(*pair, rank=rank), plan.steps(*pair).start)
    }


def place_of(cursor: ip.Cursor, plan: ip.Plan) -> int:
    """Return how many units lie before a cursor, counted epoch by epoch."""
    return sum(map(plan.order.num_units, range(cursor.epoch))) + cursor.position


def valid_units(plan: ip.Plan, steps: list[tuple[int, int, int]]) -> Iterator[tuple[int, int]]:
    """Yield (epoch of the step, index) of all that some steps read, without padding."""
    for epoch, part, step in steps:
        for index in valid_samples(plan, epoch, part, step=step):
            yield epoch, index


@given(plans() | balanced_plans(), st.data())
def test_a_cursor_is_in_normal_form(plan: ip.Plan, data: st.DataObject) -> None:
    """A cursor names the next step's first unit, wherever that is, as the model does."""
    pair = data.draw(st.sampled_from(sub_epochs_of(plan, EPOCHS + 1)), label="sub-epoch")
    step = data.draw(stops(plan, *pair), label="step")
    cursor = plan.cursor(*pair, step=step)
    expected = model.cursor(model.run_of(plan), *pair, step)
    assert expected == (cursor.epoch, cursor.sub_epoch, cursor.step, cursor.position)
    assert (plan.order.to_dict(), plan.sub_epochs) == (cursor.order, cursor.sub_epochs)
    again = saved(cursor)
    assert (cursor, hash(cursor), cursor.to_json()) == (again, hash(again), again.to_json())
    assert cursor == ip.Cursor.from_dict(json.loads(cursor.to_json()))
    # A plan that goes on from it stands where it says, so saving again changes nothing.
    after = plan.resume(cursor)
    assert cursor == after.cursor(cursor.epoch, cursor.sub_epoch, step=cursor.step)


@given(plans(), st.data())
def test_an_unchanged_plan_goes_on_as_if_never_stopped(plan: ip.Plan, data: st.DataObject) -> None:
    """Under every policy and schedule the steps left are those of the uninterrupted run."""
    cursor = saved(data.draw(cursors(plan), label="cursor"))
    after = plan.resume(cursor)
    here = (cursor.epoch, cursor.sub_epoch, cursor.step)
    epochs = epochs_of(after)
    expected = {key: b for key, b in batches_from(plan, epochs).items() if key[:3] >= here}
    assert expected == batches_from(after, epochs)
    for pair in sub_epochs_of(after):
        assert plan.steps(*pair).stop == after.steps(*pair).stop
        for step in after.steps(*pair):
            assert phase_at(plan, *pair, step) == phase_at(after, *pair, step)
            assert plan.step_size(*pair, step=step) == after.step_size(*pair, step=step)


@given(plans(), st.data())
def test_stopping_twice_is_stopping_once(plan: ip.Plan, data: st.DataObject) -> None:
    """Of an unchanged plan that stops again and again, only the last cursor matters."""
    first = data.draw(cursors(plan), label="first")
    between = plan.resume(first)
    second = data.draw(cursors(between), label="second")
    assert plan.resume(second) == between.resume(second)


@given(fresh_plans(EVERYWHERE), st.integers(1, 6), st.data())
def test_a_run_cut_anywhere_reads_everything_once_under_any_topologies(
    plan: ip.Plan, num_cuts: int, data: st.DataObject
) -> None:
    """Between two cursors, under whatever partition, each unit is read once, or was dropped."""
    n = plan.order.num_samples
    for cut in range(num_cuts + 1):
        left = steps_of(plan)
        if not left:
            return
        last = cut == num_cuts
        num_steps = data.draw(st.integers(1, len(left)), label="steps") if not last else len(left)
        *pair, step = left[num_steps - 1]
        cursor = plan.cursor(*pair, step=step + 1)
        begin, end = place_of(plan.start, plan), place_of(cursor, plan)
        if plan.remainder == "carry":  # a batch's indices do not tell the epochs of its units
            read = Counter(position for _, position in valid_units(plan, left[:num_steps]))
            assert Counter(place % n for place in range(begin, end)) == read
        else:
            read = Counter(e * n + position for e, position in valid_units(plan, left[:num_steps]))
            missed = [place for place in range(begin, end) if not read[place]]
            assert all(count == 1 and begin <= place < end for place, count in read.items())
            assert all(plan.locate(place % n, place // n).step == -1 for place in missed)
            pairs = sub_epochs_of(plan, cursor.epoch + 1)
            ended = [pair for pair in pairs if pair < (cursor.epoch, cursor.sub_epoch)]
            assert sum(plan.account(*pair).num_dropped for pair in ended) == len(missed)
            assert plan.remainder == "drop" or not missed
        fields = data.draw(partitions(plan.order, plan.sub_epochs), label="partition")
        plan = ip.Plan(plan.order, sub_epochs=plan.sub_epochs, **fields).resume(saved(cursor))


@given(plans(), st.integers(1, 70))
def test_replace_forgets_the_resume(plan: ip.Plan, world_size: int) -> None:
    """A changed partition starts over, until it is resumed itself."""
    fits = plan.remainder != "drop" or plan.batch_size is None
    changed = plan.replace(world_size=world_size if fits else 1)
    assert changed._resumed is None
    assert plan.replace() == plan
    assert json.loads(changed.replace(world_size=plan.world_size).to_json()) == {
        **json.loads(plan.to_json()),
        "resumed": None,
    }


def test_a_cursor_has_an_order_of_its_own() -> None:
    """Written down when it is asked for: equal to a loaded one, and nothing else sees changes."""
    plan = ip.Plan(ip.Without(ip.Shuffle(40), [3, 4]), world_size=2, batch_size=3)
    text = plan.cursor(1, step=2).to_json()
    for make in (
        lambda: ip.Cursor.from_json(text),
        lambda: pickle.loads(pickle.dumps(plan.cursor(1, step=2))),  # noqa: S301 (our own)
        lambda: copy.deepcopy(plan.cursor(1, step=2)),
        lambda: plan.cursor(1, step=2),
    ):
        cursor = make()
        assert ip.Cursor.from_json(text) == cursor
        assert hash(ip.Cursor.from_json(text)) == hash(cursor)
        assert plan.resume(cursor) == plan.resume(make())
        cursor.to_dict()["order"]["since"][0][1] = 1
        assert plan.order.to_dict() == cursor.order
        cursor.order["since"][0][1] = 1
        assert plan.order.to_dict() == plan.cursor(1, step=2).order
        with pytest.raises(ip.IndexPlanError, match="a cursor must"):
            plan.resume(cursor)


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


@given(EXACT.flatmap(lambda kind: plans(MORE, kind)), st.data())
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
    assert batches_from(plan.resume(found), epochs) == batches_from(plan.resume(cursor), epochs)


@given(EXACT.flatmap(lambda kind: plans(remainder=kind)), st.data())
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
