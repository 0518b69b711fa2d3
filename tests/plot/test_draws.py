"""The picture of draws shows the counts and aims of `indexplan.draws`, with the groups' names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import indexplan as ip
from indexplan import plot
from indexplan.cli import main
from indexplan.reports.shares_drawn import course_of
from tests.orders.test_groups import Leaning
from tests.reports.test_draws import Many, mixed_bins
from tests.support.figures import heading, legend


def test_every_group_is_drawn() -> None:
    """Points are shares of what is read from one point to the next, lines how far ahead it is."""
    plan = ip.Plan(Leaning(100), world_size=2, batch_size=5)
    found = course_of(plan, None)
    above, below = plot.draws(plan).axes
    assert ["low", "high"] == [line.get_label() for line in above.lines]
    for group, line in enumerate(above.lines):
        expected = 10 * np.diff(found.drawn[:, group], prepend=0)  # of 10 samples each, percent
        np.testing.assert_allclose(line.get_ydata(), expected)
    for group, line in enumerate(below.lines[:2]):
        ahead = (found.drawn - found.aimed)[:, group]
        np.testing.assert_allclose(line.get_ydata(), ahead)


def test_names_are_written_as_they_are(tmp_path: Path) -> None:
    """Matplotlib would read formulas between dollars, and leave out what begins with _."""
    names = ["_web", "$x^$", "US$", "a\nb"]
    sources = {name: ip.Shuffle(9, seed=i) for i, name in enumerate(names)}
    plan = ip.Plan(ip.Mixture(sources, dict.fromkeys(names, 1)), world_size=2, batch_size=3)
    figure = plot.draws(plan)
    plot.save(figure, tmp_path / "a.svg")
    assert [" _web", "\\$x^\\$", "US\\$", "a\\nb"] == legend(figure)  # \\$ is drawn as $


def test_the_words_on_a_mixture_say_how_even_it_is() -> None:
    """The bound is that of one phase of weights: in others it may be another."""
    sources = {"a": ip.Shuffle(70, seed=1), "b": ip.Shuffle(10, seed=2)}
    mixture = ip.Mixture(sources, {"a": 7, "b": 1})
    words = "Each source is within 0.88 of its share at every place of a run."
    assert heading(plot.draws(ip.Plan(mixture, world_size=2, batch_size=5)))[1].endswith(words)
    changed = mixture.with_phase(40, {"a": 1, "b": 1})
    assert words not in heading(plot.draws(ip.Plan(changed, world_size=2, batch_size=5)))[1]


def test_of_many_groups_both_ends_are_drawn() -> None:
    """Three at each end, and the caption says so; an epoch without steps has an empty picture."""
    plan = ip.Plan(Many(1000), world_size=1, batch_size=10)
    rest = plan.resume(plan.cursor(0, step=50))
    figure = plot.draws(rest)
    assert heading(figure)[1].startswith("6 of 1,000 groups, those drawn most and least. ")
    assert 6 == len(figure.axes[0].lines)
    full = plan.replace(batch_size=800, remainder="drop")
    empty = plot.draws(full.resume(plan.cursor(0, step=50)))
    assert "epoch 0, 0 samples" in heading(empty)[0]


def test_of_a_mixture_of_bins_bins_are_drawn() -> None:
    """And the picture says so."""
    figure = plot.draws(ip.Plan(mixed_bins(), world_size=2, batch_size=5))
    above, below = figure.axes
    assert ("% of the bins", "bins ahead") == (above.get_ylabel(), below.get_ylabel())
    assert "epoch 0, 40 bins" in heading(figure)[0]
    for line in above.lines:
        np.testing.assert_allclose(line.get_ydata(), 50)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`plot --kind draws`, `show` and `explain` name the groups of a stored plan."""
    plan = ip.Plan(Leaning(100), world_size=2, batch_size=5)
    root = str(tmp_path / "a.plan")
    ip.save(plan, root, epochs=[3])
    assert 0 == main(["show", root])
    assert f"\n{ip.draws(plan, 3)}\n" in capsys.readouterr().out
    assert 0 == main(["explain", root, "--index", "7"])
    assert ", of low: step" in capsys.readouterr().out
    picture = str(tmp_path / "a.png")
    assert 0 == main(["plot", root, "--kind", "draws", "-o", picture])
    assert Path(picture).stat().st_size > 1000
