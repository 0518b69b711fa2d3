"""`indexplan plot`: a picture of a plan."""

from __future__ import annotations

from typing import Any

from indexplan.cli.common import (
    OK,
    add_plan_or_spec,
    add_verb,
    add_world_size,
    emit,
    number,
    open_either,
)
from indexplan.errors import IndexPlanError

KINDS = {
    "reading": "who reads what, when: steps across, ranks down, colour is the index",
    "sizes": "the last batch sizes under each remainder policy",
    "schedule": "the size of steps and the parameters over the run",
    "mixing": "how evenly the quarters of the dataset are read, window of steps by window",
    "coverage": "how often each region of the dataset is read",
}


def add(verbs: Any) -> None:
    """Add the verb."""
    plot = add_verb(verbs, "plot", run, "draw a plan, to a .png, .svg or .pdf file")
    plot.description = "Draw a plan. " + " ".join(f"{k}: {w}." for k, w in KINDS.items())
    add_plan_or_spec(plot)
    plot.add_argument("-o", "--output", required=True, metavar="FILE", help="a new file")
    plot.add_argument("--kind", choices=KINDS, default="reading", help="which picture (reading)")
    plot.add_argument("--epoch", type=number, metavar="N", help="which epoch (the first stored)")
    plot.add_argument("--sub-epoch", type=number, metavar="N", help="which sub-epoch (0)")
    plot.add_argument("--window", type=number, metavar="N", help="steps in a window of mixing")
    add_world_size(plot)


def run(options: Any) -> int:
    """Draw the picture."""
    from indexplan import plot

    plan, manifest = open_either(options.plan)
    if options.world_size is not None:
        plan = plan.replace(world_size=options.world_size)
    kind, epoch, sub_epoch = options.kind, options.epoch, options.sub_epoch
    if options.window is not None and kind != "mixing":
        cure = "name that kind, or leave --window out"
        raise IndexPlanError(f"--window needs --kind mixing; got {kind}; {cure}")
    if epoch is None:
        epoch = manifest.build.epochs[0] if manifest else plan.start.epoch
        if sub_epoch is None and epoch == plan.start.epoch:
            sub_epoch = plan.start.sub_epoch
    if kind == "schedule":
        figure = plot.schedule(plan)
    elif kind == "coverage":
        figure = plot.coverage(plan, epoch)
    elif kind == "mixing":
        figure = plot.mixing(plan, epoch, sub_epoch, window=options.window)
    else:
        draw = plot.reading if kind == "reading" else plot.batch_sizes
        figure = draw(plan, epoch, sub_epoch)
    plot.save(figure, options.output)
    emit(options, {"output": options.output, "kind": kind}, f"{options.output}: {KINDS[kind]}")
    return OK
