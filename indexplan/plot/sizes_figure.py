"""Batch sizes: the last batches of a sub-epoch under each remainder policy, side by side."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from indexplan.errors import IndexPlanError, printable
from indexplan.keywords import named
from indexplan.partition.locate import find_place
from indexplan.partition.ranks import share
from indexplan.partition.remainders import REMAINDERS, Remainder
from indexplan.partition.steps import Steps
from indexplan.plan.plan import Plan, check_plan, layout_of
from indexplan.plot.drawing import evenly, first_of, of_many, short, ticks
from indexplan.plot.style import (
    BLUE,
    DARK,
    ORANGE,
    RED,
    SKY,
    SMALL,
    explain,
    heading,
    new_figure,
    nothing_here,
    panel_title,
    panels,
    root_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

RANKS, STEPS = 8, 8  # at most this many are shown
ROOM, LINE = 30, 54  # characters of tick labels below a panel, and of a line of words in it


@named
def batch_sizes(
    plan: Plan,
    epoch: int | None = None,
    sub_epoch: int | None = None,
    *,
    figure: Figure | SubFigure | None = None,
) -> Figure:
    """Draw how large each rank's last batches are under each remainder policy.

    Use it to choose a remainder: it shows what is dropped, padded, spread or carried over.

    Parameters
    ----------
    plan : Plan
        Its world_size must be set. All policies are drawn, from where the plan starts; the
        plan's own is marked.
    epoch, sub_epoch : int, optional
        Which steps; by default the first sub-epoch that is left to read.
    figure : Figure or SubFigure, optional
        Your own, to draw into; empty, and with constrained layout. By default a new one.

    Returns
    -------
    matplotlib.figure.Figure
        A panel of bars for each policy, a group for each of the last steps and a bar for each rank:
        units read once, padded slots, and units of the next sub-epoch or epoch. Dropped units are
        one bar, as high as if all ranks shared them.

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
    layout = layout_of(plan)
    rows = -(-len(REMAINDERS) // 2)
    figure = new_figure(8, 2.7 * rows, figure)
    world_size = layout.world_size
    epoch, sub_epoch = first_of(plan, epoch, sub_epoch)
    layout.steps(epoch, sub_epoch)
    grid = panels(figure, rows, 2, sharey=True)
    for unused in grid.flat[len(REMAINDERS) :]:
        unused.remove()
    ranks = evenly(0, world_size, RANKS)
    highest = [1.0]
    for axes, remainder in zip(grid.flat, REMAINDERS, strict=False):
        name = f'"{remainder}"' + (", this plan's" if remainder == plan.remainder else "")
        panel_title(axes, name)
        try:
            steps = layout_of(_under(plan, remainder)).steps(epoch, sub_epoch)
        except IndexPlanError as error:
            nothing_here(axes, "not for this plan")
            why = printable(f"{error.what} {error.rule}")
            axes.set_xlabel(textwrap.fill(why, LINE), fontsize=SMALL)
            continue
        highest.append(_panel(axes, steps, world_size, ranks))
    grid[0, 0].set_ylim(0, 1.4 * max(highest))  # room for the words above the bars
    for axes in grid[:, 0]:
        axes.set_ylabel("units of a rank's batch")
    explain(figure, handles=[_key(*kind) for kind in _KINDS])
    part = f", sub-epoch {sub_epoch}" if plan.sub_epochs > 1 else ""
    shown = of_many(len(ranks), world_size, "rank")
    which = f" ({', '.join(map(short, ranks))})" if len(ranks) < world_size else ""
    caption = (
        f"Each bar is the batch of a rank{which}: in the last steps, the ways to treat the "
        "remainder differ."
    )
    heading(figure, f"Last batches of epoch {epoch}{part}: {shown}", caption)
    return root_of(figure)


# what a bar shows, its colour, and its hatching, for prints without colour
_KINDS = (
    ("read once", BLUE, None),
    ("of the next sub-epoch or epoch", SKY, "..."),
    ("padded", ORANGE, "///"),
    ("dropped", RED, "xxx"),
)
_HATCHES = {color: hatch for _, color, hatch in _KINDS}


def _key(label: str, color: str, hatch: str | None) -> Any:
    from matplotlib.patches import Patch

    return Patch(facecolor=color, edgecolor="white", hatch=hatch, label=label)


def _under(plan: Plan, remainder: Remainder) -> Plan:
    """Return the plan with another policy, started where it starts."""
    if remainder == plan.remainder:
        return plan
    changed = plan.replace(remainder=remainder)
    return changed if layout_of(plan).partition.resume is None else changed.resume(plan.start)


def _panel(axes: Any, steps: Steps, world_size: int, ranks: list[int]) -> float:
    """Draw one policy: for every step a bar for each rank, and then what is dropped.

    Return how high the highest bar is.
    """
    stop = steps.num_steps
    first = max(steps.first_step, stop - STEPS)
    numbers = range(first, stop)
    if not numbers:
        nothing_here(axes, _no_steps(steps))
        return 0.0
    width = 0.86 / len(ranks)
    beyond = ORANGE if steps.policy.repeats else SKY
    highest = 0.0
    for i, rank in enumerate(ranks):
        places = [share(steps, world_size, rank, step) for step in numbers]
        # the part of each batch that is in the sub-epoch, and the part past its end
        own = np.array([max(0, min(b, steps.stop) - a) for a, b in places], float)
        past = np.array([b - a for a, b in places], float) - own
        at = np.arange(len(numbers)) + (i - (len(ranks) - 1) / 2) * width
        _bars(axes, at, own, width, BLUE)
        _bars(axes, at, past, width, beyond, bottom=own)
        highest = max(highest, float((own + past).max()))
    dropped = steps.stop - steps.end
    words = ["dropped"] * (dropped > 0)
    room = sum(map(len, [*map(short, numbers), *words])) <= ROOM
    # if labels are long, every second step has one, counted from the dropped units
    labelled = numbers if room else numbers[len(numbers) % 2 :: 2]
    labels, name = ticks(list(labelled), "step", ROOM)
    at_ticks = [step - first for step in labelled]
    if words:
        _bars(axes, [len(numbers)], [dropped / world_size], 0.86, RED)
        at_ticks.append(len(numbers))
        labels += words
    axes.set_xticks(at_ticks, labels=labels)
    axes.set_xlabel(name)
    left = textwrap.fill(_what_is_left(steps, world_size), LINE)
    axes.text(0.02, 0.98, left, transform=axes.transAxes, va="top", fontsize=SMALL, color=DARK)
    return highest


def _bars(axes: Any, at: Any, heights: Any, width: float, color: str, bottom: Any = 0) -> None:
    # white edges, as gaps of a fraction of a pixel would be uneven
    axes.bar(
        at,
        heights,
        width,
        bottom=bottom,
        color=color,
        hatch=_HATCHES[color],
        edgecolor="white",
        linewidth=0.5,
    )


def _what_is_left(steps: Steps, world_size: int) -> str:
    """Say what happens to the remainder, and from which step on."""
    count = steps.end - steps.stop
    if count == 0:
        return steps.policy.words if steps.policy.shrinks else "nothing left over"
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
        return f"no steps: all {short(count)} unit{'s' * (count != 1)} dropped"
    return f"no steps: one that starts before reads these {short(count)} unit{'s' * (count != 1)}"
