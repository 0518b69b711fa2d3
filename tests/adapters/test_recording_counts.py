"""The ledger of a run whose state is a count, written as docs/migrate/megatron.md says."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import indexplan as ip
from indexplan_torch.megatron import PlanIterator
from tests.support.ledger_histories import Listed

Legs = list[tuple[int, int, int, int]]  # ranks, micro-batch, steps, and which checkpoint is loaded


def record(path: Path, plan: ip.Plan, start: int, stop: int) -> None:
    """Write down what was read between two counts of consumed samples; as on the page."""
    ledger, rest = ip.Ledger(path), plan.resume(plan.cursor_at(start))
    ledger.begin(rest)
    ledger.record(rest, plan.cursor_at(stop))


@st.composite
def histories(draw: st.DrawFn) -> tuple[ip.Order, Legs]:
    """An order, and jobs that continue or return to an earlier checkpoint of the run."""
    order: ip.Order = ip.Shuffle(draw(st.integers(1, 60)), seed=draw(st.integers(0, 5)))
    if draw(st.booleans()):
        sources = {"a": order, "b": ip.Shuffle(draw(st.integers(1, 9)), seed=6)}
        order = ip.Mixture(sources, {"a": 2, "b": 1})
    numbers = st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 9), st.integers(0, 3))
    return order, draw(st.lists(numbers, min_size=1, max_size=5))


@settings(max_examples=40)
@given(drawn=histories())
def test_the_ledger_is_what_was_read(
    drawn: tuple[ip.Order, Legs], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Each step is there once, through other ranks, other micro-batches, and returns."""
    path = tmp_path_factory.mktemp("run") / "run.ledger"
    order, legs = drawn
    saved: list[tuple[int, list[list[list[int]]]]] = [(0, [])]  # the counts of the run that counts
    for ranks, size, num_steps, back in legs:
        saved = saved[: max(1, len(saved) - back)]
        start, steps = saved[-1]
        sizes = {"micro_batch_size": size, "consumed_samples": start, "world_size": ranks}
        iterators = [
            PlanIterator(range(order.num_samples), order, rank=rank, **sizes)
            for rank in range(ranks)
        ]
        steps = [*steps, *([next(each).tolist() for each in iterators] for _ in range(num_steps))]
        saved.append((iterators[0].consumed_samples, steps))
        record(path, iterators[0].plan, start, saved[-1][0])
        Listed(steps=steps).check(ip.Ledger(path), order.num_samples)
