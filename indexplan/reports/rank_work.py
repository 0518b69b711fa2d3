"""How much work each rank has in a step, with balance and without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from indexplan.errors import counted
from indexplan.partition.steps import Int64
from indexplan.plan.balance import balanced
from indexplan.plan.plan import Plan, layout_of

STEPS = 32  # most steps that are computed
UNITS = 2**21  # and most units, or ranks, in all of these steps, unless it is a single step


@dataclass(frozen=True, kw_only=True, eq=False)
class Work:
    """How much work some steps give to each rank, with balance and without; padding is left out.

    Parameters
    ----------
    epoch, sub_epoch, num_steps : int
        `num_steps` are left in the sub-epoch.
    steps : tuple of int
        The steps that were computed: evenly spread, with the first and the last.
    as_dealt, balanced : numpy.ndarray
        int64, shape (steps, ranks): the sum of the costs of each rank, without and with balance.
    largest : numpy.ndarray
        int64, shape (steps,): the cost of the costliest unit, which some rank has to read.
    """

    epoch: int
    sub_epoch: int
    num_steps: int
    steps: tuple[int, ...]
    as_dealt: Int64
    balanced: Int64
    largest: Int64

    @property
    def ratios(self) -> tuple[float, float, float]:
        """The work of the costliest rank divided by the mean, averaged over the steps.

        Without balance, with balance, and a lower bound for any balance, as units are not cut.
        """
        means = self.as_dealt.mean(axis=1)
        bound = np.maximum(self.largest, means)
        most = self.as_dealt.max(axis=1), self.balanced.max(axis=1), bound
        before, after, least = (float((each / means).mean()) for each in most)
        return before, after, least

    def to_dict(self) -> dict[str, Any]:
        """Return which steps were looked at, and the ratios, as JSON types."""
        ratios = dict(zip(("as_dealt", "balanced", "bound"), self.ratios, strict=True))
        where = {"epoch": self.epoch, "sub_epoch": self.sub_epoch, "steps": list(self.steps)}
        return {**where, "ratios": ratios}

    def __str__(self) -> str:
        before, after, bound = self.ratios
        looked = f"{len(self.steps):,} of {counted(self.num_steps, 'step')} of epoch {self.epoch}"
        return (
            f"the slowest rank has {after:.3f} times the mean work ({before:.3f} without balance; "
            f"the costliest unit alone forces at least {bound:.3f}); averaged over {looked}"
        )


def work_of(plan: Plan, epoch: int, sub_epoch: int | None) -> Work | None:
    """Return the work of a sub-epoch's steps under a plan with balance; None if it has none."""
    layout = layout_of(plan)
    steps, world_size = layout.steps(epoch, sub_epoch), layout.world_size
    first, num_steps = steps.first_step, steps.num_steps - steps.first_step
    each = max(world_size, *layout.partition.sizes)
    if not num_steps or world_size > UNITS:
        return None
    most = max(1, min(STEPS, num_steps, UNITS // each))
    chosen = sorted({first + (num_steps - 1) * i // max(1, most - 1) for i in range(most)})
    rows, largest = [], []
    for step in chosen:
        (costs,) = layout.costs(steps, step, step + 1)
        cells = layout.cells(steps, step)
        both = np.zeros((2, world_size), np.int64)
        for row, dealt in zip(both, (costs, costs[balanced(costs, cells)]), strict=True):
            np.add.at(row, cells.ranks, np.add.reduceat(dealt, cells.starts))
        rows.append(both)
        largest.append(int(costs.max()))
    work = np.array(rows)
    return Work(
        epoch=steps.epoch,
        sub_epoch=steps.sub_epoch,
        num_steps=num_steps,
        steps=tuple(chosen),
        as_dealt=work[:, 0],
        balanced=work[:, 1],
        largest=np.array(largest),
    )
