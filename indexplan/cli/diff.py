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
    number,
    open_either,
)
from indexplan.cli.ledger import open_ledger
from indexplan.cli.mistaken import is_ledger
from indexplan.errors import IndexPlanError, PlanFileError, wrong


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
        "on different ranks. Of two ledgers, find where their runs part.",
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


def run(options: Any) -> ip.types.Difference | ip.types.RunDifference:
    """Compare them; a difference is an answer, and no failure unless the exit code shall say so."""
    try:
        return _compared(options)
    except PlanFileError as error:
        if not options.exit_code:
            raise
        raise IndexPlanError(error.what, error.rule, error.got, error.cure) from error


def _compared(options: Any) -> ip.types.Difference | ip.types.RunDifference:
    runs = [is_ledger(path) for path in (options.a, options.b)]
    if all(runs):
        check_left_out(options, ("epochs", *OF_PLANS), "needs two plans", "two ledgers")
        return ip.diff(open_ledger(options.a), open_ledger(options.b))
    if any(runs):
        run, other = (options.a, options.b) if runs[0] else (options.b, options.a)
        open_either(other, options.columns)  # which says what it is if it is no plan either
        got = " and ".join("a ledger" if each else "a plan" for each in runs)
        cure = f"write a run's plan with `indexplan ledger {run} replay 0 --output run.json`"
        raise wrong("A and B", "two plans or two ledgers", got, cure)
    (a, _), (b, _) = (open_either(path, options.columns) for path in (options.a, options.b))
    if options.world_size is not None:
        sizes = zip((a, b), options.world_size, strict=True)
        a, b = (plan.replace(world_size=size) for plan, size in sizes)
    return ip.diff(a, b, epochs_of(options))
