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
    in_turn : numpy.ndarray
        int64, shape (steps, 2), without and with balance: what a step costs ranks that wait for
        each other after every inner batch: the sum of the costliest ones.
    largest : numpy.ndarray
        int64, shape (steps,): the cost of the costliest unit, which some rank has to read.
    """

    epoch: int
    sub_epoch: int
    num_steps: int
    steps: tuple[int, ...]
    as_dealt: Int64
    balanced: Int64
    in_turn: Int64
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

    @property
    def ratios_in_turn(self) -> tuple[float, float]:
        """The same for ranks that wait for each other after every inner batch; without a bound."""
        before, after = (self.in_turn / self.as_dealt.mean(axis=1, keepdims=True)).mean(axis=0)
        return float(before), float(after)

    def to_dict(self) -> dict[str, Any]:
        """Return which steps were looked at, and the ratios, as JSON types."""
        names = "as_dealt", "balanced", "bound", "as_dealt_in_turn", "balanced_in_turn"
        where = {"epoch": self.epoch, "sub_epoch": self.sub_epoch, "steps": list(self.steps)}
        values = *self.ratios, *self.ratios_in_turn
        return {**where, "ratios": dict(zip(names, values, strict=True))}

    def __str__(self) -> str:
        before, after, bound = self.ratios
        looked = f"{len(self.steps):,} of {counted(self.num_steps, 'step')} of epoch {self.epoch}"
        one, other = self.ratios_in_turn
        words = ""
        if (self.in_turn[:, 1] != self.balanced.max(axis=1)).any():
            words = f"; if ranks wait after every inner batch, {other:.3f} ({one:.3f} without)"
        return (
            f"the slowest rank has {after:.3f} times the mean work ({before:.3f} without balance; "
            f"the costliest unit alone forces at least {bound:.3f}){words}; averaged over {looked}"
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
    rows, in_turn, largest = [], [], []
    for step in chosen:
        (costs,) = layout.costs(steps, step, step + 1)
        cells = layout.cells(steps, step)
        sums = [
            np.add.reduceat(each, cells.starts) for each in (costs, costs[balanced(costs, cells)])
        ]
        rows.append([_by(np.add, each, cells.ranks, world_size) for each in sums])
        num = int(cells.numbers.max()) + 1
        in_turn.append([_by(np.maximum, each, cells.numbers, num).sum() for each in sums])
        largest.append(int(costs.max()))
    work = np.array(rows)
    return Work(
        epoch=steps.epoch,
        sub_epoch=steps.sub_epoch,
        num_steps=num_steps,
        steps=tuple(chosen),
        as_dealt=work[:, 0],
        balanced=work[:, 1],
        in_turn=np.array(in_turn),
        largest=np.array(largest),
    )


def _by(merge: np.ufunc, costs: Int64, groups: Int64, num_groups: int) -> Int64:
    """Return the sum, or the maximum, of the costs of each group of cells."""
    merged = np.zeros(num_groups, np.int64)
    merge.at(merged, groups, costs)
    return merged
