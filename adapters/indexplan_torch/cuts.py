"""Passes that the loop leaves in the middle, which no trainer may cut in silence.

One rule holds for plain loops and all trainers. The rest of a pass is lost when a later pass
follows: an error, after a resume in the middle of that pass too. If the user limits a trainer's
passes, each of them ends early, so one message says how many samples are never read instead.
Drawing a single batch to look at the data, as trainers and people do, is only a warning if a later
pass follows. If the same pass starts again, nothing is lost yet, but some samples are read twice:
a warning, unless `set_epoch` named the pass. `partial=True` says that passes are left on purpose,
and turns all of this off.
"""

from __future__ import annotations

import warnings
from typing import Any

from indexplan import IndexPlanError
from indexplan.errors import counted

_CURE = "under Lightning use RefreshStepCounts(), under Composer KeepState()"
_INSIDE = (
    "resume from a checkpoint that ModelCheckpoint(every_n_train_steps=...) saved in that epoch"
)
_WHOLE = "combine loaders by mode 'max_size', which reads the longest whole"
_REFRESHED = f"under Lightning {_WHOLE}, or {_INSIDE}"
PADDED = (
    ", or remainder='pad' without evaluation=True, and the loader of "
    "indexplan_torch.accelerate.prepare, under which gather_for_metrics leaves padding out"
)
_MEANT = "pass partial=True if this is intended"


def check_left(run: Any, number: int) -> None:
    """Refuse to continue with pass `number` if the one that the loop left would lose samples."""
    left = run.left
    if left is None or number <= left.number or not _received(run, left, before=True):
        return
    sub_epochs = run.plan.sub_epochs
    if _limited(run, left):
        num_read, num_lost = _samples(run, left)
        _warn(
            run,
            f"{pass_in_words(left.number, sub_epochs)}: the trainer's limit ends each pass after "
            f"{left.step} of {left.steps.stop} steps, so {num_lost:,} of its "
            f"{counted(num_read + num_lost, 'sample')} are never read; "
            f"{_epochs(run, num_read)}without a limit, or {_MEANT}",
            "limit",
        )
        return
    if left.step <= 1:
        return
    got, refreshed = "", run.given.limit is not None
    if left.step == left.steps.start:  # all of it before a resume
        got, cure = "a resume after ", f"read that pass first, by set_epoch({left.number})"
        if refreshed:  # Lightning says itself which pass it goes on with
            cure = f"under Lightning {_INSIDE}"
    elif refreshed:
        cure = _REFRESHED
    else:
        cure = f"{_epochs(run, _samples(run, left)[0])}{_CURE}"
    raise IndexPlanError(
        "a pass",
        "must be read whole before a later one begins",
        f"{got}{left.step} of {left.steps.stop} steps of "
        f"{pass_in_words(left.number, sub_epochs)}, and then "
        f"{pass_in_words(number, sub_epochs)}",
        f"{cure}, or pass partial=True if passes are left on purpose",
    )


def warn_of_left(run: Any, number: int) -> None:
    """Check that pass `number` may begin, and warn if it starts again, but was not named."""
    check_left(run, number)
    left = run.left
    if left is None or _limited(run, left):
        return
    again = number == left.number and not run.named and _received(run, left) > 1
    if again or (number > left.number and _received(run, left, before=True)):
        num_read, num_lost = _samples(run, left)
        steps = f"{left.step} of {left.steps.stop}"
        what = f"and {num_lost:,} of its {counted(num_read + num_lost, 'sample')} are never read"
        cure = "read each pass to its end"
        if again:
            steps = f"{left.step - left.steps.start} of {len(left.steps)}"
            what = "and starts again from the first"
            cure = "name the pass that comes next with set_epoch"
        _warn(
            run,
            f"{pass_in_words(left.number, run.plan.sub_epochs)}: left after {steps} steps, {what}; "
            f"{cure}, {_epochs(run, num_read)}or {_MEANT}",
            "left",
        )


def _warn(run: Any, message: str, kind: str) -> None:
    if kind not in run.warned:
        run.warned.add(kind)
        warnings.warn(message, stacklevel=6)


def _limited(run: Any, left: Any) -> bool:
    """Return whether a pass was left where a trainer's limit ends it."""
    limit = run.given.limit
    if limit is None:
        return False
    limit = limit if isinstance(limit, int) else int(left.steps.stop * limit)
    return bool(left.step >= limit)


def _received(run: Any, left: Any, *, before: bool = False) -> int:
    """Return how many steps were received of a pass that was left in the middle; else 0.

    With `before`, those that the run received before a resume count too.

    A sampler only knows what was drawn: a pass drawn to its end counts as read.
    """
    if run.given.partial or left.finished:
        return 0
    return int(left.step if before else left.step - left.steps.start)


def _samples(run: Any, left: Any) -> tuple[int, int]:
    """Return how many samples, or bins, all ranks have read of a pass, and how many not."""
    plan, _ = run.running()
    where = divmod(left.number, plan.sub_epochs)
    cursor = plan.cursor(*where, step=run.plan_step(left.number, left.step))
    account = plan.replace(world_size=plan.world_size).resume(cursor).account(*where)
    return account.num_finished, account.num_read


def _epochs(run: Any, num_samples: int) -> str:
    """Return the cure that reads so many samples in each pass and loses none, if there is one."""
    if not run.plan.order.constant_num_units:
        return ""
    return f"use ip.Epochs(order, {num_samples}), whose epochs have so many and lose none, "


def pass_in_words(number: int, sub_epochs: int) -> str:
    """Return a pass's epoch and sub-epoch in words."""
    epoch, sub_epoch = divmod(number, sub_epochs)
    return f"epoch {epoch}, sub-epoch {sub_epoch}"


def check_received(begun: Any, step: int, *, ended: bool = False) -> None:
    """Raise if the loop gets more batches than a pass has steps, or fewer when it has ended."""
    steps = begun.steps
    if step > steps.stop or (ended and step < steps.stop):
        got = "more" if step > steps.stop else step - steps.start
        raise IndexPlanError(
            "a pass",
            f"must give the loop the {len(steps)} batches that the plan deals to this rank",
            got,
            "remove what changes batches between the plan and the loop, such as a "
            "wrapper that deals the batch sampler out to ranks again",
        )


def check_together(run: Any, trainer: str, or_else: str = PADDED) -> None:
    """Raise if ranks would have different numbers of batches under a trainer that gathers each."""
    plan, _ = run.running()
    account = plan.account(*run.where)
    if run.given.evaluation and account.num_steps and not account.min_batch_size:
        raise IndexPlanError(
            "an evaluation's ranks",
            f"must have equally many batches under {trainer}, which gathers after each",
            f"evaluation=True, and steps of fewer than world_size={plan.world_size} units",
            f"use a larger batch size{or_else}",
        )


def check_whole(run: Any, trainer: str) -> None:
    """Raise if an evaluation under a trainer would read only a part of the data."""
    if run.plan.sub_epochs > 1:
        raise IndexPlanError(
            "an evaluation's plan",
            f"must have sub_epochs=1 under {trainer}, as each evaluation is one pass",
            f"sub_epochs={run.plan.sub_epochs}",
            "use plan.replace(sub_epochs=1)",
        )
