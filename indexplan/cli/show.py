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
    show = add_verb(
        verbs,
        "show",
        run,
        "print a plan, an epoch, a step or a batch",
        examples=(
            "indexplan show run.plan",
            "indexplan show run.plan --epoch 0 --step 17 --rank 2",
        ),
    )
    add_plan_or_spec(show)
    add_columns(show)
    for name in ("epoch", "sub-epoch", "step", "rank"):
        show.add_argument(f"--{name}", type=number, metavar="N", help=f"print this {name} only")
    add_dataset(
        show, "print the names of a batch's files, and check that the dataset hasn't changed"
    )
    add_world_size(show)


def run(options: Any) -> int:
    """Show what the options name."""
    plan, manifest, dataset = open_plan(options)
    for name, others in {
        "sub_epoch": ["epoch"],
        "rank": ["epoch", "step"],
        "step": ["epoch"],
    }.items():
        missing = [f"--{each}" for each in others if getattr(options, each) is None]
        if getattr(options, name) is not None and missing:
            option = f"--{name.replace('_', '-')}"
            needed, how_many = " and ".join(missing), ("both", "all three")[len(missing) - 1]
            cure = f"give {how_many}, or leave {option} out"
            raise IndexPlanError(option, f"needs {needed}", None, cure)
    epoch, sub_epoch, step, rank = options.epoch, options.sub_epoch, options.step, options.rank
    if rank is not None:
        where = {"epoch": epoch, "sub_epoch": sub_epoch, "step": step, "rank": rank}
        shown = show_batch(plan, where, dataset)
    elif step is not None:
        shown = show_step(plan, epoch, sub_epoch, step)
    else:
        shown = show_plan(plan, manifest, epoch, sub_epoch, options.plan, options.columns)
    if manifest is not None and epoch is not None and epoch not in manifest.build.epochs:
        stored = manifest.build.epochs
        there = f"{counted(len(stored), 'epoch')}, {between(min(stored), max(stored))}"
        words = f"epoch {epoch} is not stored, but computed from the order; stored: {there}"
        shown = Shown({**shown.data, "stored": False}, f"{shown.words}\n\n{words}")
    emit(options, shown)
    return OK
