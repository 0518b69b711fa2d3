"""What the loop received of a pass, held against the plan, so that no trainer cuts one in silence.

A pass that is left, and followed by a later one, has samples that nobody ever reads: an error. One
that starts again loses none, but reads some twice: a warning, unless `set_epoch` named the pass. A
single batch is a look at the data, as trainers and people take one. Whoever leaves passes on
purpose says so with `partial=True`, and hears nothing.
"""

from __future__ import annotations

import warnings
from typing import Any

from indexplan import IndexPlanError


class Cuts:
    """What a feed knows of the passes that its loop has left.

    Parameters
    ----------
    partial : bool
        Whether passes are left on purpose.
    """

    def __init__(self, partial: bool) -> None:
        self.partial = partial
        self.limited = False  # whether a trainer was told to leave them
        self.named = False  # whether a pass was named since the last one began
        self._warned = False

    def check(self, left: Any, left_at: Any, number: int, at: Any) -> None:
        """Refuse to go on with pass `number`, if the one that the loop has left would lose samples.

        Parameters
        ----------
        left : Pass or None
            The pass that the loop was in.
        left_at, at : (int, int)
            (epoch, sub_epoch) of that pass, and of the one that comes.
        number : int
            Of the pass that comes.
        """
        if left is not None and number > left.number and self._received(left) > 1:
            raise IndexPlanError(
                "a pass must be read whole before a later one begins; got "
                f"{self._received(left)} of {left.stop - left.first} steps of epoch "
                f"{left_at[0]}, sub-epoch {left_at[1]}, and then epoch {at[0]}, sub-epoch {at[1]}; "
                "under Lightning use RefreshStepCounts(), or pass partial=True if passes are left "
                "on purpose"
            )

    def begin(self, left: Any, left_at: Any, number: int, at: Any) -> None:
        """Check that pass `number` may begin, and warn if it starts again."""
        self.check(left, left_at, number, at)
        named, self.named = self.named, False
        if left is None or self._warned or not self._received(left):
            return
        again = number == left.number and not named and self._received(left) > 1
        if again or number > left.number:
            self._warned = True  # the first says it
            what = "and it starts again from its first batch" if again else "and the rest is left"
            warnings.warn(
                f"epoch {left_at[0]}, sub-epoch {left_at[1]}: the loop received "
                f"{self._received(left)} of {left.stop - left.first} steps, {what}; name the pass "
                "that comes next with set_epoch, or pass partial=True if this is meant",
                stacklevel=4,
            )

    def _received(self, left: Any) -> int:
        """Return the steps received of a pass that was left in the middle; 0 if it was not.

        A sampler knows only what was drawn: a pass that was drawn to its end may have been read.
        """
        meant = self.partial or self.limited
        return 0 if meant or left.step + left.ahead >= left.stop else left.step - left.first


def check_received(begun: Any, step: int, *, ended: bool = False) -> None:
    """Refuse to hand out more batches than a pass has steps, and, once it has ended, fewer."""
    if step > begun.stop or (ended and step < begun.stop):
        got = "more" if step > begun.stop else step - begun.first
        raise IndexPlanError(
            f"a pass must give the loop the {begun.stop - begun.first} batches that the plan deals "
            f"to this rank; got {got}; look for what stands between the plan and the loop, such as "
            "a wrapper of the batch sampler that deals it out again"
        )
