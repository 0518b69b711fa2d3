"""Who reads what, when: steps across, ranks down, colour is the index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from indexplan.plan import Plan
from indexplan.plot.drawing import LIGHT, RED, new_figure, of_many, sample, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RANKS, STEPS, SLOTS = 32, 48, 12  # at most so many are shown


def reading(plan: Plan, epoch: int = 0, sub_epoch: int | None = None) -> Figure:
    """Draw which index each rank reads in each step of a sub-epoch.

    Parameters
    ----------
    plan : Plan
        Its world_size must be set.
    epoch, sub_epoch : int
        Which steps; by default the first sub-epoch of epoch 0.

    Returns
    -------
    matplotlib.figure.Figure
        Of one image: a row for each rank, and in each step a column for each slot of the batch.
        Slots that a smaller batch lacks are grey, padded ones crossed.

    Raises
    ------
    IndexPlanError
        If matplotlib is missing, world_size is open, or the sub-epoch is out of range.

    Examples
    --------
    >>> import indexplan as ip, indexplan.plot
    >>> figure = ip.plot.reading(ip.Plan(ip.Shuffle(1000), world_size=4, batch_size=8))
    """
    figure = new_figure(8, 4)
    axes = figure.add_subplot()
    where = (epoch, sub_epoch if sub_epoch is not None else 0)
    first, stop = plan.first_step(*where), plan.num_steps(*where)
    steps, ranks = sample(first, stop, STEPS), sample(0, plan._world(), RANKS)  # noqa: SLF001
    batches = {
        (i, j): plan.batch(*where, step=step, rank=rank)
        for i, rank in enumerate(ranks.tolist())
        for j, step in enumerate(steps.tolist())
    }
    widest = max((len(batch) for batch in batches.values()), default=1)
    slots = sample(0, max(widest, 1), SLOTS)
    # (ranks, steps * slots): nan where a batch has no such slot
    image = np.full((len(ranks), max(1, len(steps)) * len(slots)), np.nan)
    padded: list[tuple[float, float]] = []
    for (i, j), batch in batches.items():
        there = slots[slots < len(batch)]
        image[i, j * len(slots) : j * len(slots) + len(there)] = batch[there]
        num_valid = plan.num_valid(*where, step=int(steps[j]), rank=int(ranks[i]))
        wrapped = np.flatnonzero(there >= num_valid)
        padded += [(j * len(slots) + k + 0.5, i + 0.5) for k in wrapped.tolist()]
    axes.set_facecolor(LIGHT)
    mesh = axes.pcolormesh(
        np.ma.masked_invalid(image), cmap="viridis", vmin=0, vmax=plan.order.num_samples - 1
    )
    if padded:
        x, y = zip(*padded, strict=True)
        axes.scatter(x, y, s=14, marker="x", color=RED, label="padded")
        figure.legend(loc="outside lower right", fontsize="small")
    figure.colorbar(mesh, label="dataset index", format=lambda value, _: short(value))
    for j in range(1, len(steps)):
        axes.axvline(j * len(slots), color="white", linewidth=0.8)
    for i in range(1, len(ranks)):
        axes.axhline(i, color="white", linewidth=0.8)
    columns, rows = sample(0, len(steps), 8), sample(0, len(ranks), 8)
    axes.set_xticks((columns + 0.5) * len(slots), labels=[short(steps[i]) for i in columns])
    axes.set_yticks(rows + 0.5, labels=[short(ranks[i]) for i in rows])
    axes.invert_yaxis()
    part = f", sub-epoch {where[1]}" if plan.sub_epochs > 1 else ""
    axes.set_title(f"Who reads what, when: epoch {epoch}{part}", loc="left")
    shown = [of_many(len(ranks), plan._world(), "rank")]  # noqa: SLF001
    shown += [of_many(len(steps), stop - first, "step"), of_many(len(slots), widest, "slot")]
    axes.set_xlabel(f"step ({', '.join(shown)})")
    axes.set_ylabel("rank")
    if not len(steps):
        axes.text(0.5, 0.5, "no steps here", transform=axes.transAxes, ha="center")
    return figure
