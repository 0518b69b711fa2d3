"""Passes that the loop leaves in the middle, so that no trainer cuts one in silence.

If a later pass follows, the rest of the pass that was left is never read: an error. If the same
pass starts again, nothing is lost, but some samples are read twice: a warning, unless `set_epoch`
named the pass. A single batch may be drawn to look at the data, as trainers and people do: no more
than a warning, and only if a later pass follows. `partial=True` says that passes are left on
purpose, and turns all of this off.
"""

from __future__ import annotations

import warnings
from typing import Any

from indexplan import IndexPlanError

_CURE = "under Lightning use RefreshStepCounts()"
_REFRESHED = (
    "under Lightning combine loaders by mode 'max_size', which reads the longest whole, and go on "
    "with a training that max_steps ended by ckpt_path"
)


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
        self.refreshed = False  # whether Lightning counts the steps of every pass
        self.named = False  # whether a pass was named since the last one began
        self._warned = False

    def check(self, left: Any, left_at: Any, number: int, at: Any) -> None:
        """Refuse to go on with pass `number` if the pass that the loop has left would lose samples.

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
                f"{_REFRESHED if self.refreshed else _CURE}, or pass partial=True if passes are "
                "left on purpose"
            )

    def begin(self, left: Any, left_at: Any, number: int, at: Any) -> None:
        """Check that pass `number` may begin, and warn if it starts again."""
        self.check(left, left_at, number, at)
        named, self.named = self.named, False
        if left is None or self._warned or not self._received(left):
            return
        again = number == left.number and not named and self._received(left) > 1
        if again or number > left.number:
            self._warned = True  # one warning is enough
            what, cure = "and the rest is never read", "read each pass to its end"
            if again:
                what = "and starts again from the first"
                cure = "name the pass that comes next with set_epoch"
            warnings.warn(
                f"epoch {left_at[0]}, sub-epoch {left_at[1]}: the loop received "
                f"{self._received(left)} of {left.stop - left.first} steps, {what}; {cure}, or "
                "pass partial=True if this is intended",
                stacklevel=4,
            )

    def _received(self, left: Any) -> int:
        """Return how many steps were received of a pass that was left in the middle; else 0.

        A sampler only knows what was drawn: a pass drawn to its end counts as read.
        """
        meant = self.partial or self.limited
        return 0 if meant or left.step + left.ahead >= left.stop else left.step - left.first


def check_received(begun: Any, step: int, *, ended: bool = False) -> None:
    """Raise if the loop gets more batches than a pass has steps, or fewer when it has ended."""
    if step > begun.stop or (ended and step < begun.stop):
        got = "more" if step > begun.stop else step - begun.first
        raise IndexPlanError(
            f"a pass must give the loop the {begun.stop - begun.first} batches that the plan deals "
            f"to this rank; got {got}; remove what changes batches between the plan and the loop, "
            "such as a wrapper that deals the batch sampler out to ranks again"
        )
