"""`indexplan ledger`: what a run has read, asked of its ledger."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

import indexplan as ip
from indexplan.answers import Shown
from indexplan.cli.common import (
    OK,
    WRONG_PLAN,
    add_dataset,
    add_most_epochs,
    add_verb,
    checked_output,
    emit,
    number,
    scan_dataset,
    write_output,
)
from indexplan.cli.mistaken import is_ledger
from indexplan.errors import IndexPlanError, PlanFileError, integer
from indexplan.ledger.ledger import NAME_A_RANK
from indexplan.reports.show import show_batch

QUESTIONS = {
    "show": "the run's stretches of steps, and what changed between them",
    "verify": "whether any byte was changed, or any line is out of place",
    "at": "the plan that read step WHAT, and its epoch and step there",
    "reads": "the steps and ranks that read sample WHAT",
    "replay": "the samples of step WHAT; with --output, a plan of one rank that reads it again",
    "account": "how much of each epoch was read, and what became of the rest",
    "draws": "how much of each class or source was read, and how many epochs that is",
    "diff": "the first step at which this run and that of ledger WHAT differ",
}
WITH = {  # the question that each of the other options belongs to
    "rank": "at",
    "void": "reads",
    "epoch": "account",
    "output": "replay",
    "checkpoint": "verify",
    "most_epochs": "draws",
    "dataset": "verify",
    "shards": "verify",
}


def add(verbs: Any) -> None:
    """Add the verb."""
    ledger = add_verb(
        verbs,
        "ledger",
        run,
        "ask what a run has read",
        examples=(
            "indexplan ledger run.ledger",
            "indexplan ledger run.ledger reads 123",
        ),
    )
    room = max(map(len, QUESTIONS))
    said = "\n".join(f"  {name:{room}}  {answer}" for name, answer in QUESTIONS.items())
    ledger.description = f"Ask the ledger of a run what it has read. The questions are:\n\n{said}"
    ledger.add_argument("ledger", metavar="LEDGER", help="the file that the run wrote")
    words = f"{', '.join(QUESTIONS)} (show)"
    ledger.add_argument(
        "question",
        nargs="?",
        choices=tuple(QUESTIONS),
        default="show",
        metavar="QUESTION",
        help=words,
    )
    words = "a step for at and replay, a sample for reads, another ledger for diff"
    ledger.add_argument("what", nargs="?", metavar="WHAT", help=words)
    words = "with at: print the samples that this rank read"
    ledger.add_argument("--rank", type=number, metavar="N", help=words)
    words = "with reads: include reads that a return to an earlier checkpoint has undone"
    ledger.add_argument("--void", action="store_true", help=words)
    words = (
        "with replay: write a plan of one rank that reads this step and what followed, to this "
        ".json file; its columns stay in the folder `columns` next to the ledger"
    )
    ledger.add_argument("--output", metavar="FILE", help=words)
    words = "with account: this epoch only"
    ledger.add_argument("--epoch", type=number, metavar="N", help=words)
    add_most_epochs(ledger, "with draws: ")
    words = "with verify: check that the ledger has the line whose hash a checkpoint holds"
    ledger.add_argument("--checkpoint", metavar="HASH", help=words)
    add_dataset(ledger, "with verify, check that the run read this one")


def open_ledger(path: str, data: Any = None) -> ip.Ledger:
    """Open the ledger of a run that has begun."""
    if is_ledger(path) and (ledger := ip.Ledger(path, data)).tail.num_lines:
        return ledger
    rule = "must be a ledger that a run has written"
    got = "something else" if os.path.lexists(path) else "nothing there"
    raise PlanFileError(path, rule, got, "check the path")


def run(options: Any) -> int:
    """Answer the question."""
    for name, question in WITH.items():
        value = getattr(options, name)
        if value is not None and value is not False and options.question != question:
            option, rule = f"--{name.replace('_', '-')}", f"needs the question {question}"
            raise IndexPlanError(option, rule, options.question, f"ask that, or leave {option} out")
    return ANSWERS[options.question](options)


def _what(options: Any, meant: str) -> str:
    """Return the argument after the question."""
    if options.what is None:
        cure = f"write it after {options.question}"
        raise IndexPlanError(
            f"`indexplan ledger`: {options.question}", f"needs {meant}", None, cure
        )
    return str(options.what)


def _number(options: Any, meant: str) -> int:
    text = _what(options, meant)
    try:
        return number(text)
    except argparse.ArgumentTypeError as error:
        raise IndexPlanError(meant, str(error), None, "see `indexplan ledger --help`") from error


def _nothing(options: Any) -> ip.Ledger:
    """Open the ledger, for a question that takes no more."""
    if options.what is not None:
        rule, cure = f"must be left out of {options.question}", "leave it out"
        raise IndexPlanError("WHAT", rule, options.what, cure)
    return open_ledger(options.ledger, scan_dataset(options))


def _show(options: Any) -> int:
    emit(options, _nothing(options))
    return OK


def _verify(options: Any) -> int:
    report = _nothing(options).verify(options.checkpoint)
    emit(options, report)
    return OK if report.ok else WRONG_PLAN


def _at(options: Any) -> int:
    step = _number(options, "a step")
    at = open_ledger(options.ledger).at(step)
    if options.rank is None:
        emit(options, at)
    else:
        rank = integer("rank", options.rank, 0, at.plan.world_size or 1, NAME_A_RANK)
        where = {"epoch": at.epoch, "sub_epoch": at.sub_epoch, "step": at.step}
        emit(options, show_batch(at.plan, {**where, "rank": rank}, None))
    return OK


def _reads(options: Any) -> int:
    sample = _number(options, "a sample")
    emit(options, reads_of(open_ledger(options.ledger), sample, options.void))
    return OK


def reads_of(ledger: ip.Ledger, sample: int, void: bool = False) -> Shown:
    """Return which steps and ranks of a run read a sample."""
    found = ledger.reads(sample, void=void)
    lines = [
        f"step {read.step:,}, rank {read.rank}, epoch {read.epoch}{', void' * read.void}"
        for read in found
    ]
    words = "\n".join(lines) or f"no step read sample {sample}"
    return Shown({"sample": sample, "reads": found}, words)


def _replay(options: Any) -> int:
    step = _number(options, "a step")
    ledger = open_ledger(options.ledger)
    at, plan = ledger.at(step), ledger.replay(step)
    where = {"epoch": at.epoch, "sub_epoch": at.sub_epoch, "step": at.step, "rank": 0}
    batch = show_batch(plan, where, None)
    write_output(checked_output(options.output), plan.to_json())
    data = {"step": step, **where, "plan": plan.to_dict(), "batch": batch.data}
    emit(options, Shown({**data, "output": options.output}, f"{at}\n{batch.words}"))
    return OK


def _account(options: Any) -> int:
    emit(options, _nothing(options).account(options.epoch))
    return OK


def _draws(options: Any) -> int:
    emit(options, ip.draws(_nothing(options), most_epochs=options.most_epochs))
    return OK


def _diff(options: Any) -> int:
    other = _what(options, "another ledger")
    emit(options, ip.diff(open_ledger(options.ledger), open_ledger(other)))
    return OK


ANSWERS: dict[str, Callable[[Any], int]] = {
    "show": _show,
    "verify": _verify,
    "at": _at,
    "reads": _reads,
    "replay": _replay,
    "account": _account,
    "draws": _draws,
    "diff": _diff,
}
