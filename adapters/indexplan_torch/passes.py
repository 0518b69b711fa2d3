"""A pass that a loop is in, a batch that it has received, and where a run starts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from indexplan import Cursor, Plan


class Received(NamedTuple):
    """A batch that a loop received: its plan and rank, its pass, and its step."""

    plan: Plan
    rank: int
    where: tuple[int, int]
    step: int


@dataclass(eq=False)
class Pass:
    """One pass over the steps [first, stop) of a sub-epoch, and how far the loop has come in it.

    If each step is read several times (`again`), every time counts as a step here. Always
    first <= step <= stop.

    Parameters
    ----------
    number, first, stop : int
        The pass's number in the run, and its steps; these don't change.
    step : int
        The next step that the loop has not received; of a pass that is `drawn`, the next that
        nobody has drawn.
    drawn : bool
        Whether a sampler hands it out by itself, so that nobody knows what the loop has received.
    """

    number: int
    first: int
    stop: int
    step: int = field(init=False)
    drawn: bool = False

    def __post_init__(self) -> None:
        self.step = self.first

    @property
    def finished(self) -> bool:
        """Whether the loop has received all of it, even if it never asks for more."""
        return self.step == self.stop

    @property
    def unread(self) -> bool:
        """Whether the loop has received nothing of it, and there is something to receive."""
        return self.first == self.step < self.stop


@dataclass(frozen=True, eq=False)
class Start:
    """Where a run starts, or resumes from a state.

    Parameters
    ----------
    plan : Plan
        The plan from there.
    saved_in : int or None
        The pass that the loop was in when the state was saved; None without a state.
    unread : bool
        Whether the start is in the middle of a pass that the loop has not continued yet.
    dealt : int
        How many times the first step had been read before.
    """

    plan: Plan
    saved_in: int | None
    unread: bool
    dealt: int = 0

    @classmethod
    def of(cls, plan: Plan, saved_in: int | None = None, dealt: int = 0) -> Start:
        """Return the start of a plan, which may have been resumed from a state."""
        return cls(plan, saved_in, unread=bool(plan.start.step or dealt), dealt=dealt)

    def read(self) -> Start:
        """Return this start after the loop has continued reading."""
        return replace(self, unread=False)

    @cached_property
    def cursor(self) -> Cursor:
        """The plan's start; cached, because it describes the order and a pass asks twenty times."""
        return self.plan.start

    @property
    def number(self) -> int:
        """The number of the pass that the start is in."""
        return self.cursor.epoch * self.plan.sub_epochs + self.cursor.sub_epoch

    def over(self, number: int) -> bool:
        """Return whether a pass was over when the run was saved, with nothing left to read.

        These are the earlier passes of the epoch in which the state was saved, and the state's own
        pass if that was at its end: a loop may start again with the epoch that it was stopped in.
        Passes of earlier epochs can't be read.
        """
        last = self.number if self.cursor.step or self.dealt else self.number - 1
        if self.saved_in is not None:
            last = min(last, self.saved_in)
        return last - last % self.plan.sub_epochs <= number < self.number
