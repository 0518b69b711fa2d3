"""Batch sizes under each remainder policy: the difference at one glance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from indexplan.errors import IndexPlanError
from indexplan.partition import REMAINDERS
from indexplan.plan import Plan
from indexplan.plot.drawing import BLUE, GREY, ORANGE, RED, SKY, new_figure, of_many, sample, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RANKS, STEPS = 8, 8  # at most so many are shown


def batch_sizes(plan: Plan, epoch: int = 0, sub_epoch: int | None = None) -> Figure:
    """Draw how large each rank's batch is in the last steps of a sub-epoch, under each policy.

    Parameters
    ----------
    plan : Plan
        Its world_size must be set; its remainder is only pointed out, all four are drawn.
    epoch, sub_epoch : int
        Whose steps; by default the first sub-epoch of epoch 0.

    Returns
    -------
    matplotlib.figure.Figure
        Four panels of bars, a group for each step and a bar for each rank: units of its own,
        padded ones, and ones that belong to the next epoch; dropped units are a bar of their own.

    Raises
    ------
    IndexPlanError
        If matplotlib is missing, world_size is open, or the sub-epoch is out of range.

    Examples
    --------
    >>> import indexplan as ip, indexplan.plot
    >>> figure = ip.plot.batch_sizes(ip.Plan(ip.Shuffle(103), world_size=4, batch_size=8))
    """
    figure = new_figure(8, 6)
    panels = figure.subplots(2, 2, sharey=True)
    ranks = sample(0, plan._world(), RANKS)  # noqa: SLF001
    where = (epoch, sub_epoch if sub_epoch is not None else 0)
    for axes, remainder in zip(panels.flat, REMAINDERS, strict=True):
        name = f'"{remainder}"' + (", this plan's" if remainder == plan.remainder else "")
        axes.set_title(name, loc="left", fontsize="medium")
        try:
            changed = plan if remainder == plan.remainder else plan.replace(remainder=remainder)
            _panel(axes, changed, where, ranks)
        except IndexPlanError as error:
            axes.text(0.5, 0.5, "not for this order", transform=axes.transAxes, ha="center")
            axes.set_xlabel(str(error).partition(";")[0], fontsize="x-small")
    for axes in panels[:, 0]:
        axes.set_ylabel("units of a rank's batch")
    handles = [_key(color, label) for label, color in _KINDS.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
    part = f", sub-epoch {where[1]}" if plan.sub_epochs > 1 else ""
    shown = of_many(len(ranks), plan._world(), "rank")  # noqa: SLF001
    figure.suptitle(f"Last batches of epoch {epoch}{part}: {shown}", x=0.01, ha="left")
    return figure


_KINDS = {"read once": BLUE, "of the next epoch": SKY, "padded": ORANGE, "dropped": RED}


def _key(color: str, label: str) -> Any:
    from matplotlib.patches import Patch

    return Patch(color=color, label=label)


def _panel(axes: Any, plan: Plan, where: tuple[int, int], ranks: Any) -> None:
    """Draw one policy: for every step a bar for each rank, and what is dropped after them."""
    stop = plan.num_steps(*where)
    first = max(plan.first_step(*where), stop - STEPS)
    steps = np.arange(first, stop)
    width = 0.8 / len(ranks)
    layout = plan._layout(*where)  # noqa: SLF001
    for i, rank in enumerate(ranks.tolist()):
        span = {"start_step": first, "stop_step": stop}
        sizes = plan.batch_sizes(*where, rank=rank, **span)
        own = np.array([plan.num_valid(*where, step=s, rank=rank) for s in steps.tolist()], int)
        later = np.zeros(len(steps), int)
        if plan.remainder == "carry" and len(steps) and layout.end > layout.num_units:
            runs = plan._batch_runs(*where, int(steps[-1]), rank)  # noqa: SLF001
            others = [b - a for e, a, b in runs if e != where[0]]
            later[-1] = sum(int(each.sum()) for each in others)
        at = steps + (i - (len(ranks) - 1) / 2) * width
        axes.bar(at, own - later, width * 0.9, color=BLUE)
        axes.bar(at, later, width * 0.9, bottom=own - later, color=SKY)
        axes.bar(at, sizes - own, width * 0.9, bottom=own, color=ORANGE, hatch="///")
    dropped = plan.account(*where).num_dropped
    few = stop < 10_000  # else only the first and last number fit
    labels = [str(s) if few or s in (first, stop - 1) else "" for s in steps.tolist()]
    if dropped:
        size = dropped / plan._world()  # noqa: SLF001
        axes.bar([stop], [size], 0.8, color=RED, hatch="xx")
        axes.annotate(f"{short(dropped)} units", (stop, size), ha="center", va="bottom", fontsize=8)
        labels.append("dropped")
    axes.set_xticks([*steps.tolist(), *([stop] if dropped else [])], labels=labels, fontsize=8)
    axes.set_xlabel("step", fontsize="small", color=GREY)
    axes.margins(y=0.12)
