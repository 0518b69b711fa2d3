"""Which pass comes: by the numbers that users and trainers give, or each after the one before."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Turn:
    """The pass that is set, and whether somebody has named it.

    Passes are numbered through the run: number n is sub-epoch n % S of epoch n // S, since an epoch
    of a trainer is one pass over its loader. What is `named` is never `overruled` too.

    Parameters
    ----------
    number : int
        Of the pass that is set.
    named : bool
        Whether it was named since the last pass began.
    overruled : int or None
        The pass that was named, and then a state was loaded, before one began.
    pinned : bool
        Whether the same pass is read each time, whatever is named.
    """

    number: int
    named: bool = False
    overruled: int | None = None
    pinned: bool = False

    @property
    def asked(self) -> int | None:
        """The pass that was named since the last one began, even if a state has overruled it."""
        return self.number if self.named else self.overruled

    def name(self, number: int) -> None:
        """Set a pass that a user or a trainer names."""
        if not self.pinned:
            self.number = number
        self.named, self.overruled = True, None

    def begin(self) -> None:
        """Forget who has named the pass, as it begins."""
        self.named, self.overruled = False, None

    def load(self, number: int) -> None:
        """Set the pass that a state continues."""
        self.overruled = self.asked
        self.number, self.named = number, False
