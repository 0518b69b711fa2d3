"""Work of each rank, without balance and with it: how long ranks would wait for each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from indexplan.errors import Cure, invalid
from indexplan.keywords import named
from indexplan.plan.plan import Plan, check_plan
from indexplan.plot import drawing, style
from indexplan.reports.rank_work import work_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RANKS = 64  # with more ranks, a step is a line from the least work to the most, with a point there


@named
def work(
    plan: Plan,
    epoch: int | None = None,
    sub_epoch: int | None = None,
) -> Figure:
    """Draw how much work each rank has in a step, without balance and with it.

    Use it to see whether a balance is worth having: all ranks wait for the slowest one.

    Parameters
    ----------
    plan : Plan
        With a balance and a world_size.
    epoch, sub_epoch : int, optional
        Which steps; by default the first sub-epoch that is left to read.

    Returns
    -------
    matplotlib.figure.Figure
        Two panels, without balance and with it: for each of up to 32 steps, a point for each rank,
        as a multiple of the step's mean; with more than 64 ranks, a line from the least to the
        most, and a point at the most. The dark line is the costliest unit, which no balance can
        divide.

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
        cure: str = Cure(
            "use plan.replace(balance=indexplan.Balance(lengths))", "build a plan with --balance"
        )
        raise invalid("balance", "set for this", None, cure)
    epoch, sub_epoch = drawing.first_of(plan, epoch, sub_epoch)
    found = work_of(plan, epoch, sub_epoch)
    if found is None:
        cure = "pass an epoch and sub_epoch with steps, and up to 2**21 ranks"
        raise invalid("a picture of work", "of a step, with few ranks", 0, cure)
    figure = style.new_figure(8, 3)
    both = style.panels(figure, 1, 2, sharey=True)[0]
    means = found.as_dealt.mean(axis=1, keepdims=True)
    before, after, _ = found.ratios
    steps = np.array(found.steps)
    rows = (
        ("as dealt", style.ORANGE, found.as_dealt, before),
        ("balanced", style.BLUE, found.balanced, after),
    )
    num_ranks = found.as_dealt.shape[1]
    many = num_ranks > RANKS
    for axes, (name, color, costs, ratio) in zip(both, rows, strict=True):
        work = costs / means
        if many:
            axes.vlines(steps, work.min(axis=1), work.max(axis=1), color=color, linewidth=1.5)
            work = work.max(axis=1, keepdims=True)
        x = np.repeat(steps, work.shape[1])
        axes.scatter(x, work.ravel(), s=9, color=color, alpha=1 if many else 0.6, linewidths=0)
        axes.step(
            steps,
            found.largest / means[:, 0],
            where="mid",
            color=style.DARK,
            linewidth=0.8,
            label="the costliest unit alone" if color == style.BLUE else None,
        )
        style.panel_title(axes, f"{name}: highest {ratio:.3f} on average")
        style.counting(axes.xaxis, 4)
        axes.set_xlabel(f"step ({drawing.of_many(len(steps), found.num_steps, 'step')})")
    style.measuring(both[0].yaxis)
    both[0].set_ylim(bottom=0)
    both[0].set_ylabel("work of a rank / mean")
    style.explain(figure)
    part = f", sub-epoch {found.sub_epoch}" if plan.sub_epochs > 1 else ""
    title = f"Work of {drawing.of_many(num_ranks, num_ranks, 'rank')}: epoch {found.epoch}{part}"
    caption = (
        "All ranks of a step wait for the highest point, so the closer points are to 1, the less "
        "they wait."
    )
    style.heading(figure, title, caption)
    return figure
