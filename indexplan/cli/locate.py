"""`indexplan locate`: which step and rank of a plan read a sample, or which of a run did."""

from __future__ import annotations

from typing import Any

from indexplan.answers import Shown
from indexplan.cli.common import (
    OK,
    add_columns,
    add_dataset,
    add_plan_or_spec,
    add_verb,
    add_world_size,
    check_left_out,
    emit,
    first_epoch,
    number,
    open_plan,
)
from indexplan.cli.ledger import open_ledger, reads_of
from indexplan.cli.mistaken import is_ledger


def add(verbs: Any) -> None:
    """Add the verb."""
    locate = add_verb(
        verbs,
        "locate",
        run,
        "find the step and the rank that read a sample",
        examples=(
            "indexplan locate run.plan --index 4711",
            "indexplan locate run.plan --index 4711 --epoch 3 --world-size 16 --json",
        ),
    )
    add_plan_or_spec(locate)
    add_columns(locate)
    locate.add_argument("--index", type=number, required=True, metavar="N", help="the sample")
    words = "which epoch (the first that is stored and not read yet)"
    locate.add_argument("--epoch", type=number, metavar="N", help=words)
    add_dataset(locate, "check that the dataset hasn't changed")
    add_world_size(locate)


def run(options: Any) -> int:
    """Locate the sample."""
    if is_ledger(options.plan):
        of_plans = ("columns", "epoch", "dataset", "pattern", "shards", "world_size")
        check_left_out(options, of_plans, "needs a plan", options.plan)
        emit(options, reads_of(open_ledger(options.plan), options.index))
        return OK
    plan, stored, _ = open_plan(options)
    epoch = first_epoch(plan, stored) if options.epoch is None else options.epoch
    where = plan.locate(options.index, epoch)
    if where.step < 0:
        words = f"no step reads sample {options.index} in epoch {epoch}"
    else:
        words = (
            f"epoch {where.epoch}, sub-epoch {where.sub_epoch}, step {where.step}, "
            f"rank {where.rank}, slot {where.slot}"
        )
    emit(options, Shown(where._asdict(), words))
    return OK
