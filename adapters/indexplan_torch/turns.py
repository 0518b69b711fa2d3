"""Which pass comes: by the numbers that users and trainers give, or each after the one before."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Turn:
    """The pass that is set, and whether somebody has named it.

    Passes are numbered through the run: number n is sub-epoch n % S of epoch n // S, since an epoch
    of a trainer is one pass over its loader.

    Parameters
    ----------
    number : int
        Of the pass that is set.
    named : bool
        Whether it was named since the last pass began.
    by_user : bool
        Whether a user has named it, and not a trainer.
    by_user : bool
        Whether a user has named it, and not a trainer.
    pinned : bool
        Whether the same pass is read each time, whatever is named.
    told : int or None
        The number that a trainer gave last; None before its first, and after a state is loaded.
    """

    number: int
    named: bool = False
    by_user: bool = False
    pinned: bool = False
    told: int | None = None

    def name(self, number: int, *, by_user: bool) -> None:
        """Set a pass that a user or a trainer names."""
        if not self.pinned:
            self.number = number
        self.named, self.by_user = True, by_user

    def load(self, number: int) -> None:
        """Set the pass that a state continues."""
        self.number, self.named = number, False
