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


def check_left(run: Any, number: int, *, begins: bool = False) -> None:
    """Refuse to continue with pass `number` if the one that the loop left would lose samples.

    Steps that the run received before a resume count too. A sampler only knows what was drawn: a
    pass drawn to its end counts as read. If the pass `begins`, a look at another, and one that
    starts again but was not named, are warnings.
    """
    left = run.left
    if left is None or not (begins or number > left.number):
        return  # as in a loop that asks for its cursor after each step
    if left.finished or run.given.partial:
        return
    in_words, stop = pass_in_words(left.number, run.plan.sub_epochs), left.steps.stop
    received, limit = left.step - left.steps.start, _limit(run, stop)
    later, limited = number > left.number and left.step > 0, left.step >= limit
    again = number == left.number and not run.named and received > 1
    if later and limited:
        num_read, num_lost = _samples(run, left)
        _warn(
            run,
            f"{in_words}: the trainer's limit ends each pass after {left.step} of {stop} steps, so "
            f"{num_lost:,} of its {counted(num_read + num_lost, 'sample')} are never read; "
            f"{_epochs(run, num_read)}without a limit, or {_MEANT}",
            "limit",
        )
    elif later and left.step > 1:
        got, refreshed = "", run.given.limit is not None
        if not received:  # all of it before a resume
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
            f"{got}{left.step} of {stop} steps of {in_words}, and then "
            f"{pass_in_words(number, run.plan.sub_epochs)}",
            f"{cure}, or pass partial=True if passes are left on purpose",
        )
    elif begins and (later or again) and not limited:
        num_read, num_lost = _samples(run, left)
        if again:
            steps = f"{received} of {len(left.steps)}"
            what = "starts again from the first; name the pass that comes next with set_epoch"
        else:
            steps, num_samples = f"{left.step} of {stop}", counted(num_read + num_lost, "sample")
            what = f"{num_lost:,} of its {num_samples} are never read; read each pass to its end"
        _warn(
            run,
            f"{in_words}: left after {steps} steps, and {what}, "
            f"{_epochs(run, num_read)}or {_MEANT}",
            "left",
        )


def _warn(run: Any, message: str, kind: str) -> None:
    if kind not in run.warned:
        run.warned.add(kind)
        warnings.warn(message, stacklevel=6)  # the loop that begins a pass, or asks for a state


def _limit(run: Any, num_steps: int) -> float:
    """Return after how many steps a trainer ends each pass of so many; inf without a limit."""
    limit = run.given.limit
    if limit is None:
        return float("inf")
    return limit if isinstance(limit, int) else int(num_steps * limit)


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
