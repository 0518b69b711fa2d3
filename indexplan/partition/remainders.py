"""Remainders: what becomes of units that do not fill a global batch; a row for each policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Remainder = Literal["spread", "drop", "pad", "carry"]
"""What becomes of units that do not fill a global batch."""


@dataclass(frozen=True)
class Policy:
    """A policy. Without any of the three, the last steps shrink and every unit is read.

    Parameters
    ----------
    words : str
        What it does, for people.
    leaves : bool
        Whether units that do not fill a step are left unread.
    repeats : bool
        Whether the last step is filled with the sub-epoch's first units.
    crosses : bool
        Whether it is filled with what comes next in the stream: steps go on over sub-epochs and
        epochs, and each belongs to the sub-epoch in which it starts.
    """

    words: str
    leaves: bool = False
    repeats: bool = False
    crosses: bool = False

    @property
    def shrinks(self) -> bool:
        """Whether the last steps have fewer units instead."""
        return not (self.leaves or self.repeats or self.crosses)

    def covered(self, left: int, size: int) -> int:
        """Return how many places the last steps, of `size` at most, cover where `left` are left."""
        if self.leaves:
            return left // size * size
        return -(-left // size) * size if self.repeats or self.crosses else left


REMAINDERS: dict[Remainder, Policy] = {
    "drop": Policy("units that do not fill a global batch are not read", leaves=True),
    "pad": Policy("the sub-epoch's first units fill the last step", repeats=True),
    "spread": Policy("every unit is read once; steps differ by at most one unit"),
    "carry": Policy("the next epoch's first units fill the last step", crosses=True),
}
