"""`indexplan ledger`: what a run has read, asked of its ledger."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import indexplan as ip
from indexplan.answers import Answer, Shown
from indexplan.cli.common import (
    add_dataset,
    add_most_epochs,
    add_numbers,
    add_verb,
    check_left_out,
    checked_output,
    number,
    scan_dataset,
    write_output,
)
from indexplan.cli.mistaken import is_ledger
from indexplan.errors import IndexPlanError, PlanFileError, integer
from indexplan.ledger.ledger import NAME_A_RANK
from indexplan.reports.show import show_batch


class Question(NamedTuple):
    """A question to a ledger."""

    words: str
    answer: Callable[[ip.Ledger, Any, Any], Answer]  # by the ledger, WHAT, and the options
    what: str = ""  # what WHAT is; "" if it has to be left out
    read: Callable[[str], Any] = str  # how WHAT is read
    options: tuple[str, ...] = ()  # those that belong to it


def open_ledger(path: str, data: Any = None) -> ip.Ledger:
    """Open the ledger of a run that has begun."""
    if is_ledger(path) and (ledger := ip.Ledger(path, data)).tail.num_lines:
        return ledger
    rule = "must be a ledger that a run has written"
    got = "something else" if os.path.lexists(path) else "nothing there"
    raise PlanFileError(path, rule, got, "check the path")


def at(ledger: ip.Ledger, step: int, options: Any) -> Answer:
    """Return the plan that read a step, or the samples that a rank read in it."""
    found = ledger.at(step)
    if options.rank is None:
        return found
    rank = integer("rank", options.rank, 0, found.plan.world_size or 1, NAME_A_RANK)
    return show_batch(found.plan, _where(found, rank), None)


def reads_of(ledger: ip.Ledger, sample: int, void: bool = False) -> Shown:
    """Return which steps and ranks of a run read a sample."""
    found = ledger.reads(sample, void=void)
    lines = [
        f"step {read.step:,}, rank {read.rank}, epoch {read.epoch}{', void' * read.void}"
        for read in found
    ]
    words = "\n".join(lines) or f"no step read sample {sample}"
    return Shown({"sample": sample, "reads": found}, words)


def _replay(ledger: ip.Ledger, step: int, options: Any) -> Shown:
    found, plan, where = ledger.at(step), ledger.replay(step), _where(ledger.at(step), 0)
    batch = show_batch(plan, where, None)
    write_output(checked_output(options.output), plan.to_json())
    data = {"step": step, **where, "plan": plan.to_dict(), "batch": batch.data}
    return Shown({**data, "output": options.output}, f"{found}\n{batch.words}")


def _where(found: Any, rank: int) -> dict[str, int]:
    return {"epoch": found.epoch, "sub_epoch": found.sub_epoch, "step": found.step, "rank": rank}


QUESTIONS = {
    "show": Question(
        "the run's stretches of steps, and what changed between them", lambda ledger, *_: ledger
    ),
    "verify": Question(
        "whether any byte was changed, or any line is out of place",
        lambda ledger, _, options: ledger.verify(options.checkpoint),
        options=("checkpoint", "dataset", "shards"),
    ),
    "at": Question(
        "the plan that read step WHAT, and its epoch and step there",
        *(at, "a step", number, ("rank",)),
    ),
    "reads": Question(
        "the steps and ranks that read sample WHAT",
        lambda ledger, sample, options: reads_of(ledger, sample, options.void),
        *("a sample", number, ("void",)),
    ),
    "replay": Question(
        "the samples of step WHAT; with --output, a plan of one rank that reads it again",
        *(_replay, "a step", number, ("output",)),
    ),
    "account": Question(
        "how much of each epoch was read, and what became of the rest",
        lambda ledger, _, options: ledger.account(options.epoch),
        options=("epoch",),
    ),
    "draws": Question(
        "how much of each class or source was read, and how many epochs that is",
        lambda ledger, _, options: ip.draws(ledger, most_epochs=options.most_epochs),
        options=("most_epochs",),
    ),
    "diff": Question(
        "the first step at which this run and that of ledger WHAT differ",
        lambda ledger, other, _: ip.diff(ledger, other),
        *("another ledger", open_ledger),
    ),
}


def add(verbs: Any) -> None:
    """Add the verb."""
    room = max(map(len, QUESTIONS))
    said = "\n".join(f"  {name:{room}}  {each.words}" for name, each in QUESTIONS.items())
    ledger = add_verb(
        verbs,
        "ledger",
        run,
        "ask what a run has read",
        examples=(
            "indexplan ledger run.ledger",
            "indexplan ledger run.ledger reads 123",
        ),
        more=f"Ask the ledger of a run what it has read. The questions are:\n\n{said}",
    )
    ledger.add_argument("ledger", metavar="LEDGER", help="the file that the run wrote")
    ledger.add_argument(
        "question",
        nargs="?",
        choices=tuple(QUESTIONS),
        default="show",
        metavar="QUESTION",
        help=f"{', '.join(QUESTIONS)} (show)",
    )
    words = "a step for at and replay, a sample for reads, another ledger for diff"
    ledger.add_argument("what", nargs="?", metavar="WHAT", help=words)
    add_numbers(ledger, rank="with at: print the samples that this rank read")
    words = "with reads: include reads that a return to an earlier checkpoint has undone"
    ledger.add_argument("--void", action="store_true", help=words)
    words = (
        "with replay: write a plan of one rank that reads this step and what followed, to this "
        ".json file; its columns stay in the folder `columns` next to the ledger"
    )
    ledger.add_argument("--output", metavar="FILE", help=words)
    add_numbers(ledger, epoch="with account: this epoch only")
    add_most_epochs(ledger, "with draws: ")
    words = "with verify: check that the ledger has the line whose hash a checkpoint holds"
    ledger.add_argument("--checkpoint", metavar="HASH", help=words)
    add_dataset(ledger, "with verify, check that the run read this one")


def run(options: Any) -> Answer:
    """Answer the question."""
    name, question = options.question, QUESTIONS[options.question]
    for other, each in QUESTIONS.items():
        if other != name:
            rule = f"needs the question {other}"
            check_left_out(options, each.options, rule, name, "ask that, or ")
    if options.what is None and question.what:
        cure = f"write it after {name}"
        raise IndexPlanError(f"`indexplan ledger`: {name}", f"needs {question.what}", None, cure)
    if options.what is not None and not question.what:
        rule, cure = f"must be left out of {name}", "leave it out"
        raise IndexPlanError("WHAT", rule, options.what, cure)
    try:
        what = None if options.what is None else question.read(options.what)
    except argparse.ArgumentTypeError as error:
        cure = "see `indexplan ledger --help`"
        raise IndexPlanError(question.what, str(error), None, cure) from error
    return question.answer(open_ledger(options.ledger, scan_dataset(options)), what, options)
