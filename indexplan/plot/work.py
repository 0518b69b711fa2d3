"""Work per rank, without balance and with it: how long ranks would wait for each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from indexplan.errors import wrong
from indexplan.plan.plan import Plan, check_plan
from indexplan.plan.work import work_of
from indexplan.plot.drawing import BLUE, GREY, ORANGE, labelled, new_figure, of_many, ticks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOM = 40  # characters of tick labels below a panel


def work(plan: Plan, epoch: int = 0, sub_epoch: int | None = None) -> Figure:
    """Draw how much work each rank has in a step, without balance and with it.

    Parameters
    ----------
    plan : Plan
        With a balance and a world_size.
    epoch, sub_epoch : int
        Which steps; by default the first sub-epoch of epoch 0.

    Returns
    -------
    matplotlib.figure.Figure
        Two panels, without balance and with it: for each of up to 32 steps, a point for each rank,
        as a multiple of the step's mean. The line is the costliest unit, which no balance divides.

    Raises
    ------
    IndexPlanError
        If matplotlib is missing, the plan has no balance, its world_size is open or above 2**21, or
        the sub-epoch is out of range or has no steps.

    Examples
    --------
    >>> import indexplan as ip
    >>> lengths = [1 + i**2 for i in range(100)]
    >>> plan = ip.Plan(ip.Shuffle(100), world_size=4, batch_size=5, balance=ip.Balance(lengths))
    >>> figure = ip.plot.work(plan)
    """
    check_plan("plan", plan)
    if plan.balance is None:
        cure = "use plan.replace(balance=indexplan.Balance(lengths))"
        raise wrong("balance", "set for this", None, cure)
    found = work_of(plan, epoch, 0 if sub_epoch is None else sub_epoch)
    if found is None:
        cure = "name a sub-epoch with steps, and up to 2**21 ranks"
        raise wrong("a picture of work", "of a step, with few ranks", 0, cure)
    figure = new_figure(8, 3.5)
    panels = figure.subplots(1, 2, sharey=True)
    means = found.as_dealt.mean(axis=1, keepdims=True)
    before, after, _ = found.ratios
    at = np.arange(len(found.steps))
    rows = (("as dealt", ORANGE, found.as_dealt, before), ("balanced", BLUE, found.balanced, after))
    for axes, (name, color, costs, ratio) in zip(panels, rows, strict=True):
        x = np.repeat(at, costs.shape[1])
        axes.scatter(x, (costs / means).ravel(), s=9, color=color, alpha=0.6, linewidths=0)
        axes.step(at, found.largest / means[:, 0], where="mid", color=GREY, linewidth=0.8)
        axes.set_title(f"{name}: highest {ratio:.3f} on average", loc="left", fontsize="medium")
        columns = labelled(len(found.steps), 6)
        labels, what = ticks([found.steps[j] for j in columns], "step", ROOM)
        axes.set_xticks([at[j] for j in columns], labels=labels)
        axes.set_xlabel(f"{what} ({of_many(len(at), found.num_steps, 'step')})")
    panels[0].set_ylim(bottom=0)
    panels[0].set_ylabel("work of a rank / mean")
    part = f", sub-epoch {found.sub_epoch}" if plan.sub_epochs > 1 else ""
    ranks = of_many(found.as_dealt.shape[1], found.as_dealt.shape[1], "rank")
    title = f"Work of {ranks}: epoch {found.epoch}{part}; grey: the costliest unit alone"
    figure.suptitle(title, x=0.01, ha="left", fontsize="medium")
    return figure
