"""Passes that the loop leaves in the middle, which no trainer may cut in silence.

One rule holds for plain loops and all trainers. The rest of a pass is lost when a later pass
follows: an error, after a resume in the middle of that pass too. Where a trainer was given a limit
on purpose, it cuts each pass there, so that is told once instead, with how many samples are never
read. A single batch may be drawn to look at the data, as trainers and people do: a warning, if a
later pass follows. If the same pass starts again, nothing is lost yet, but some samples are read
twice: a warning, unless `set_epoch` named the pass.
`partial=True` says that passes are left on purpose, and turns all of this off.
"""

from __future__ import annotations

import warnings
from typing import Any

from indexplan import IndexPlanError
from indexplan.errors import counted

_CURE = "under Lightning use RefreshStepCounts()"
_INSIDE = (
    "resume from a checkpoint that ModelCheckpoint(every_n_train_steps=...) saved in that epoch"
)
_WHOLE = "combine loaders by mode 'max_size', which reads the longest whole"
_REFRESHED = f"under Lightning {_WHOLE}, or {_INSIDE}"
_MEANT = "pass partial=True if this is intended"


class Cuts:
    """What a feed knows of the passes that its loop has left.

    Parameters
    ----------
    partial : bool
        Whether passes are left on purpose.
    """

    def __init__(self, partial: bool) -> None:
        self.partial = partial
        self.limit: float | None = None  # after which a trainer leaves each: steps, or a share
        self.refreshed = False  # whether Lightning counts the steps of every pass
        self._told: set[str] = set()  # one warning of each kind is enough

    def check(self, feed: Any, left: Any, number: int) -> None:
        """Refuse to continue with pass `number` if the one that the loop left would lose samples.

        Parameters
        ----------
        feed : Feed
        left : Pass or None
            The pass that the loop was in.
        number : int
            Of the pass that comes.
        """
        if left is None or number <= left.number or not self._received(left, before=True):
            return
        sub_epochs = feed.plan.sub_epochs
        if self._limited(left):
            num_read, num_lost = _samples(feed, left)
            self._warn(
                f"{place_of(left.number, sub_epochs)}: the trainer's limit ends each pass after "
                f"{left.step} of {left.stop} steps, so {num_lost:,} of its "
                f"{counted(num_read + num_lost, 'sample')} are never read; "
                f"{_epochs(feed, num_read)}without a limit, or {_MEANT}",
                "limit",
            )
            return
        if left.step <= 1:
            return
        got = ""
        if left.step == left.first:  # all of it before a resume
            got, cure = "a resume after ", f"read that pass first, by set_epoch({left.number})"
            if self.refreshed:  # Lightning says itself which pass it goes on with
                cure = f"under Lightning {_INSIDE}"
        elif self.refreshed:
            cure = _REFRESHED
        else:
            cure = f"{_epochs(feed, _samples(feed, left)[0])}{_CURE}"
        raise IndexPlanError(
            "a pass",
            "must be read whole before a later one begins",
            f"{got}{left.step} of {left.stop} steps of "
            f"{place_of(left.number, sub_epochs)}, and then "
            f"{place_of(number, sub_epochs)}",
            f"{cure}, or pass partial=True if passes are left on purpose",
        )

    def begin(self, feed: Any, left: Any, number: int, *, named: bool) -> None:
        """Check that pass `number` may begin, and warn if it starts again, but was not named."""
        self.check(feed, left, number)
        if left is None or self._limited(left):
            return
        again = number == left.number and not named and self._received(left) > 1
        if again or (number > left.number and self._received(left, before=True)):
            num_read, num_lost = _samples(feed, left)
            steps = f"{left.step} of {left.stop}"
            what = (
                f"and {num_lost:,} of its {counted(num_read + num_lost, 'sample')} are never read"
            )
            cure = "read each pass to its end"
            if again:
                steps = f"{left.step - left.first} of {left.stop - left.first}"
                what = "and starts again from the first"
                cure = "name the pass that comes next with set_epoch"
            self._warn(
                f"{place_of(left.number, feed.plan.sub_epochs)}: left after {steps} steps, {what}; "
                f"{cure}, {_epochs(feed, num_read)}or {_MEANT}",
                "left",
            )

    def _warn(self, message: str, kind: str) -> None:
        if kind not in self._told:
            self._told.add(kind)
            warnings.warn(message, stacklevel=6)

    def _limited(self, left: Any) -> bool:
        """Return whether a pass was left where a trainer's limit ends it."""
        if self.limit is None:
            return False
        limit = self.limit if isinstance(self.limit, int) else int(left.stop * self.limit)
        return bool(left.step >= limit)

    def _received(self, left: Any, *, before: bool = False) -> int:
        """Return how many steps were received of a pass that was left in the middle; else 0.

        With `before`, those that the run received before a resume count too.

        A sampler only knows what was drawn: a pass drawn to its end counts as read.
        """
        if self.partial or left.step >= left.stop:
            return 0
        return int(left.step if before else left.step - left.first)


def _samples(feed: Any, left: Any) -> tuple[int, int]:
    """Return how many samples, or bins, all ranks have read of a pass, and how many not."""
    plan, _ = feed.running()
    where = divmod(left.number, plan.sub_epochs)
    cursor = plan.cursor(*where, step=left.step // feed.given.again)
    account = plan.replace(world_size=plan.world_size).resume(cursor).account(*where)
    return account.num_finished, account.num_read


def _epochs(feed: Any, num_samples: int) -> str:
    """Return the cure that reads so many samples in each pass and loses none, if there is one."""
    if not feed.plan.order.constant_num_units:
        return ""
    return f"use ip.Epochs(order, {num_samples}), whose epochs have so many and lose none, "


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
