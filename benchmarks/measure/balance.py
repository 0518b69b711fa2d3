"""How evenly balance deals work to ranks: `python -m benchmarks.measure.balance`.

Printed are the work of the costliest rank over the mean: as dealt, with balance, and of the largest
unit alone; for nested batches also the sum of the costliest inner batches, as dealt and with
balance, which is the work if ranks wait after each; then CPU microseconds a step, for one batch and
in a stream.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import indexplan as ip
from benchmarks.measure.lengths import chats, documents, speech
from indexplan.plan.balance import balanced
from indexplan.plan.plan import layout_of
from indexplan.reports.rank_work import work_of

Int64 = NDArray[np.int64]

STEPS = 200  # that are timed
WIDE, NESTED = {"world_size": 32, "batch_size": 32}, {"world_size": 16, "batch_size": (4, 8)}
FULL: dict[str, Any] = {"remainder": "drop"}  # under "spread" some ranks have a unit more
PAIRS = {"world_size": 16, "batch_size": (4, 2)}
QUADRATIC: dict[str, Any] = {"linear": 0, "quadratic": 1}
VERL: dict[str, Any] = {"linear": 24576, "quadratic": 1}


def dealt_to_ranks(costs: Int64, num_ranks: int) -> list[Int64]:
    """Return which units of a step each rank gets by balance; any number of units and ranks."""
    order = ip.Sequential(len(costs))
    balance = ip.Balance(costs)
    plan = ip.Plan(order, world_size=num_ranks, global_batch_size=len(costs), balance=balance)
    return [plan.batch(epoch=0, step=0, rank=rank) for rank in range(num_ranks)]


def plans() -> Iterator[tuple[str, ip.Plan]]:
    """Yield plans with balance, and what each is of."""
    for kind in (chats, documents, speech):
        lengths = ip.Column(kind(np.random.default_rng(0)))
        order = ip.Shuffle(len(lengths), seed=1)
        for fields, name in ((WIDE, "32 x 32"), (NESTED, "16 x (4, 8)"), (PAIRS, "16 x (4, 2)")):
            plan = ip.Plan(order, **fields, **FULL, balance=ip.Balance(lengths))
            yield f"{kind.__name__}, {name}", plan
    for kind in (chats, documents):
        lengths = ip.Column(kind(np.random.default_rng(0)))
        packed = ip.Packed(lengths, 8192, seed=1)
        for name, weights in (("l**2", QUADRATIC), ("24,576 l + l**2", VERL)):
            plan = ip.Plan(packed, **WIDE, **FULL, balance=ip.Balance(lengths, **weights))
            yield f"{kind.__name__} in rows of 8,192, {name}", plan


def in_turn(plan: ip.Plan, steps: tuple[int, ...]) -> tuple[float, float]:
    """Return the sum of the costliest inner batches over the mean, as dealt and balanced."""
    layout, found = layout_of(plan), []
    for step in steps:
        (costs,) = layout.costs(layout.steps(0, 0), step, step + 1)
        cells = layout.cells(layout.steps(0, 0), step)
        row = []
        for each in (costs, costs[balanced(costs, cells)]):
            most = np.zeros(int(cells.numbers.max()) + 1, np.int64)
            np.maximum.at(most, cells.numbers, np.add.reduceat(each, cells.starts))
            row.append(most.sum() * layout.world_size / costs.sum())
        found.append(row)
    before, after = np.mean(found, axis=0).tolist()
    return before, after


def microseconds(plan: ip.Plan) -> tuple[float, float]:
    """Return the time of a step of one rank, a batch by itself and in a stream."""
    plan.batch(epoch=0, step=0, rank=3)  # which compiles, and builds what the order has to
    start = time.process_time()
    for step in range(STEPS):
        plan.batch(epoch=0, step=1 + step % (plan.steps(epoch=0).stop - 1), rank=3)
    single = time.process_time() - start
    start = time.process_time()
    drawn = sum(1 for _ in plan.batches(epoch=1, rank=3, stop_step=min(STEPS, plan.steps(1).stop)))
    return 1e6 * single / STEPS, 1e6 * (time.process_time() - start) / drawn


def main() -> None:
    """Print a row for each plan."""
    titles = f"{'as dealt':>9}{'balanced':>9}{'bound':>7}{'in turn':>16}{'us':>6}{'stream':>8}"
    print(f"{'':<40}{titles}")
    for name, plan in plans():
        work = work_of(plan, 0, 0)
        assert work is not None
        before, after, bound = work.ratios
        nested = "(" in name
        beside = "{:>8.3f}{:>8.3f}".format(*in_turn(plan, work.steps)) if nested else f"{'':>16}"
        alone, stream = microseconds(plan)
        cells = f"{before:>9.3f}{after:>9.3f}{bound:>7.3f}{beside}{alone:>6.0f}{stream:>8.0f}"
        print(f"{name:<40}{cells}")


if __name__ == "__main__":
    main()
