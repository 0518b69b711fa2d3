"""Remainders: what happens to units that do not fill a global batch; one entry per policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Remainder = Literal["spread", "drop", "pad", "carry"]
"""What happens to units that do not fill a global batch."""


@dataclass(frozen=True)
class Policy:
    """A policy. If none of the three is true, the last steps are smaller and every unit is read.

    Parameters
    ----------
    words : str
        What it does, as text for people.
    leaves : bool
        Whether units that do not fill a step are left unread.
    repeats : bool
        Whether the last step is filled with the sub-epoch's first units.
    crosses : bool
        Whether the last step is filled with the next units of the stream: steps then run through
        the ends of sub-epochs and epochs, and each belongs to the sub-epoch in which it starts.
    """

    words: str
    leaves: bool = False
    repeats: bool = False
    crosses: bool = False

    @property
    def exact(self) -> bool:
        """Whether a run reads every place once."""
        return not (self.leaves or self.repeats)

    def lengths(self, left: int, size: int) -> tuple[int, ...]:
        """Return how many of the `left` places the last steps, of at most `size`, cover.

        Each number is of steps that are as equal as can be.
        """
        if self.leaves:
            return (left // size * size,)
        return (-(-left // size) * size,) if self.repeats or self.crosses else (left,)


REMAINDERS: dict[Remainder, Policy] = {
    "drop": Policy("units that do not fill a global batch are not read", leaves=True),
    "pad": Policy("the sub-epoch's first units fill the last step", repeats=True),
    "spread": Policy("every unit is read once; batches may be one smaller"),
    "carry": Policy("the next epoch's first units fill the last step", crosses=True),
}
