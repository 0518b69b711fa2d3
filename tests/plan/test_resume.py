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
from tests.support import model
from tests.support.planned import phase_at
from tests.support.strategies import (
    EPOCHS,
    cursors,
    epochs_of,
    fresh_plans,
    nums_samples,
    partitions,
    plans,
    steps_of,
    sub_epochs_of,
)

EVERYWHERE = nums_samples.map(ip.Sequential)  # an order in which index == position


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


def stream_place(plan: ip.Plan) -> int:
    """Return the first stream place that a plan has left to read."""
    if plan._resumed is None:
        return 0
    return plan._resumed.epoch * plan.order.num_samples + plan._resumed.position


def valid_units(plan: ip.Plan, steps: list[tuple[int, int, int]]) -> Iterator[tuple[int, int]]:
    """Yield (epoch of the step, index) of all that some steps read, without padding."""
    for *pair, step in steps:
        for rank in range(plan.world_size):
            batch = plan.batch(*pair, step=step, rank=rank).tolist()
            for index in batch[: plan.units(*pair, step=step, rank=rank).num_valid]:
                yield pair[0], index


@given(plans(), st.data())
def test_a_cursor_is_in_normal_form(plan: ip.Plan, data: st.DataObject) -> None:
    """A cursor names the next step's first unit, wherever that is, as the model does."""
    pair = data.draw(st.sampled_from(sub_epochs_of(plan, EPOCHS + 1)), label="sub-epoch")
    steps = st.integers(plan.steps(*pair).start, plan.steps(*pair).stop)
    step = data.draw(steps, label="step")
    cursor = plan.cursor(*pair, step=step)
    expected = model.cursor(model.run_of(plan), *pair, step)
    assert expected == (cursor.epoch, cursor.sub_epoch, cursor.step, cursor.position)
    assert (plan.order.to_dict(), plan.sub_epochs) == (cursor.order, cursor.sub_epochs)
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
        begin, end = stream_place(plan), stream_place(plan.resume(cursor))
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


@given(plans(), st.data())
def test_cursors_round_trip_through_json(plan: ip.Plan, data: st.DataObject) -> None:
    """A cursor read back is equal, hashes equal, and writes the same text."""
    cursor = data.draw(cursors(plan), label="cursor")
    text = cursor.to_json()
    again = ip.Cursor.from_json(text)
    assert (cursor, hash(cursor), text) == (again, hash(again), again.to_json())
    assert cursor == ip.Cursor.from_dict(json.loads(text))


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
