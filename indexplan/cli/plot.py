"""`indexplan plot`: a picture of a plan, or of a run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from indexplan.answers import Shown
from indexplan.cli.common import (
    OF_PLANS,
    add_numbers,
    add_plan,
    add_verb,
    check_left_out,
    is_ledger,
    open_ledger,
    open_plan,
)
from indexplan.errors import IndexPlanError, PlanFileError, did_you_mean
from indexplan.stores.publish import explained

KINDS = {
    "reading": "which rank reads which samples at each step",
    "mixing": "how evenly steps read from all parts of the dataset",
    "life": "the whole life of a run, from its ledger",
}
FORMATS = (".png", ".svg", ".pdf")
OPTIONS = ("epoch", "sub_epoch", "values")  # of reading and mixing


def add(verbs: Any) -> None:
    """Add the verb."""
    room = max(map(len, KINDS))
    listed = "\n".join(f"  {kind:{room}}  {words}" for kind, words in KINDS.items())
    plot = add_verb(
        verbs,
        "plot",
        run,
        "draw a plan or a run, to a .png, .svg or .pdf file",
        examples=(
            "indexplan plot run.plan -o run.png",
            "indexplan plot run.ledger -o life.svg",
        ),
        more=f"Draw a plan or a run, to a .png, .svg or .pdf file. \n\n{listed}",
    )
    add_plan(plot)
    plot.add_argument("-o", "--output", required=True, metavar="FILE", help="the file to write")
    words = "which picture (reading; of a run's ledger, life)"
    plot.add_argument("--kind", choices=KINDS, help=words)
    add_numbers(
        plot,
        epoch="which epoch (the first that is stored and not read yet)",
        sub_epoch="which sub-epoch (the first that is not read yet)",
    )
    words = "a .npy file with a number of each sample, shown in place of its index"
    plot.add_argument("--values", metavar="FILE", help=words)


def run(options: Any) -> Shown:
    """Draw the picture."""
    from indexplan import plot

    _check_new(options.output)
    kind = options.kind or ("life" if is_ledger(options.plan) else "reading")
    if kind == "life":
        check_left_out(options, (*OPTIONS, *OF_PLANS), "must be left out of --kind life")
        figure = plot.life(open_ledger(options.plan))
    else:
        plan, first, stored, _ = open_plan(options)
        given = {name: value for name in OPTIONS if (value := getattr(options, name)) is not None}
        if stored is not None:
            given.setdefault("epoch", first)
        figure = getattr(plot, kind)(plan, **given)
    with explained("written", options.output):
        figure.savefig(options.output)
    drawn = {"output": options.output, "kind": kind}
    return Shown(drawn, f"{options.output}: {KINDS[kind]}")


def _check_new(path: str) -> None:
    """Raise `IndexPlanError` unless a picture can be written to a path where there is none."""
    suffix = Path(path).suffix
    if suffix not in FORMATS:
        rule, cure = f"must end with {' or '.join(FORMATS)}", "end it with one of these"
        raise IndexPlanError(
            "a picture's path", rule, repr(path), did_you_mean(suffix, FORMATS) + cure
        )
    if os.path.lexists(path):
        cure = "choose another path, or delete the file"
        raise PlanFileError(path, "must be a new file", "one that exists", cure)
