"""Reading: which index each rank reads in each step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from indexplan.keywords import named
from indexplan.partition.ranks import share
from indexplan.partition.steps import Steps
from indexplan.plan.plan import Plan, check_plan, layout_of
from indexplan.plot import drawing, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RANKS, STEPS, SLOTS = 32, 32, 12  # at most this many are shown
ROOM = 60  # characters of tick labels below the picture; at most 8 labels


@named
def reading(
    plan: Plan,
    epoch: int | None = None,
    sub_epoch: int | None = None,
    *,
    values: Any = None,
) -> Figure:
    """Draw which index each rank reads in each step of a sub-epoch, or a value of each sample.

    Parameters
    ----------
    plan : Plan
        Its world_size must be set.
    epoch, sub_epoch : int, optional
        Which steps; by default the first sub-epoch that is left to read.
    values : array_like of numbers, shape (num_samples,), or path of a .npy file, optional
        What the colours show in place of the index: a number of each sample, such as its length,
        or the score that a curriculum sorts by.

    Returns
    -------
    matplotlib.figure.Figure
        One image: a row for each rank, and for each step a column for each slot of the batch, which
        holds one sample. Slots that a smaller batch does not have are hatched, padded ones are
        crossed. Steps and ranks that do not follow each other have wide gaps between them.

    Raises
    ------
    IndexPlanError
        If matplotlib is missing, world_size is open, the sub-epoch is out of range, or `values`
        are not one finite number for each sample.

    Examples
    --------
    >>> import indexplan as ip
    >>> figure = ip.plot.reading(ip.Plan(ip.Shuffle(1000), world_size=4, batch_size=8))
    """
    check_plan("plan", plan)
    layout = layout_of(plan)
    figure = style.new_figure(8, 3.7)
    world_size = layout.world_size
    epoch, sub_epoch = drawing.first_of(plan, epoch, sub_epoch)
    steps = layout.steps(epoch, sub_epoch)
    num_steps = steps.num_steps - steps.first_step
    part = f", sub-epoch {steps.sub_epoch}" if plan.sub_epochs > 1 else ""
    title = f"Who reads what, when: epoch {epoch}{part}"
    axes = style.panels(figure)[0, 0]
    axes.grid(visible=False)
    if not num_steps:
        style.nothing_here(axes, "no steps here")
        axes.set_axis_off()
        style.heading(figure, title, "There are no steps, so nothing is read.")
        return figure
    numbers = drawing.rounded(steps.first_step, steps.num_steps, STEPS)
    ranks = drawing.rounded(0, world_size, RANKS)
    whole = plan.order.deals_bins or plan.balance is not None
    cells = _cells_of_batches if whole else _cells
    image, padded, widest = cells(plan, steps, ranks, numbers)
    num_slots = image.shape[2]
    gap = num_slots // 4 + 1 if len(numbers) < num_steps else 0
    each = num_slots + gap  # columns of a step
    low, high = 0.0, plan.order.num_samples - 1.0
    if values is not None:
        column = drawing.values_of(plan, values)
        there = ~np.isnan(image)
        image[there] = column[image[there].astype(np.int64)]
        low, high = column.min(), column.max()
    handles = _draw(axes, image, padded, gap, (low, high))
    if handles:
        style.explain(figure, handles=handles)
    bar = figure.colorbar(axes.collections[0], pad=0.01)
    (style.counting if values is None else style.measuring)(bar.ax.yaxis)
    bar.ax.tick_params(labelsize=style.SMALL, color=style.DARK, labelcolor=style.DARK, length=3)
    bar.set_label(
        "dataset index" if values is None else "value", fontsize=style.WORDS, color=style.DARK
    )
    for j in range(1, len(numbers)):
        axes.axvspan(j * each - gap, j * each, color="white", linewidth=0 if gap else 0.8)
    for i in range(1, len(ranks)):
        axes.axhline(i, color="white", linewidth=0.8 if len(ranks) == world_size else 2)
    # whole numbers, as steps next to each other would have the same short ones
    fitting = min(8, ROOM // len(f"{numbers[-1]:,}"))
    columns, rows = drawing.labelled(len(numbers), fitting), drawing.labelled(len(ranks), 8)
    axes.set_xticks(
        [j * each + num_slots / 2 for j in columns], labels=[f"{numbers[j]:,}" for j in columns]
    )
    axes.set_yticks([i + 0.5 for i in rows], labels=[drawing.short(ranks[i]) for i in rows])
    axes.invert_yaxis()
    shown = [
        drawing.of_many(len(ranks), world_size, "rank"),
        drawing.of_many(len(numbers), num_steps, "step"),
    ]
    axes.set_xlabel(f"step ({', '.join([*shown, drawing.of_many(num_slots, widest, 'slot')])})")
    axes.set_ylabel("rank")
    alike = "neighbours in the dataset" if values is None else "samples of like values"
    caption = f"Noise is a full shuffle; bands of one colour are ranks or steps that read {alike}."
    style.heading(figure, title, caption)
    return figure


Cells = tuple[NDArray[np.float64], NDArray[np.bool_], int]


def _cells(plan: Plan, steps: Steps, ranks: list[int], numbers: list[int]) -> Cells:
    """Return the indices of the slots shown, which slots are padded, and the largest batch's size.

    The first two have shape (ranks, steps, slots); an index is nan if there is no such slot. Only
    the indices shown are computed, however large the batches are.
    """
    world_size = layout_of(plan).world_size
    places = [[share(steps, world_size, rank, step) for step in numbers] for rank in ranks]
    widest = max(stop - start for row in places for start, stop in row)
    slots = drawing.evenly(0, widest, SLOTS)
    image = np.full((len(ranks), len(numbers), len(slots)), np.nan)
    padded = np.zeros(image.shape, bool)
    found: dict[int, tuple[list[int], list[tuple[int, int, int]]]] = {}  # by epoch
    for i, row in enumerate(places):
        for j, (start, stop) in enumerate(row):
            for k, slot in enumerate(slots):
                place = start + slot
                if place < stop:
                    ((epoch, position, _),) = steps.positions(place, place + 1)
                    positions, cells = found.setdefault(epoch, ([], []))
                    positions.append(position)
                    cells.append((i, j, k))
                    padded[i, j, k] = steps.valid(place, place + 1) == 0
    for epoch, (positions, cells) in found.items():
        image[tuple(np.array(cells).T)] = plan.order.take(epoch, positions)
    return image, padded, widest


def _cells_of_batches(plan: Plan, steps: Steps, ranks: list[int], numbers: list[int]) -> Cells:
    """Return what `_cells` does, for plans whose batches have to be read whole to find a sample."""
    where = steps.epoch, steps.sub_epoch
    asked = [
        (i, j, {"step": s, "rank": r}) for i, r in enumerate(ranks) for j, s in enumerate(numbers)
    ]
    widest = max(len(plan.batch(*where, **batch)) for _, _, batch in asked)
    slots = np.array(drawing.evenly(0, widest, SLOTS), np.int64)
    image = np.full((len(ranks), len(numbers), len(slots)), np.nan)
    padded = np.zeros(image.shape, bool)
    for i, j, batch in asked:
        units = plan.units(*where, **batch)
        there = slots[slots < len(units.samples)]
        image[i, j, : len(there)] = units.samples[there]
        padded[i, j, : len(there)] = there >= units.offsets[units.num_valid]
    return image, padded, widest


def _draw(
    axes: Any,
    image: NDArray[np.float64],
    padded: NDArray[np.bool_],
    gap: int,
    between: tuple[float, float],
) -> list[Any]:
    """Draw the cells, with a gap of some columns between steps; return handles for the legend."""
    from matplotlib.patches import Patch

    num_ranks, num_steps, num_slots = image.shape
    gaps = np.full((num_ranks, num_steps, gap), np.nan)
    flat = np.concatenate([image, gaps], axis=2).reshape(num_ranks, -1)
    flat = flat[:, : flat.shape[1] - gap]  # none after the last step
    axes.patch.set(facecolor=style.LIGHT, hatch="////", edgecolor=style.GREY, linewidth=0)
    low, high = between
    axes.pcolormesh(np.ma.masked_invalid(flat), cmap="viridis", vmin=low, vmax=high)
    handles: list[Any] = []
    if np.isnan(image).any():
        handles.append(
            Patch(
                facecolor=style.LIGHT,
                hatch="////",
                edgecolor=style.GREY,
                label="no such slot: a smaller batch",
            )
        )
    if padded.any():
        i, j, k = np.nonzero(padded)
        x = j * (num_slots + gap) + k + 0.5
        crosses = axes.scatter(x, i + 0.5, s=14, marker="x", color=style.RED, label="padded")
        handles.append(crosses)
    return handles
