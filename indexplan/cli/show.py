"""`indexplan show`: a plan, one of its epochs, a step or a batch."""

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
    number,
    open_plan,
)
from indexplan.errors import IndexPlanError, counted
from indexplan.partition.account import between
from indexplan.reports.show import show_batch, show_plan, show_step


def add(verbs: Any) -> None:
    """Add the verb."""
    show = add_verb(verbs, "show", run, "show a plan, one of its epochs, a step or a batch")
    add_plan_or_spec(show)
    add_columns(show)
    for name in ("epoch", "sub-epoch", "step", "rank"):
        show.add_argument(f"--{name}", type=number, metavar="N", help=f"show this {name} only")
    add_dataset(show, "show the file names of a batch, and check that the dataset has not changed")
    add_world_size(show)


def run(options: Any) -> int:
    """Show what the options name."""
    plan, manifest, dataset = open_plan(options)
    needed = [("sub_epoch", "epoch"), ("step", "epoch"), ("rank", "step")]
    for name, other in needed:
        if getattr(options, name) is not None and getattr(options, other) is None:
            option = f"--{name.replace('_', '-')}"
            raise IndexPlanError(
                option, f"needs --{other}", None, f"give both, or leave {option} out"
            )
    epoch, sub_epoch, step, rank = options.epoch, options.sub_epoch, options.step, options.rank
    if rank is not None:
        where = {"epoch": epoch, "sub_epoch": sub_epoch, "step": step, "rank": rank}
        shown = show_batch(plan, where, dataset)
    elif step is not None:
        shown = show_step(plan, epoch, sub_epoch, step)
    else:
        shown = show_plan(plan, manifest, epoch, sub_epoch, options.plan)
    if manifest is not None and epoch is not None and epoch not in manifest.build.epochs:
        stored = manifest.build.epochs
        there = f"{counted(len(stored), 'epoch')}, {between(min(stored), max(stored))}"
        words = f"epoch {epoch} is not stored, but computed from the order; stored: {there}"
        shown = Shown({**shown.data, "stored": False}, f"{shown.words}\n\n{words}")
    emit(options, shown)
    return OK
