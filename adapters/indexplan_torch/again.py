"""Steps that are read several times in a row, and how often the current one has been read."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from indexplan import IndexPlanError, Plan
from indexplan.errors import counted, integer, invalid, shown
from indexplan_torch.arguments import count


def check_again(again: Any, plan: Plan) -> int:
    """Return how often each step is read; refuse it where steps depend on the number of ranks."""
    times: int = integer("again", again, 1, 2**31, "pass how often each step is dealt")
    if times > 1 and plan.global_batch_size is None:
        rule = "1 where a plan has batch_size, as its steps depend on the number of ranks"
        raise invalid("again", rule, times, "make the plan with global_batch_size")
    return times


class Dealt(NamedTuple):
    """How often a run has read its current step: `times` of `again`, 0 < times < again.

    `units` is how many all ranks read in that step, without padding.
    """

    times: int
    again: int
    units: int

    @classmethod
    def of(cls, state: Any) -> Dealt:
        """Return what a state holds."""
        if not isinstance(state, dict) or {*state} != {*cls._fields}:
            cure = "pass what state_dict returned"
            rule = f"a dict of {shown(list(cls._fields))}"
            raise invalid("a state's dealt", rule, state, cure)
        found = cls(**{name: count(f"a state's {name}", state[name]) for name in cls._fields})
        if not 0 < found.times < found.again:
            rule = f"from 1 to {found.again - 1}, as it is dealt {counted(found.again, 'time')}"
            raise invalid("a state's times", rule, found.times, "pass what state_dict returned")
        return found

    def under(self, again: int, units: int) -> int:
        """Return how many times of another `again` come to the same share of the step.

        Raises
        ------
        IndexPlanError
            If that is no whole number, or the step has another number of units now.
        """
        cure = "or a checkpoint that was saved when a step had been dealt for the last time"
        multiple = self.again // math.gcd(self.times, self.again)
        if again % multiple:
            raise invalid(
                "again",
                f"a multiple of {multiple} to resume a step that was dealt {self.times} of "
                f"{counted(self.again, 'time')}",
                again,
                f"use again={self.again}, {cure}",
            )
        if units != self.units:
            raise IndexPlanError(
                "the global batch",
                f"must be {counted(self.units, 'unit')}, as before, to resume a step that was "
                f"dealt {self.times} of {counted(self.again, 'time')}",
                units,
                f"use global_batch_size={self.units}, {cure}",
            )
        return self.times * again // self.again
