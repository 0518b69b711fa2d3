"""Life: which steps a run has read on how many ranks, its returns to checkpoints, its changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from indexplan.errors import counted, invalid
from indexplan.keywords import named
from indexplan.ledger.ledger import Ledger
from indexplan.ledger.shown import listed
from indexplan.plot import drawing, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROWS = 24  # at most this many attempts are drawn
CUTS = 300  # resumes; of more, those that changed the plan are drawn
HEIGHT = 0.5  # of a bar, of the 1 that a row has
LETTERS = 110  # that fit into the width of the picture


class Bar(NamedTuple):
    """Steps [start, stop) of a run that were read on so many ranks, in one attempt."""

    attempt: int
    start: int
    stop: int
    world_size: int
    void: bool


class Mark(NamedTuple):
    """A step at which an attempt continued: after a resume or a jump, or with another plan."""

    attempt: int
    step: int
    words: str  # that it has skipped steps, and why the plan is another one; "" if it is the same


@named
def life(ledger: Ledger) -> Figure:
    """Draw the life of a run: its steps, resumes, ranks, returns to checkpoints and changes.

    Use it to see what became of a run before you ask its ledger for more.

    Parameters
    ----------
    ledger : Ledger
        Of a run that has read a step.

    Returns
    -------
    matplotlib.figure.Figure
        A row for each attempt, the first one at the top: a return to a checkpoint begins the next.
        Bars are steps, coloured by the number of ranks, and grey where they are void; a line
        between bars is a resume, and words at it say what has changed, as far as they fit. Of more
        than 24 attempts the last ones are drawn; of more than 300 resumes, those with changes.

    Raises
    ------
    IndexPlanError
        If matplotlib is missing, or no ledger of a run that has read a step is given.

    Examples
    --------
    >>> import indexplan as ip
    >>> plan = ip.Plan(ip.Shuffle(1000), world_size=4, batch_size=10)
    >>> ledger = ip.Ledger("life.ledger")
    >>> ledger.record(plan, plan.cursor(epoch=1, step=5))
    >>> smaller = plan.replace(world_size=2).resume(ledger.cursor)
    >>> ledger.record(smaller, smaller.cursor(epoch=2, step=0))
    >>> figure = ip.plot.life(ledger)
    """
    cure = "pass indexplan.Ledger(path) of a run that has read a step"
    if not isinstance(ledger, Ledger):
        raise invalid("ledger", "a Ledger", ledger, cure)
    bars, marks = lived(ledger)
    if not bars:
        raise invalid("a run's life", "of at least one step", 0, cure)
    total = max(each.attempt for each in bars) + 1
    first = max(0, total - ROWS)
    shown = [each for each in bars if each.attempt >= first]
    figure = style.new_figure(8, 1.1 + 0.42 * min(total, ROWS))
    axes = style.panels(figure)[0, 0]
    axes.set_xlim(0, max(each.stop for each in shown))
    axes.set_ylim(min(total, ROWS) - 0.5, -0.8)
    _bars(axes, shown, first)
    _marks(axes, [each for each in marks if each.attempt >= first], first)
    axes.set_yticks(range(min(total, ROWS)), [str(each + 1) for each in range(first, total)])
    axes.grid(visible=False)
    axes.set_ylabel("attempt")
    words = "step of the run"
    if first:
        words += f"; the last {drawing.of_many(ROWS, total, 'attempt')}"
    axes.set_xlabel(words)
    style.explain(figure)
    title = f"A run of {counted(ledger.step, 'step')}"
    caption = (
        "A return to a checkpoint begins a new row: the steps that it made void are grey. Where a "
        "bar is cut, the run was resumed; words say what changed."
    )
    style.heading(figure, title, caption)
    return figure


def lived(ledger: Ledger) -> tuple[list[Bar], list[Mark]]:
    """Return the stretches of steps of a run, attempt by attempt, and where it continued."""
    bars: list[Bar] = []
    marks: list[Mark] = []
    attempt, before = 0, None
    history = ledger.history
    history.check()  # a forged line may claim more steps than a picture can be wide
    for segment, world_size, void, words in listed(history):
        if before is not None and segment.line != before.line:
            attempt += segment.step < before.end
            marks.append(Mark(attempt, segment.step, ", ".join(words)))
        before = segment
        bar = Bar(attempt, segment.step, segment.end, world_size, void)
        if bars and (bars[-1].attempt, *bars[-1][3:]) == (attempt, world_size, void):
            bar = bar._replace(start=bars.pop().start)  # continued, with nothing else to see
        bars.append(bar)
    return bars, marks


def _bars(axes: Axes, bars: list[Bar], first: int) -> None:
    """Draw the steps, those of one number of ranks after the other, and those that are void."""
    worlds = list(dict.fromkeys(bar.world_size for bar in bars if not bar.void))
    kinds: list[tuple[str, str, list[Bar]]] = []
    for world, color in zip(worlds, style.COLORS, strict=False):
        of = [bar for bar in bars if not bar.void and bar.world_size == world]
        kinds.append((counted(world, "rank"), color, of))
    others = [bar for bar in bars if not bar.void and bar.world_size in worlds[len(style.COLORS) :]]
    kinds.append(("other numbers of ranks", style.GREY, others))
    kinds.append(("void", style.BAND, [bar for bar in bars if bar.void]))
    for name, color, of in kinds:
        if of:
            axes.barh(
                [bar.attempt - first for bar in of],
                [bar.stop - bar.start for bar in of],
                left=[bar.start for bar in of],
                height=HEIGHT,
                color=color,
                label=name,
                hatch="//" if name == "void" else None,
                edgecolor="white",
                linewidth=0,
            )


def _marks(axes: Axes, marks: list[Mark], first: int) -> None:
    """Draw where the run continued, and say at the first ones that fit what changed there."""
    cuts = marks if len(marks) <= CUTS else [mark for mark in marks if mark.words]
    rows = np.array([mark.attempt - first for mark in cuts], float)
    steps = [mark.step for mark in cuts]
    axes.vlines(steps, rows - HEIGHT / 2, rows + HEIGHT / 2, color="white", linewidth=1.5)
    taken: dict[int, float] = {}  # where the words of each row stop
    letter = axes.get_xlim()[1] / LETTERS
    for mark in marks:
        row = mark.attempt - first
        length = (len(mark.words) + 1) * letter
        left = max(0, min(mark.step, axes.get_xlim()[1] - length))
        if not mark.words or left < taken.get(row, -1):
            continue
        taken[row] = left + length
        text = axes.text(
            left, row - HEIGHT / 2, f" {mark.words}", va="bottom", fontsize=style.SMALL
        )
        text.set(color=style.DARK, clip_on=False)
