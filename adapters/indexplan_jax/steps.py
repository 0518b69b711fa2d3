"""The steps of a plan from where it starts, counted from 0 over its epochs and sub-epochs."""

from __future__ import annotations

import math
import threading
from bisect import bisect_right
from itertools import accumulate
from typing import Any

from indexplan import Cursor, IndexPlanError, Plan
from indexplan.errors import integer, shown

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
        if num_epochs is not None:
            cure = "pass the epochs of the whole run, or None for a run without an end"
            num_epochs = integer("num_epochs", num_epochs, 1, 2**32, cure)
        self.plan, self.num_epochs = plan, num_epochs
        start = plan.start
        self._first = start.epoch * plan.sub_epochs + start.sub_epoch
        self._stops: list[int] = []  # how many steps there are up to the end of each sub-epoch
        self._looking = threading.Lock()
        self._alike = Alike.of(plan)

    def __len__(self) -> int:
        """Return how many steps there are; only where there is an end."""
        assert self.num_epochs is not None  # noqa: S101 (an endless run has no length)
        if self._alike is not None:
            return self._alike.before(self.num_epochs)
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
        if self._alike is not None:
            if self.num_epochs is not None and number >= len(self):
                raise IndexError(number)
            return self._alike.find(number)
        looked = 0
        while not (self._stops and number < self._stops[-1]):
            if self._looked_at_all:
                raise IndexError(number)
            looked = 0 if self._look() else looked + 1
            if looked > LOOKED_AT * self.plan.sub_epochs and self.plan.remainder != "carry":
                raise IndexPlanError(
                    "plan",
                    f"must have a step in {LOOKED_AT} epochs",
                    f"none, under remainder={shown(self.plan.remainder)}",
                    "use remainder='pad', or a smaller batch size",
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


class Alike:
    """The steps of a plan whose epochs are alike, found without counting those before."""

    def __init__(self, plan: Plan, units_of_step: int) -> None:
        self._plan, self._start, self._units_of_step = plan, plan.start, units_of_step
        self._num_units = plan.order.num_units(0)
        self._place = self._start.epoch * self._num_units + self._start.position
        self._kept: dict[int, list[int]] = {}
        self._first, self._each = (self._stops(self._start.epoch + after)[-1] for after in (0, 1))

    @classmethod
    def of(cls, plan: Plan) -> Alike | None:
        """Return them; None if epochs differ, or have no step."""
        size = plan.batch_size if plan.global_batch_size is None else plan.global_batch_size
        units = product_of(size)
        if units is None or not plan.order.constant_num_units:
            return None
        ranks = (plan.world_size or 1) if plan.global_batch_size is None else 1
        alike = cls(plan, units * ranks)
        return alike if alike._each or plan.remainder == "carry" else None

    def before(self, epoch: int) -> int:
        """Return how many steps begin before an epoch."""
        if epoch <= self._start.epoch:
            return 0
        if self._plan.remainder == "carry":
            units = epoch * self._num_units - self._place
            return max(-(-units // self._units_of_step), 0)
        return self._first + (epoch - self._start.epoch - 1) * self._each

    def find(self, number: int) -> tuple[int, int, int]:
        """Return (epoch, sub_epoch, step) of a step."""
        if self._plan.remainder == "carry":
            epoch = (self._place + number * self._units_of_step) // self._num_units
        elif number < self._first:
            epoch = self._start.epoch
        else:
            epoch = self._start.epoch + 1 + (number - self._first) // self._each
        stops, left = self._stops(epoch), number - self.before(epoch)
        sub_epoch = bisect_right(stops, left)
        steps = self._plan.steps(epoch, sub_epoch)
        return epoch, sub_epoch, steps[left - (stops[sub_epoch - 1] if sub_epoch else 0)]

    def _stops(self, epoch: int) -> list[int]:
        """Return how many of an epoch's steps there are up to the end of each sub-epoch."""
        kept = self._kept.get(epoch)
        if kept is None:
            finished = self._start.sub_epoch if epoch == self._start.epoch else 0
            parts = range(finished, self._plan.sub_epochs)
            stops = accumulate(len(self._plan.steps(epoch, part)) for part in parts)
            kept = [0] * finished + list(stops)
            self._kept = {epoch: kept}  # one, and never changed: Grain's threads ask at once
        return kept


def product_of(size: Any) -> int | None:
    """Return how many units a batch size means; None where there are phases."""
    nested = size if isinstance(size, tuple) else (size,)
    numbers = [each for each in nested if isinstance(each, int)]
    return math.prod(numbers) if len(numbers) == len(nested) else None  # phases are no numbers
