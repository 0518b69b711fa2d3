"""A pass that a loop is in, and a batch that a loop has received."""

from __future__ import annotations

from typing import NamedTuple

from indexplan import Plan


class Received(NamedTuple):
    """A batch that a loop received: of which plan and rank, in which pass, and which step."""

    plan: Plan
    rank: int
    where: tuple[int, int]
    step: int


class Pass:
    """One pass over the steps [first, stop) of a sub-epoch, and how far the loop has come in it.

    `step` is the next that the loop has not received; `ahead` counts the batches that a loader has
    drawn for its workers beyond it. A pass is not `counted` where workers draw through another
    object, so that it is unknown how far ahead of the loop they are.
    """

    def __init__(self, number: int, first: int, stop: int) -> None:
        self.number = number
        self.first = first
        self.stop = stop
        self.step = first
        self.ahead = 0
        self.counted = True

    @property
    def finished(self) -> bool:
        """Whether the loop has received all of it, even if it never asks for more."""
        return self.step == self.stop
