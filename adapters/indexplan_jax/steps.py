"""The steps of a plan from where it starts, counted from 0 over its epochs and sub-epochs."""

from __future__ import annotations

import math
import threading
from bisect import bisect_right
from typing import Any

from indexplan import Cursor, IndexPlanError, Plan
from indexplan.errors import integer, shown

MOST_EPOCHS = 10**5  # that are counted: 8 s
LOOKED_AT = 2**10  # epochs in a row without a step, after which "drop" will have none


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
        start = plan.start
        if num_epochs is not None:
            cure = "pass the epochs of the whole run, or None for a run without an end"
            num_epochs = integer("num_epochs", num_epochs, 1, start.epoch + MOST_EPOCHS + 1, cure)
        self.plan, self.num_epochs = plan, num_epochs
        self._first = start.epoch * plan.sub_epochs + start.sub_epoch
        self._stops: list[int] = []  # how many steps there are up to the end of each sub-epoch
        self._counting = threading.Lock()

    def __len__(self) -> int:
        """Return how many steps there are; only where there is an end."""
        self._count_to(math.inf)
        return self._stops[-1] if self._stops else 0

    def _count_to(self, number: float) -> bool:
        """Count sub-epochs until one has step `number`; return whether one does before the end."""
        empty, sub_epochs = 0, self.plan.sub_epochs
        end = math.inf if self.num_epochs is None else self.num_epochs * sub_epochs - self._first
        with self._counting:  # Grain's threads ask at once
            while not (self._stops and number < self._stops[-1]):
                if len(self._stops) >= end:
                    return False
                if empty > LOOKED_AT * sub_epochs and self.plan.remainder != "carry":
                    raise IndexPlanError(
                        "plan",
                        f"must have a step in {LOOKED_AT} epochs",
                        f"none, under remainder={shown(self.plan.remainder)}",
                        "use remainder='pad', or a smaller batch size",
                    )
                where = divmod(self._first + len(self._stops), sub_epochs)
                steps = len(self.plan.steps(*where))
                self._stops.append(steps + (self._stops[-1] if self._stops else 0))
                empty = 0 if steps else empty + 1
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        return Steps, (self.plan, self.num_epochs)

    def __getitem__(self, number: int) -> tuple[int, int, int]:
        """Return (epoch, sub_epoch, step) of a step, or raise IndexError past the last one."""
        if not self._count_to(number):
            raise IndexError(number)
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
