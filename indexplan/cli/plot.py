"""`indexplan plot`: a picture of a plan."""

from __future__ import annotations

from typing import Any

from indexplan.answers import Shown
from indexplan.cli.common import (
    OK,
    add_columns,
    add_plan_or_spec,
    add_verb,
    add_world_size,
    emit,
    first_epoch,
    number,
    open_either,
)
from indexplan.cli.ledger import open_ledger
from indexplan.cli.mistaken import is_ledger
from indexplan.errors import IndexPlanError

KINDS = {
    "reading": "which rank reads which samples at each step",
    "sizes": "step sizes, parameters and padding over the run",
    "mixing": "how evenly steps read from all parts of the dataset",
    "work": "the work of each rank, without balance and with it",
    "life": "the whole life of a run, from its ledger",
}
KINDS_WITH = {
    "epoch": ("reading", "mixing", "work"),
    "sub_epoch": ("reading", "mixing", "work"),
    "epochs": ("sizes",),
    "window": ("mixing",),
    "values": ("reading", "mixing"),
}


def add(verbs: Any) -> None:
    """Add the verb."""
    plot = add_verb(
        verbs,
        "plot",
        run,
        "draw a plan or a run, to a .png, .svg or .pdf file",
        examples=(
            "indexplan plot run.plan -o run.png",
            "indexplan plot run.ledger -o life.svg",
        ),
    )
    room = max(map(len, KINDS))
    listed = "\n".join(f"  {kind:{room}}  {words}" for kind, words in KINDS.items())
    plot.description = f"Draw a plan or a run, to a .png, .svg or .pdf file. \n\n{listed}"
    add_plan_or_spec(plot)
    add_columns(plot)
    plot.add_argument("-o", "--output", required=True, metavar="FILE", help="the file to write")
    words = "which picture (reading; of a run's ledger, life)"
    plot.add_argument("--kind", choices=KINDS, help=words)
    words = "which epoch (the first that is stored and not read yet)"
    plot.add_argument("--epoch", type=number, metavar="N", help=words)
    words = "which sub-epoch (the first that is not read yet)"
    plot.add_argument("--sub-epoch", type=number, metavar="N", help=words)
    words = "how many epochs of sizes to draw (up to one past its last phase)"
    plot.add_argument("--epochs", type=number, metavar="N", help=words)
    words = "steps in a window of the picture of mixing (enough to read about 2,048 units)"
    plot.add_argument("--window", type=number, metavar="N", help=words)
    words = "a .npy file with a number of each sample, shown in place of its index"
    plot.add_argument("--values", metavar="FILE", help=words)
    add_world_size(plot)


def run(options: Any) -> int:
    """Draw the picture."""
    from indexplan import plot

    if options.kind is None:
        options.kind = "life" if is_ledger(options.plan) else "reading"
    kind, epoch, sub_epoch = options.kind, options.epoch, options.sub_epoch
    for name, kinds in KINDS_WITH.items():
        if getattr(options, name) is not None and kind not in kinds:
            option = f"--{name.replace('_', '-')}"
            cure = f"use that kind, or leave {option} out"
            raise IndexPlanError(option, f"needs --kind {' or '.join(kinds)}", kind, cure)
    if kind == "life":
        if options.world_size is not None or options.columns:
            option = "--column" if options.columns else "--world-size"
            raise IndexPlanError(option, "must be left out of --kind life", None, "leave it out")
        return _saved(options, plot.life(open_ledger(options.plan)))
    plan, stored = open_either(options.plan, options.columns)
    if options.world_size is not None:
        plan = plan.replace(world_size=options.world_size)
    start = plan.start
    if epoch is None and stored is not None:
        epoch = first_epoch(plan, stored)
    if kind == "sizes":
        many = options.epochs
        figure = plot.sizes(plan, many if many is None else range(start.epoch, start.epoch + many))
    elif kind == "work":
        figure = plot.work(plan, epoch, sub_epoch)
    else:
        values = options.values
        if kind == "mixing":
            figure = plot.mixing(plan, epoch, sub_epoch, window=options.window, values=values)
        else:
            figure = plot.reading(plan, epoch, sub_epoch, values=values)
    return _saved(options, figure)


def _saved(options: Any, figure: Any) -> int:
    """Write the picture, and say what it shows."""
    from indexplan import plot

    plot.save(figure, options.output)
    drawn = {"output": options.output, "kind": options.kind}
    emit(options, Shown(drawn, f"{options.output}: {KINDS[options.kind]}"))
    return OK
