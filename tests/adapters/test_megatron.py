"""PlanIterator without Megatron itself: tests/through/test_megatron.py has what needs that."""

from __future__ import annotations

import gc
import multiprocessing
from typing import Any

import pytest

import indexplan as ip
from indexplan_torch.megatron import PlanIterator
from tests.histories.megatron import live
from tests.histories.stories import Story

ORDER = ip.Shuffle(100, seed=1)


def iterators(world_size: int = 2, *, order: ip.Order = ORDER, **changes: Any) -> list[Any]:
    """Return the iterators of all ranks."""
    given = {"micro_batch_size": 3, "consumed_samples": 0, **changes}
    return [
        PlanIterator(range(order.num_samples), order, rank=rank, world_size=world_size, **given)
        for rank in range(world_size)
    ]


def read(ranks: list[Any], num: int = 1) -> list[list[int]]:
    """Read some micro-batches of each rank, as Megatron's accumulation takes them."""
    return [next(each).tolist() for _ in range(num) for each in ranks]


MORE = [pytest.param(number, marks=pytest.mark.slow) for number in range(10, 40)]


@pytest.mark.parametrize("number", [*range(10), *MORE])
def test_every_step_reads_the_next_places(number: int) -> None:
    """Whatever the ranks, micro-batches, ramp-ups and returns; and a ledger has each step once.

    The command draws thousands of others.
    """
    live(Story(number))


def test_workers_draw_ahead_of_the_count_and_stay_for_later_epochs() -> None:
    """With workers, batches and the count are the same, over the ends of epochs."""
    order = ip.Shuffle(30, seed=2)
    alone, with_workers = (
        iterators(order=order, num_workers=num, prefetch_factor=(num and 3) or None)[:1]
        for num in (0, 2)
    )
    for _ in range(12):
        assert read(alone) == read(with_workers)
        assert alone[0].save_state() == with_workers[0].save_state()
    assert with_workers[0]._loader.persistent_workers


@pytest.mark.parametrize("persistent", [True, False])
def test_closing_ends_the_workers(persistent: bool) -> None:
    """At once, without garbage collection; a later micro-batch is the next one."""
    options = {"num_workers": 2, "persistent_workers": persistent}
    (iterator,) = iterators(1, **options)
    before, expected = children(), read(iterators(1), 3)
    gc.disable()
    try:
        found = read([iterator])
        assert len(children() - before) == 2
        iterator.close()
        assert children() <= before  # another test may have left some, which end now
        assert expected == found + read([iterator], 2)
        iterator.close()
        assert children() <= before  # another test may have left some, which end now
    finally:
        gc.enable()


def test_a_stage_that_never_asks_loads_nothing() -> None:
    """Each virtual pipeline stage's iterator yields every micro-batch, and starts at its first."""
    asked: list[int] = []

    class Noting:
        def __len__(self) -> int:
            return 100

        def __getitem__(self, index: int) -> int:
            asked.append(index)
            return index

    stages = [
        PlanIterator(Noting(), ORDER, micro_batch_size=2, consumed_samples=8, rank=1, world_size=2)
        for _ in range(3)
    ]
    assert asked == []
    first = [next(stages[0]).tolist() for _ in range(4)]
    last = [next(stages[2]).tolist() for _ in range(4)]
    assert first == last
    assert sum(first + last, []) == asked


def test_a_state_is_one_number_and_the_order() -> None:
    """It is equal on all ranks, and resumes others; a mixture may change after the place."""
    sources = {"a": ip.Shuffle(50), "b": ip.Shuffle(60, seed=1)}
    mixture = ip.Mixture(sources, {"a": 1, "b": 1})
    ranks = iterators(order=mixture)
    read(ranks, 5)
    state = ranks[0].save_state()
    assert {"version": 1, "consumed_samples": 30, "order": mixture.to_dict()} == state
    assert state == ranks[1].save_state()
    (later,) = iterators(1, order=mixture.with_phase(30, {"a": 1, "b": 3}), micro_batch_size=6)
    later.load_state(state)
    assert later.plan.order.take(0, 30, 36).tolist() == next(later).tolist()


def children() -> set[int]:
    """Return the processes that this one has started and that live."""
    return {process.pid or 0 for process in multiprocessing.active_children()}


def test_a_state_that_is_refused_changes_nothing() -> None:
    """The iterator reads on where it stood; tests/errors has all that is refused."""
    ranks = iterators()
    expected = read(iterators(), 4)
    found = read(ranks, 2)
    other = {"version": 1, "consumed_samples": 3, "order": ip.Shuffle(100, seed=2).to_dict()}
    with pytest.raises(ip.IndexPlanError, match=r"^a cursor must belong to the plan's order; "):
        ranks[0].load_state(other)
    assert expected == found + read(ranks, 2)


def test_counts_go_on_where_samples_were_left_out() -> None:
    """A count of consumed samples is the same place, up to where the run changed and past it."""
    plan = ip.Plan(ip.Shuffle(120, seed=1), world_size=4, batch_size=3, remainder="carry")
    order = ip.Without(plan.order, range(0, 120, 11), since=plan.cursor(1, step=4))
    row = [int(each) for epoch in range(4) for each in order.take(epoch, 0, order.num_units(epoch))]
    for consumed in (0, 48, 168, 180, 240, 300):
        ranks = iterators(3, order=order, micro_batch_size=2, consumed_samples=consumed)
        assert row[consumed : consumed + 48] == sum(read(ranks, 8), [])
