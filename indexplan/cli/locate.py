"""`indexplan locate`: which step and rank read a sample."""

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
    emit,
    first_epoch,
    number,
    open_plan,
)


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
