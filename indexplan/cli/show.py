"""`indexplan show`: a plan, one of its epochs, a step or a batch."""

from __future__ import annotations

from typing import Any

from indexplan.answers import Shown
from indexplan.cli.common import (
    OK,
    add_columns,
    add_dataset,
    add_most_epochs,
    add_plan_or_spec,
    add_verb,
    add_world_size,
    check_left_out,
    emit,
    first_epoch,
    number,
    open_plan,
)
from indexplan.cli.ledger import ANSWERS
from indexplan.cli.mistaken import is_ledger
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
            "indexplan show mixed.plan --stop 10_000_000 --most-epochs 4",
        ),
    )
    add_plan_or_spec(show)
    add_columns(show)
    first = "; of a step, the first that is stored and not read yet, unless you give one"
    for name, more in {"epoch": first, "sub-epoch": "", "step": "", "rank": ""}.items():
        words = f"print this {name} only{more}"
        show.add_argument(f"--{name}", type=number, metavar="N", help=words)
    words = "count what is read of each class or source from this unit of the run on"
    show.add_argument("--start", type=number, metavar="N", help=words)
    show.add_argument("--stop", type=number, metavar="N", help="count it up to this unit")
    add_most_epochs(show)
    add_dataset(
        show, "print the names of a batch's files, and check that the dataset hasn't changed"
    )
    add_world_size(show)


OF_PLANS = (
    *("columns", "epoch", "sub_epoch", "start", "stop", "most_epochs"),
    *("dataset", "pattern", "shards", "world_size"),
)


def _show_ledger(options: Any) -> int:
    """Show a run, or what a step of it, counted from the run's start, read."""
    check_left_out(options, OF_PLANS, "needs a plan", options.plan)
    if options.step is None:
        check_left_out(options, ["rank"], "needs a plan, or --step", options.plan)
    options.ledger, options.what = options.plan, options.step
    return ANSWERS["show" if options.step is None else "at"](options)


def run(options: Any) -> int:
    """Show what the options name."""
    if is_ledger(options.plan):
        return _show_ledger(options)
    plan, stored, dataset = open_plan(options)
    epoch, sub_epoch, step, rank = options.epoch, options.sub_epoch, options.step, options.rank
    if rank is not None and step is None:
        raise IndexPlanError("--rank", "needs --step", None, "give both, or leave --rank out")
    if epoch is None and not sub_epoch is step is None:
        epoch = first_epoch(plan, stored)
    counting = {name: getattr(options, name) for name in ("start", "stop", "most_epochs")}
    for name, value in counting.items():
        other = "step" if step is not None else "epoch"
        if value is not None and (other == "step" or (epoch is not None and name != "most_epochs")):
            option = f"--{name.replace('_', '-')}"
            cure = "leave one of them out"
            raise IndexPlanError(option, f"must go without --{other}", None, cure)
    if rank is not None:
        where = {"epoch": epoch, "sub_epoch": sub_epoch, "step": step, "rank": rank}
        shown = show_batch(plan, where, dataset)
    elif step is not None:
        shown = show_step(plan, epoch, sub_epoch, step)
    else:
        given = options.plan, options.columns, counting
        shown = show_plan(plan, stored, epoch, sub_epoch, *given)
    if stored is not None and epoch is not None and epoch not in stored.build.epochs:
        epochs = stored.build.epochs
        there = f"{counted(len(epochs), 'epoch')}, {between(min(epochs), max(epochs))}"
        words = f"epoch {epoch} is not stored, but computed from the order; stored: {there}"
        shown = Shown({**shown.data, "stored": False}, f"{shown.words}\n\n{words}")
    emit(options, shown)
    return OK
