"""The steps of a plan from where it starts, counted from 0 over its epochs and sub-epochs."""

from __future__ import annotations

import math
import threading
from bisect import bisect_right
from typing import Any

from indexplan import Cursor, IndexPlanError, Plan
from indexplan.errors import integer, shown

LOOKED_AT = 2**10  # sub-epochs in a row without a step, after which "drop" will have none


class Steps:
    """The steps of a plan, which loaders number from 0.

    Parameters
    ----------
    plan : Plan
        With a world_size; a resumed one begins at its cursor.
    num_epochs : int or None
        The epochs of the whole run, those before a resume included; None has no end.
    """

    def __init__(self, plan: Plan, num_epochs: int | None) -> None:
        if num_epochs is not None:
            cure = "pass the epochs of the whole run, or None for a run without an end"
            num_epochs = integer("num_epochs", num_epochs, 1, 2**32, cure)
        self.plan, self.num_epochs = plan, num_epochs
        start = plan.start
        self._first = start.epoch * plan.sub_epochs + start.sub_epoch
        self._stops: list[int] = []  # how many steps there are up to the end of each sub-epoch
        self._looking = threading.Lock()

    def __len__(self) -> int:
        """Return how many steps there are; only where there is an end."""
        assert self.num_epochs is not None  # noqa: S101 (an endless run has no length)
        while not self._looked_at_all:
            self._look()
        return self._stops[-1] if self._stops else 0

    @property
    def _looked_at_all(self) -> bool:
        last = self._first + len(self._stops)
        return self.num_epochs is not None and last >= self.num_epochs * self.plan.sub_epochs

    def _look(self) -> int:
        """Count the steps of one more sub-epoch, and return them."""
        with self._looking:  # Grain's threads ask at once
            where = divmod(self._first + len(self._stops), self.plan.sub_epochs)
            steps = len(self.plan.steps(*where))
            self._stops.append(steps + (self._stops[-1] if self._stops else 0))
        return steps

    def __reduce__(self) -> tuple[Any, ...]:
        return Steps, (self.plan, self.num_epochs)

    def __getitem__(self, number: int) -> tuple[int, int, int]:
        """Return (epoch, sub_epoch, step) of a step, or raise IndexError past the last one."""
        looked = 0
        while not (self._stops and number < self._stops[-1]):
            if self._looked_at_all:
                raise IndexError(number)
            looked = 0 if self._look() else looked + 1
            if looked > LOOKED_AT and self.plan.remainder != "carry":
                raise IndexPlanError(
                    "plan",
                    f"must have a step in {LOOKED_AT} sub-epochs",
                    f"none, under remainder={shown(self.plan.remainder)}",
                    "use a smaller batch size, or remainder='carry' or 'pad'",
                )
        at = bisect_right(self._stops, number)
        epoch, sub_epoch = divmod(self._first + at, self.plan.sub_epochs)
        step = self.plan.steps(epoch, sub_epoch)[number - (self._stops[at - 1] if at else 0)]
        return epoch, sub_epoch, step

    def cursor(self, number: int) -> Cursor:
        """Return where the run stands after so many steps."""
        if not number:
            return self.plan.start
        epoch, sub_epoch, step = self[number - 1]
        return self.plan.cursor(epoch, sub_epoch, step=step + 1)


def units_of_each_batch(plan: Plan) -> int | None:
    """Return how many units every batch of every rank has; None if they differ."""
    of_all_ranks = plan.batch_size is None
    size = plan.global_batch_size if of_all_ranks else plan.batch_size
    nested = size if isinstance(size, tuple) else (size,)
    numbers = [each for each in nested if isinstance(each, int)]
    if plan.remainder not in {"drop", "pad", "carry"} or len(numbers) < len(nested):
        return None  # where there are phases, sizes are no numbers
    share, rest = divmod(math.prod(numbers), (plan.world_size or 1) if of_all_ranks else 1)
    return None if rest else share
