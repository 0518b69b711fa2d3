"""A schedule over the run: how large a step is, and the parameters in force."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from indexplan.errors import wrong
from indexplan.plan import Plan
from indexplan.plot.drawing import BLUE, GREEN, GREY, LIGHT, new_figure, of_many, sample
from indexplan.seeds import check_epoch

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUB_EPOCHS, LINES, PARAMETERS = 1000, 130, 4  # at most so many are shown


def schedule(plan: Plan, epochs: Iterable[int] | None = None) -> Figure:
    """Draw the size of steps and the parameters over the run, with lines between sub-epochs.

    Parameters
    ----------
    plan : Plan
        With a world_size, or a global_batch_size.
    epochs : iterable of int, optional
        The epochs; by default from 0 to one past the last phase's.

    Returns
    -------
    matplotlib.figure.Figure
        One panel for the units of a step over all ranks, and one for each parameter.

    Raises
    ------
    IndexPlanError
        If matplotlib is missing, there is no epoch, or the plan has no global batch size yet.

    Examples
    --------
    >>> import indexplan as ip, indexplan.plot
    >>> phases = [ip.Phase(0, 32, {"resolution": 128}), ip.Phase((2, 0), 16, {"resolution": 192})]
    >>> figure = ip.plot.schedule(ip.Plan(ip.Shuffle(1000), world_size=2, batch_size=phases))
    """
    chosen = sorted({check_epoch(epoch) for epoch in epochs or _default(plan)})
    if not chosen:
        raise wrong("epochs", "at least one epoch", chosen, "leave it out")
    names = list(dict.fromkeys(name for phase in plan.phases for name in dict(phase.parameters)))
    shown = names[:PARAMETERS]
    figure = new_figure(8, 2.6 + 1.3 * len(shown))
    heights = [2, *[1] * len(shown)]
    panels = np.atleast_1d(figure.subplots(1 + len(shown), 1, sharex=True, height_ratios=heights))
    rows = _rows(plan, chosen)
    edges = np.array([(start, stop) for start, stop, _, _ in rows]).reshape(-1, 2)
    sizes = np.array([size for _, _, size, _ in rows])
    panels[0].hlines(sizes, edges[:, 0], edges[:, 1], color=BLUE, linewidth=2.5)
    panels[0].set_ylim(0, 1.15 * max(sizes, default=1))
    panels[0].set_ylabel("units of a step\n(mean, all ranks)")
    for axes, name in zip(panels[1:], shown, strict=True):
        _parameter(axes, name, rows)
    total = len(chosen) * plan.sub_epochs
    for axes in panels:
        if total <= LINES:
            lines = [
                epoch + s / plan.sub_epochs for epoch in chosen for s in range(plan.sub_epochs)
            ]
            for line in lines:
                axes.axvline(line, color=LIGHT, linewidth=0.8, zorder=0)
        for epoch in [*chosen, chosen[-1] + 1]:
            axes.axvline(epoch, color=GREY, linewidth=0.8, zorder=0)
    more = f" (first {PARAMETERS} of {len(names)} parameters)" if len(names) > PARAMETERS else ""
    panels[-1].set_xlabel(
        f"epoch, of {of_many(plan.sub_epochs, plan.sub_epochs, 'sub-epoch')} each{more}"
    )
    panels[-1].xaxis.get_major_locator().set_params(integer=True)
    panels[0].set_title("Schedule", loc="left")
    return figure


def _default(plan: Plan) -> range:
    last = plan.phases[-1].at
    epoch = last // plan.order.num_units(0) if isinstance(last, int) else last[0]
    return range(min(epoch + 2, 2**32))


def _rows(plan: Plan, epochs: list[int]) -> list[tuple[float, float, float, Any]]:
    """Return (start, stop, mean units of a step, phase) of spans; starts and stops in epochs."""
    rows = []
    for number in sample(0, len(epochs) * plan.sub_epochs, SUB_EPOCHS).tolist():
        epoch, sub_epoch = epochs[number // plan.sub_epochs], number % plan.sub_epochs
        if plan.resumed is not None and (epoch, sub_epoch) < plan.resumed[:2]:
            continue
        steps = plan._layout(epoch, sub_epoch)  # noqa: SLF001
        for span in steps.spans:
            start = epoch + span.start / steps.num_units
            stop = start + span.length / steps.num_units
            size = span.length / span.num_steps
            rows.append((start, stop, size, plan.phases[span.phase]))
    return rows


def _parameter(axes: Any, name: str, rows: list[tuple[float, float, float, Any]]) -> None:
    """Draw a parameter: numbers as heights, other values as rows of their own."""
    values = [dict(phase.parameters).get(name) for *_, phase in rows]
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
    if numbers:
        heights = [float(value) for value in values if value is not None]
    else:
        words = list(dict.fromkeys("none" if v is None else str(v) for v in values))
        heights = [float(words.index("none" if v is None else str(v))) for v in values]
        axes.set_yticks(range(len(words)), labels=[word[:16] for word in words])
        axes.set_ylim(-0.5, len(words) - 0.5)
    starts, stops = [row[0] for row in rows], [row[1] for row in rows]
    axes.hlines(heights, starts, stops, color=GREEN, linewidth=2.5)
    if numbers and heights:
        low, high = min(heights), max(heights)
        pad = 0.2 * (high - low) or 0.5 * abs(high) or 1
        axes.set_ylim(low - pad, high + pad)
    axes.set_ylabel(name[:24])
