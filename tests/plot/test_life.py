"""The picture of a run's life: attempts as rows, ranks as colours, void steps grey."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_hex

import indexplan as ip
from indexplan import plot
from indexplan.ledger.lines import RunLine
from indexplan.plot.life_figure import CUTS, ROWS, lived
from indexplan.plot.style import BAND, BLUE, ORANGE

PLAN = ip.Plan(ip.Shuffle(10_000), world_size=4, batch_size=10)


def read(ledger: ip.Ledger, plan: ip.Plan, num: int) -> ip.Plan:
    """Read some steps of an epoch, from where the run stands."""
    plan = plan.resume(ledger.cursor) if ledger.step else plan
    cursor = plan.cursor(0, step=plan.start.step + num)
    ledger.record(plan, cursor)
    return plan


def bars(figure: Any) -> set[tuple[str, float, float, float]]:
    """The colour, row, start and stop of each bar."""
    found = set()
    for bar in figure.axes[0].patches:
        row = round(bar.get_y() + bar.get_height() / 2, 6)
        stop = bar.get_x() + bar.get_width()
        found.add((to_hex(bar.get_facecolor()).upper(), row, bar.get_x(), stop))
    return found


def test_life(tmp_path: Path) -> None:
    """Each attempt has a row; ranks have colours; void steps are grey; changes have words."""
    ledger = ip.Ledger(tmp_path / "run.ledger")
    read(ledger, PLAN, 20)
    read(ledger, PLAN, 10)
    smaller = read(ledger, PLAN.replace(world_size=3), 30)
    ledger.rewind(40)
    order = ip.Without(smaller.order, [1, 2, 3], since=ledger.cursor)
    read(ledger, smaller.replace(order=order), 15)
    figure = plot.life(ledger)
    assert bars(figure) == {
        (BLUE.upper(), 0, 0, 30),
        (ORANGE.upper(), 0, 30, 40),
        (BAND.upper(), 0, 40, 60),
        (ORANGE.upper(), 1, 40, 55),
    }
    axes = figure.axes[0]
    assert ["1", "2"] == [label.get_text() for label in axes.get_yticklabels()]
    assert [(30.0, " world"), (40.0, " exclude")] == [
        (text.get_position()[0], text.get_text()) for text in axes.texts
    ]
    cuts = sorted(segment[0][0] for segment in axes.collections[0].get_segments())
    assert [20, 30, 40] == cuts
    assert ["4 ranks", "3 ranks", "void"] == [
        text.get_text() for text in figure.legends[0].get_texts()
    ]


def test_a_jump_has_its_word(tmp_path: Path) -> None:
    """Where a run skipped steps, the picture says so, as the ledger's own table does."""
    ledger = ip.Ledger(tmp_path / "run.ledger")
    read(ledger, PLAN, 20)
    for step, ranks in ((30, 4), (50, 2)):
        past = PLAN.replace(world_size=ranks).resume(PLAN.cursor(0, step=step))
        ledger.begin(past, skip=True)
        ledger.record(past, past.cursor(0, step=past.start.step + 10))
    texts = plot.life(ledger).axes[0].texts
    assert [(20.0, " skip"), (30.0, " skip, world")] == [
        (text.get_position()[0], text.get_text()) for text in texts
    ]
    assert ["skip", "skip, world"] == [
        ", ".join(row.split()[5:]).replace(",,", ",") for row in str(ledger).splitlines()[3:]
    ]


@given(st.randoms(use_true_random=False))
def test_against_lists(tmp_path_factory: pytest.TempPathFactory, drawn: random.Random) -> None:
    """Bars hold the steps that a list of them says count, or are void, attempt by attempt."""
    path = tmp_path_factory.mktemp("lives") / "run.ledger"
    ledger = ip.Ledger(path)
    steps: list[list[Any]] = []  # attempt, step, ranks, whether it is void
    attempt = 0
    for _ in range(drawn.randrange(1, 9)):
        if ledger.step and drawn.random() < 0.4:  # a return
            step = drawn.randrange(ledger.step)
            ledger.rewind(step)
            steps = [[*row[:3], row[3] or row[1] >= step] for row in steps]
            attempt += attempt == steps[-1][0]  # a second return in a row begins no other
        else:
            ranks, num = drawn.randrange(1, 4), drawn.randrange(1, 6)
            steps += [[attempt, ledger.step + i, ranks, False] for i in range(num)]
            read(ledger, PLAN.replace(world_size=ranks), num)
    found, marks = lived(ledger)
    listed = [
        [bar.attempt, step, bar.world_size, bar.void]
        for bar in found
        for step in range(bar.start, bar.stop)
    ]
    assert sorted(listed) == sorted(steps)
    num_runs = sum(isinstance(line, RunLine) for line in ledger._file.lines)
    assert num_runs - 1 == len(marks)


def test_many(tmp_path: Path) -> None:
    """Of many attempts the last ones are drawn, and of many resumes those with changes."""
    ledger = ip.Ledger(tmp_path / "run.ledger")
    read(ledger, PLAN, 5)
    for number in range(ROWS + 6):
        ledger.rewind(number)
        read(ledger, PLAN, 5)
    axes = plot.life(ledger).axes[0]
    assert ["8", "31"] == [axes.get_yticklabels()[i].get_text() for i in (0, -1)]
    assert "step of the run; the last 24 of 31 attempts" == axes.get_xlabel()
    for _ in range(CUTS):
        plan = PLAN.replace(world_size=2 if ledger.step > 100 else 4)
        read(ledger, plan.replace(batch_size=1), 1)
    cuts = plot.life(ledger).axes[0].collections[0].get_segments()
    assert 2 == len(cuts)
