"""`indexplan show`: a plan, one of its epochs, a step or a batch."""

from __future__ import annotations

from typing import Any

import indexplan as ip
from indexplan.answers import Answer
from indexplan.cli.common import (
    add_numbers,
    add_plan,
    add_verb,
    check_left_out,
    ledger_named,
    open_plan,
)
from indexplan.errors import IndexPlanError, integer
from indexplan.ledger.ledger import NAME_A_RANK
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
            "indexplan show run.plan --epoch 1 --step 17 --rank 2",
        ),
    )
    first = "; of a step, the first that is stored and not read yet, unless you give one"
    for name, more in {"epoch": first, "sub_epoch": "", "step": "", "rank": ""}.items():
        add_numbers(show, **{name: f"print this {name.replace('_', '-')} only{more}"})
    words = "print the names of a batch's files, and check that the dataset hasn't changed"
    add_plan(show, dataset=words)


def _show_ledger(options: Any, ledger: ip.Ledger) -> Answer:
    """Show a run, or what a step of it, counted from the run's start, read."""
    if options.step is None:
        check_left_out(options, ["rank"], "needs a plan, or --step", options.plan)
        return ledger
    found = ledger.at(options.step)
    if options.rank is None:
        return found
    rank = integer("rank", options.rank, 0, found.plan.world_size or 1, NAME_A_RANK)
    where = {"epoch": found.epoch, "sub_epoch": found.sub_epoch, "step": found.step}
    return show_batch(found.plan, {**where, "rank": rank}, None)


def run(options: Any) -> Answer:
    """Show what the options name."""
    if ledger := ledger_named(options, "epoch", "sub_epoch"):
        return _show_ledger(options, ledger)
    plan, first, stored, dataset = open_plan(options)
    epoch, sub_epoch, step, rank = options.epoch, options.sub_epoch, options.step, options.rank
    if rank is not None and step is None:
        raise IndexPlanError("--rank", "needs --step", None, "give both, or leave --rank out")
    if epoch is None and not sub_epoch is step is None:
        epoch = first
    if rank is not None:
        where = {"epoch": epoch, "sub_epoch": sub_epoch, "step": step, "rank": rank}
        return show_batch(plan, where, dataset)
    if step is not None:
        return show_step(plan, epoch, sub_epoch, step)
    return show_plan(plan, stored, epoch, sub_epoch)
