"""How much work each rank has in a step, with balance and without."""

from __future__ import annotations

import numpy as np

from indexplan.answers import Shown
from indexplan.errors import counted
from indexplan.plan.balance import balanced
from indexplan.plan.plan import Plan, layout_of

STEPS = 32  # most steps that are computed
UNITS = 2**21  # and most units, or ranks, in all of these steps, unless it is a single step


def work_of(plan: Plan, epoch: int, sub_epoch: int | None) -> Shown | None:
    """Return the work of a sub-epoch's steps under a plan with balance; None if it has none.

    The work of the costliest rank is divided by the mean, and averaged over some steps, evenly
    spread: without balance, with it, and the least of any balance, as units are not cut. Padding is
    left out.
    """
    layout = layout_of(plan)
    steps, world_size = layout.steps(epoch, sub_epoch), layout.world_size
    first, num_steps = steps.first_step, steps.num_steps - steps.first_step
    each = max(world_size, *layout.partition.sizes)
    if not num_steps or world_size > UNITS:
        return None
    most = max(1, min(STEPS, num_steps, UNITS // each))
    chosen = sorted({first + (num_steps - 1) * i // max(1, most - 1) for i in range(most)})
    rows = []
    for step in chosen:
        (costs,) = layout.costs(steps, step, step + 1)
        cells = layout.cells(steps, step)
        work = np.zeros((2, world_size), np.int64)
        for row, dealt in zip(work, (costs, costs[balanced(costs, cells)]), strict=True):
            np.add.at(row, cells.ranks, np.add.reduceat(dealt, cells.starts))
        mean = work[0].mean()
        rows.append(np.array([*work.max(axis=1), max(mean, costs.max())]) / mean)
    before, after, bound = np.mean(rows, axis=0).tolist()
    looked = f"{len(chosen):,} of {counted(num_steps, 'step')} of epoch {steps.epoch}"
    words = (
        f"the slowest rank has {after:.3f} times the mean work ({before:.3f} without balance; "
        f"the costliest unit alone forces at least {bound:.3f}); averaged over {looked}"
    )
    where = {"epoch": steps.epoch, "sub_epoch": steps.sub_epoch, "steps": chosen}
    return Shown(
        {**where, "ratios": {"as_dealt": before, "balanced": after, "bound": bound}}, words
    )
