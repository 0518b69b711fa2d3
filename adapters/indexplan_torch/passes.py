"""A pass that a loop is in, a batch that it has received, and where a run starts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from indexplan import Cursor, Plan


class Received(NamedTuple):
    """A batch that a loop received: of which plan and rank, in which pass, and which step."""

    plan: Plan
    rank: int
    where: tuple[int, int]
    step: int


@dataclass(eq=False)
class Pass:
    """One pass over the steps [first, stop) of a sub-epoch, and how far the loop has come in it.

    Where each step is dealt several times, every time counts as a step here.

    first <= step <= step + ahead <= stop at all times.

    Parameters
    ----------
    number, first, stop : int
        Which pass, counted through the run, and its steps; these stay.
    step : int
        The next that the loop has not received.
    ahead : int
        How many batches a loader has drawn for its workers beyond it.
    counted : bool
        Whether that is known; it is not where workers draw through another object.
    handed : bool
        Whether a loader has begun it, and counts it, for its sampler to draw.
    again : bool
        Whether torchdata, which drops what is left of it, begins it once more, as it is named.
    """

    number: int
    first: int
    stop: int
    step: int = field(init=False)
    ahead: int = 0
    counted: bool = True
    handed: bool = False
    again: bool = False

    def __post_init__(self) -> None:
        self.step = self.first

    @property
    def finished(self) -> bool:
        """Whether the loop has received all of it, even if it never asks for more."""
        return self.step == self.stop


@dataclass(frozen=True, eq=False)
class Start:
    """Where a run starts, or goes on from a state.

    Parameters
    ----------
    plan : Plan
        From there on.
    saved_in : int or None
        The pass that the loop was in when the state was saved; None without a state.
    unread : bool
        Whether it is in the middle of a pass, which the loop has not read on since.
    dealt : int
        How often the step that it starts with had been dealt before.
    """

    plan: Plan
    saved_in: int | None
    unread: bool
    dealt: int = 0

    @classmethod
    def of(cls, plan: Plan, saved_in: int | None = None, dealt: int = 0) -> Start:
        """Return the start of a plan, or of one that was resumed from a state."""
        return cls(plan, saved_in, unread=bool(plan.start.step or dealt), dealt=dealt)

    def read(self) -> Start:
        """Return it when the loop has read on."""
        return replace(self, unread=False)

    @cached_property
    def cursor(self) -> Cursor:
        """The plan's start, kept, as a pass asks twenty times, and each describes the order."""
        return self.plan.start

    @property
    def number(self) -> int:
        """The pass that it is in."""
        return self.cursor.epoch * self.plan.sub_epochs + self.cursor.sub_epoch

    def over(self, number: int) -> bool:
        """Return whether a pass was over when the run was saved, so that nothing of it is left.

        These are the passes before the one that the state was saved in, of the same epoch, and that
        one too if it was at its end: a loop may start again with the epoch that it was stopped in.
        Passes of earlier epochs cannot be read.
        """
        last = self.number if self.cursor.step or self.dealt else self.number - 1
        if self.saved_in is not None:
            last = min(last, self.saved_in)
        return last - last % self.plan.sub_epochs <= number < self.number
