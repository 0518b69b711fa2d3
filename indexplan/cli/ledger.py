"""`indexplan ledger`: what a run has read of each epoch or source, and a step of it again."""

from __future__ import annotations

import json
from typing import Any

import indexplan as ip
from indexplan.answers import Answer, Shown
from indexplan.cli.common import (
    add_numbers,
    add_verb,
    check_left_out,
    open_ledger,
)
from indexplan.errors import IndexPlanError
from indexplan.reports.show import show_batch

QUESTIONS = {
    "account": "how much of each epoch was read, and what became of the rest",
    "draws": "how much of each class or source was read, and how many epochs that is",
    "replay": "the samples of --step; with --json, also a plan of one rank that reads it again",
}
OPTIONS = {"epoch": "account", "step": "replay"}


def add(verbs: Any) -> None:
    """Add the verb."""
    said = "\n".join(f"  {name:7}  {words}" for name, words in QUESTIONS.items())
    ledger = add_verb(
        verbs,
        "ledger",
        run,
        "count what a run has read, or read a step of it again",
        examples=(
            "indexplan ledger run.ledger account",
            "indexplan ledger run.ledger replay --step 12",
        ),
        more=f"Count what a run has read, or read a step of it again. The questions are:\n\n{said}"
        "\n\nThe verbs show, locate, diff, verify and plot take ledgers, too.",
    )
    ledger.add_argument("ledger", metavar="LEDGER", help="the file that the run wrote")
    words = ", ".join(QUESTIONS)
    ledger.add_argument("question", choices=QUESTIONS, metavar="QUESTION", help=words)
    add_numbers(ledger, epoch="with account: this epoch only", step="with replay: which step")


def run(options: Any) -> Answer:
    """Answer the question."""
    name = options.question
    for option, question in OPTIONS.items():
        if name != question:
            rule = f"needs the question {question}"
            check_left_out(options, [option], rule, name, "ask that, or ")
    if name == "replay":
        return _replay(options)
    ledger = open_ledger(options.ledger)
    if name == "draws":
        return ip.draws(ledger)
    return ledger.account(options.epoch)


def _replay(options: Any) -> Shown:
    """Return what all ranks read in a step, and the plan that reads it again."""
    step = options.step
    if step is None:
        raise IndexPlanError("--step", "must be given with replay", "none", "add --step 0")
    ledger = open_ledger(options.ledger)
    found, plan = ledger.at(step), ledger.replay(step)
    where = {"epoch": found.epoch, "sub_epoch": found.sub_epoch, "step": found.step, "rank": 0}
    batch = show_batch(plan, where, None)
    data = {"step": step, **where, "plan": json.loads(plan.to_json()), "batch": batch.data}
    return Shown(data, f"{found}\n{batch.words}")
