"""Batch sizes under each remainder policy: the difference at one glance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from indexplan.errors import IndexPlanError
from indexplan.partition.locate import find_place
from indexplan.partition.ranks import share
from indexplan.partition.remainders import REMAINDERS
from indexplan.partition.steps import Steps
from indexplan.plan.bounds import steps_of, world_of
from indexplan.plan.plan import Plan, check_plan
from indexplan.plot.drawing import (
    BLUE,
    GREY,
    ORANGE,
    RED,
    SKY,
    evenly,
    new_figure,
    of_many,
    short,
    ticks,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RANKS, STEPS = 8, 8  # at most so many are shown
ROOM = 40  # characters of tick labels below a panel


def batch_sizes(plan: Plan, epoch: int = 0, sub_epoch: int | None = None) -> Figure:
    """Draw how large each rank's batch is in the last steps of a sub-epoch, under each policy.

    Parameters
    ----------
    plan : Plan
        Its world_size must be set; its remainder is only pointed out, all four are drawn, from
        where the plan starts.
    epoch, sub_epoch : int
        Whose steps; by default the first sub-epoch of epoch 0.

    Returns
    -------
    matplotlib.figure.Figure
        Four panels of bars, a group for each step and a bar for each rank: units of its own,
        padded slots, and units of the next sub-epoch or epoch; dropped units are a bar of their
        own, as high as they would be if dealt to all ranks.

    Raises
    ------
    IndexPlanError
        If matplotlib is missing, world_size is open, or the sub-epoch is out of range.

    Examples
    --------
    >>> import indexplan as ip
    >>> figure = ip.plot.batch_sizes(ip.Plan(ip.Shuffle(103), world_size=4, batch_size=8))
    """
    check_plan("plan", plan)
    figure = new_figure(8, 6)
    world_size = world_of(plan)
    sub_epoch = 0 if sub_epoch is None else sub_epoch
    steps_of(plan, epoch, sub_epoch)
    panels = figure.subplots(2, 2, sharey=True)
    ranks = evenly(0, world_size, RANKS)
    highest = [1.0]
    for axes, remainder in zip(panels.flat, REMAINDERS, strict=True):
        name = f'"{remainder}"' + (", this plan's" if remainder == plan.remainder else "")
        axes.set_title(name, loc="left", fontsize="medium")
        try:
            changed = _under(plan, remainder)
        except IndexPlanError as error:
            _say(axes, "not for this order")
            axes.set_xlabel(str(error).partition(";")[0], fontsize="x-small")
            continue
        highest.append(_panel(axes, steps_of(changed, epoch, sub_epoch), world_size, ranks))
    panels[0, 0].set_ylim(0, 1.25 * max(highest))  # room for the words above the bars
    for axes in panels[:, 0]:
        axes.set_ylabel("units of a rank's batch")
    handles = [_key(color, label) for label, color in _KINDS.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
    part = f", sub-epoch {sub_epoch}" if plan.sub_epochs > 1 else ""
    shown = of_many(len(ranks), world_size, "rank")
    if len(ranks) < world_size:
        shown += f" ({', '.join(map(short, ranks))})"
    figure.suptitle(
        f"Last batches of epoch {epoch}{part}: {shown}", x=0.01, ha="left", fontsize="medium"
    )
    return figure


_KINDS = {
    "read once": BLUE,
    "of the next sub-epoch or epoch": SKY,
    "padded": ORANGE,
    "dropped": RED,
}


def _key(color: str, label: str) -> Any:
    from matplotlib.patches import Patch

    return Patch(color=color, label=label)


def _under(plan: Plan, remainder: str) -> Plan:
    """Return the plan with another policy, started where it starts."""
    if remainder == plan.remainder:
        return plan
    changed = plan.replace(remainder=remainder)
    return changed if plan.resumed is None else changed.resume(plan.start)


def _say(axes: Any, words: str) -> None:
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", fontsize="small")
    axes.set_xticks([])


def _panel(axes: Any, steps: Steps, world_size: int, ranks: list[int]) -> float:
    """Draw one policy: for every step a bar for each rank, and what is dropped after them.

    Returns how high the highest bar is.
    """
    stop = steps.num_steps
    first = max(steps.first_step, stop - STEPS)
    numbers = range(first, stop)
    if not numbers:
        _say(axes, _no_steps(steps))
        return 0.0
    width = 0.8 / len(ranks)
    beyond = ORANGE if steps.policy.repeats else SKY
    highest = 0.0
    for i, rank in enumerate(ranks):
        places = [share(steps, world_size, rank, step) for step in numbers]
        # of each batch, what lies in the sub-epoch, and what lies past its end
        own = np.array([max(0, min(b, steps.stop) - a) for a, b in places], float)
        past = np.array([b - a for a, b in places], float) - own
        at = np.arange(len(numbers)) + (i - (len(ranks) - 1) / 2) * width
        axes.bar(at, own, width * 0.9, color=BLUE)
        hatch = "///" if beyond == ORANGE else None
        axes.bar(at, past, width * 0.9, bottom=own, color=beyond, hatch=hatch)
        highest = max(highest, float((own + past).max()))
    labels, name = ticks(list(numbers), "step", ROOM)
    dropped = steps.stop - steps.end
    if dropped > 0:
        axes.bar([len(numbers)], [dropped / world_size], 0.8, color=RED, hatch="xx")
        labels.append("dropped")
    axes.set_xticks(range(len(labels)), labels=labels, fontsize=8)
    axes.set_xlabel(name, fontsize="small", color=GREY)
    words = _what_is_left(steps, world_size)
    axes.text(0.02, 0.97, words, transform=axes.transAxes, va="top", fontsize=8)
    return highest


def _what_is_left(steps: Steps, world_size: int) -> str:
    """Say what becomes of the remainder, and from where on."""
    count = steps.end - steps.stop
    if count == 0:
        whole = steps.policy.shrinks
        return "every unit once; batches differ by one at most" if whole else "nothing left over"
    if count < 0:
        each = -count / world_size
        return f"{short(-count)} units dropped ({each:.3g} a rank)"
    step, rank, _ = find_place(steps, world_size, steps.stop)
    what = "slots padded" if steps.policy.repeats else "units of what comes next"
    return f"{short(count)} {what}, from step {step:,}, rank {rank:,} on"


def _no_steps(steps: Steps) -> str:
    count = steps.stop - steps.start
    if count <= 0:
        return "no steps: no units are left"
    if steps.policy.leaves:
        return f"no steps: all {short(count)} units dropped"
    return f"no steps: one that starts before reads these {short(count)} units"
