"""`indexplan diff`: what a change of a plan does to the data order, or where two runs part."""

from __future__ import annotations

import argparse
from typing import Any

import indexplan as ip
from indexplan.cli.common import (
    OF_PLANS,
    add_numbers,
    add_plan,
    add_verb,
    check_left_out,
    epochs_of,
    is_ledger,
    number,
    open_either,
    open_ledger,
)
from indexplan.errors import IndexPlanError, PlanFileError


def add(verbs: Any) -> None:
    """Add the verb."""
    diff = add_verb(
        verbs,
        "diff",
        run,
        "find the first step at which two plans or runs differ",
        examples=(
            "indexplan diff run.plan other.plan",
            "indexplan diff run.plan run.plan --world-size 4,8",
        ),
        more="Find the first step at which two plans read different samples, or the same samples "
        "on different ranks. Of ledgers, find where runs part, from each other or from a plan.",
    )
    add_plan(diff, names="a b")
    words = "how many epochs to look at, starting with epoch 0 (those in which the plans can "
    add_numbers(diff, epochs=words + "start to differ)")
    words = "how many ranks, in place of the plans' numbers; two numbers are those of A and B"
    diff.add_argument("--world-size", type=one_or_two, metavar="N[,N]", help=words)
    words = "exit with 1 if they differ, as git does, and with 2 if they can't be compared"
    diff.add_argument("--exit-code", action="store_true", help=words)


def one_or_two(text: str) -> tuple[int, int]:
    """Read a number for both sides, or one for each."""
    numbers = [number(each) for each in text.split(",")]
    if len(numbers) > 2:
        raise argparse.ArgumentTypeError(f"must be one or two numbers; got {text!r}")
    return numbers[0], numbers[-1]


def run(options: Any) -> ip.types.Difference:
    """Compare them; a difference is an answer, and no failure unless the exit code shall say so."""
    try:
        return _compared(options)
    except PlanFileError as error:
        if not options.exit_code:
            raise
        raise IndexPlanError(error.what, error.rule, error.got, error.cure) from error


def _compared(options: Any) -> ip.types.Difference:
    runs = [is_ledger(path) for path in (options.a, options.b)]
    if any(runs):
        names = ("epochs", *OF_PLANS) if all(runs) else ("epochs",)
        got = "two ledgers" if all(runs) else "a ledger"
        check_left_out(options, names, "needs two plans", got)
    sizes = options.world_size or (None, None)
    a, b = (
        open_ledger(path) if run else _plan(path, options.columns, size)
        for path, run, size in zip((options.a, options.b), runs, sizes, strict=True)
    )
    return ip.diff(a, b, epochs_of(options))


def _plan(path: str, columns: Any, world_size: int | None) -> ip.Plan:
    plan, _ = open_either(path, columns)
    return plan if world_size is None else plan.replace(world_size=world_size)
