"""Passes that the loop leaves in the middle, which no trainer may cut in silence.

If a later pass follows, the rest of the pass that was left is never read: an error, after a resume
in the middle of that pass too. If the same pass starts again, nothing is lost, but some samples are
read twice: a warning, unless `set_epoch` named the pass. A single batch may be drawn to look at the
data, as trainers and people do: no more than a warning, and only if a later pass follows.
`partial=True` says that passes are left on purpose, and turns all of this off.
"""

from __future__ import annotations

import warnings
from typing import Any

from indexplan import IndexPlanError

_CURE = "under Lightning use RefreshStepCounts()"
_INSIDE = (
    "resume from a checkpoint that ModelCheckpoint(every_n_train_steps=...) saved in that epoch"
)
_WHOLE = "combine loaders by mode 'max_size', which reads the longest whole"
_REFRESHED = f"under Lightning {_WHOLE}, or {_INSIDE}"


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
        self._warned = False

    def check(self, left: Any, number: int, sub_epochs: int) -> None:
        """Refuse to continue with pass `number` if the one that the loop left would lose samples.

        Parameters
        ----------
        left : Pass or None
            The pass that the loop was in.
        number : int
            Of the pass that comes.
        sub_epochs : int
            The plan's.
        """
        if left is None or number <= left.number or self._received(left, before=True) <= 1:
            return
        got, cure = "", _REFRESHED if self.refreshed else _CURE
        if left.step == left.first:  # all of it before a resume
            got, cure = "a resume after ", f"read that pass first, by set_epoch({left.number})"
            if self.refreshed:  # Lightning says itself which pass it goes on with
                cure = f"under Lightning {_INSIDE}"
        raise IndexPlanError(
            "a pass",
            "must be read whole before a later one begins",
            f"{got}{left.step} of {left.stop} steps of "
            f"{place_of(left.number, sub_epochs)}, and then "
            f"{place_of(number, sub_epochs)}",
            f"{cure}, or pass partial=True if passes are left on purpose",
        )

    def begin(self, left: Any, number: int, sub_epochs: int, *, named: bool) -> None:
        """Check that pass `number` may begin, and warn if it starts again, but was not named."""
        self.check(left, number, sub_epochs)
        if left is None or self._warned:
            return
        again = number == left.number and not named and self._received(left) > 1
        if again or (number > left.number and self._received(left, before=True)):
            self._warned = True  # one warning is enough
            steps = f"{left.step} of {left.stop}"
            what, cure = "and the rest is never read", "read each pass to its end"
            if again:
                steps = f"{left.step - left.first} of {left.stop - left.first}"
                what = "and starts again from the first"
                cure = "name the pass that comes next with set_epoch"
            warnings.warn(
                f"{place_of(left.number, sub_epochs)}: the loop received {steps} steps, {what}; "
                f"{cure}, or pass partial=True if this is intended",
                stacklevel=4,
            )

    def _received(self, left: Any, *, before: bool = False) -> int:
        """Return how many steps were received of a pass that was left in the middle; else 0.

        With `before`, those that the run received before a resume count too.

        A sampler only knows what was drawn: a pass drawn to its end counts as read.
        """
        meant = self.partial or self.limited
        if meant or left.step + left.ahead >= left.stop:
            return 0
        return int(left.step if before else left.step - left.first)


def place_of(number: int, sub_epochs: int) -> str:
    """Return a pass's epoch and sub-epoch in words."""
    epoch, sub_epoch = divmod(number, sub_epochs)
    return f"epoch {epoch}, sub-epoch {sub_epoch}"


def check_received(begun: Any, step: int, *, ended: bool = False) -> None:
    """Raise if the loop gets more batches than a pass has steps, or fewer when it has ended."""
    if step > begun.stop or (ended and step < begun.stop):
        got = "more" if step > begun.stop else step - begun.first
        raise IndexPlanError(
            "a pass",
            f"must give the loop the {begun.stop - begun.first} batches that the plan "
            "deals to this rank",
            got,
            "remove what changes batches between the plan and the loop, such as a "
            "wrapper that deals the batch sampler out to ranks again",
        )


def check_whole(feed: Any, trainer: str) -> None:
    """Raise if an evaluation under a trainer would read only a part of the data."""
    if feed.plan.sub_epochs > 1:
        raise IndexPlanError(
            "an evaluation's plan",
            f"must have sub_epochs=1 under {trainer}, as each evaluation is one pass",
            f"sub_epochs={feed.plan.sub_epochs}",
            "use plan.replace(sub_epochs=1)",
        )
