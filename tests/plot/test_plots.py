"""Pictures show what the plan says: the data behind them, not their pixels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import indexplan as ip
from indexplan import plot
from indexplan.plot.drawing import evenly, labelled, rounded, short
from tests.cli.test_cli import run
from tests.support.figures import PLAN, heading, notes, shares
from tests.support.fresh import printed
from tests.support.refusals import EMPTY


def test_a_resumed_plan_is_drawn_where_it_goes_on() -> None:
    """Its first epoch is the one that is left, and in it the first sub-epoch that is left."""
    single = ip.Plan(ip.Shuffle(1000), world_size=2, batch_size=8, sub_epochs=3)
    rest = single.resume(single.cursor(epoch=4, sub_epoch=2, step=1))
    for draw in (plot.reading, plot.mixing):
        title = heading(draw(rest))[0]
        assert "epoch 4" in title, title
        assert "sub-epoch 2" in title, title
        assert "epoch 5" in heading(draw(rest, 5))[0]


@pytest.mark.parametrize(
    "plan",
    [
        ip.Plan(ip.Shuffle(1), world_size=1, batch_size=1),
        EMPTY,
        ip.Plan(ip.Shuffle(3), world_size=8, batch_size=256, remainder="carry", sub_epochs=5),
        ip.Plan(ip.Shuffle(10**12), world_size=4096, batch_size=256, remainder="pad"),
        ip.Plan(ip.Sequential(50), world_size=2, batch_size=[ip.Phase(0, 4, {"x": 1})]),
        ip.Plan(ip.Shuffle(90), world_size=3, global_batch_size=(2, 6)),
        PLAN.resume(PLAN.cursor(0, step=3)),
    ],
    ids=["one sample", "no steps", "empty", "1e12", "one phase", "global", "resumed"],
)
def test_any_plan(plan: ip.Plan, tmp_path: Path) -> None:
    """Every picture of every kind of plan is drawn, of the plan's own steps, and written."""
    start = plan.start.epoch, plan.start.sub_epoch
    figures = {name: getattr(plot, name)(plan, *start) for name in ("reading", "mixing")}
    num_steps = plan.steps(*start).stop - plan.steps(*start).start
    of = f"of {short(num_steps)} steps" if num_steps > 32 else f"{num_steps} step"
    if num_steps:
        assert of in figures["reading"].axes[0].get_xlabel()
        assert shares(figures["mixing"]).sum(axis=0) == pytest.approx(100)
    else:
        assert ["no steps here"] == notes(figures["reading"])
        assert ["no steps here"] * 2 == notes(figures["mixing"])
    for name, figure in figures.items():
        figure.savefig(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 500


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command draws a plan directory or a spec, to a new file, and nothing else."""
    ip.save(PLAN, tmp_path / "a.plan", epochs=[2])
    (tmp_path / "b.json").write_text(PLAN.resume(PLAN.cursor(1, step=3)).to_json())
    for name in ("a.plan", "b.json"):
        for kind in ("reading", "mixing"):
            out = str(tmp_path / f"{name}-{kind}.png")
            said = run(capsys, "plot", str(tmp_path / name), "-o", out, "--kind", kind)
            assert said.startswith(f"{out}: ")
            assert b"\x89PNG" == Path(out).read_bytes()[:4]
    out = str(tmp_path / "again.png")
    words = ["plot", str(tmp_path / "a.plan"), "-o", out]
    assert {"output": out, "kind": "reading"} == json.loads(
        run(capsys, *words, "--json", "--world-size", "2")
    )


@pytest.mark.slow
def test_plot_is_there_at_first_use() -> None:
    """`ip.plot` needs no import of its own."""
    code = "import indexplan as ip; assert 'plot' in dir(ip); print(ip.plot.reading.__name__)"
    assert "reading\n" == printed("-c", code)


def test_numbers_are_short() -> None:
    """What is written below a picture, and what is picked for it."""
    said = ["0", "999,999", "1M", "1M", "1.25B", "125B", "2T", "1e15"]
    numbers = (0, 999_999, 10**6, 999_999.9, 1_254_999_999, 125 * 10**9, 2 * 10**12, 10**15)
    assert said == [short(number) for number in numbers]
    assert ["999M", "1B"] == [short(number) for number in (999_400_000, 999_900_000)]
    assert [0, 33, 66, 99] == evenly(0, 100, 4)
    assert [5, 6] == evenly(5, 7, 4)
    assert [0, 10**30 - 1] == evenly(0, 10**30, 2)
    assert [3, 4, 5] == rounded(3, 6, 8)
    assert [3, 20, 40, 60, 80, 98] == rounded(3, 99, 9)
    for stop in (34, 100, 1000, 4096, 10**12):
        assert len(set(rounded(0, stop, 32))) == len(rounded(0, stop, 32)) <= 32
    assert [[0, 1, 2], [0, 3, 6, 9, 12, 16], [0, 2, 4, 6, 8, 10, 12, 14, 15]] == [
        labelled(count, 8) for count in (3, 17, 16)
    ]
