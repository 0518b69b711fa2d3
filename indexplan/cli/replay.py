"""`indexplan replay`: read a step of a run again, on one machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from indexplan.answers import Shown
from indexplan.cli.common import OK, add_verb, emit, number
from indexplan.cli.ledger import add_ledger, open_ledger
from indexplan.errors import cure_of, wrong
from indexplan.reports.show import show_batch


def add(verbs: Any) -> None:
    """Add the verb."""
    replay = add_verb(
        verbs,
        "replay",
        run,
        "print what a step of a run read",
        examples=(
            "indexplan replay run.ledger --step 17",
            "indexplan replay run.ledger --step 17 --output replay.json",
        ),
    )
    replay.description = (
        "Print what a step of a run read. With --output, write a plan of one rank, so that a "
        "single machine can read the step again."
    )
    add_ledger(replay)
    replay.add_argument(
        "--step",
        type=number,
        required=True,
        metavar="N",
        help="the step, counted from the run's start",
    )
    words = (
        "write a plan of one rank that reads this step and what followed, to this .json file; its "
        "columns stay in the folder `columns` next to the ledger"
    )
    replay.add_argument("--output", metavar="FILE", help=words)


def run(options: Any) -> int:
    """Print the step's batch, and write the plan if it is asked for."""
    output = None if options.output is None else Path(options.output)
    if output is not None and output.suffix != ".json":
        raise wrong("--output", "a file that ends in .json", options.output, "end it with .json")
    ledger = open_ledger(options.ledger)
    at, plan = ledger.at(options.step), ledger.replay(options.step)
    where = {"epoch": at.epoch, "sub_epoch": at.sub_epoch, "step": at.step, "rank": 0}
    batch = show_batch(plan, where, None)
    if output is not None:
        try:
            output.write_text(plan.to_json())
        except OSError as error:
            got, cure = f"{output} ({error.strerror})", cure_of(error, "choose another path")
            raise wrong("--output", "a file that can be written", got, cure) from error
    data = {"step": options.step, **where, "plan": plan.to_dict(), "batch": batch.data}
    emit(options, Shown({**data, "output": options.output}, f"{at}\n{batch.words}"))
    return OK
