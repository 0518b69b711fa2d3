"""Balance on the command line: a plan that is built with it, shown and drawn."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import indexplan as ip
from tests.cli.test_cli import run
from tests.errors.catalogue.made import array, without_steps

BALANCE = ["--balance", "Balance('my lengths.npy')"]
LENGTHS = [1 + 7 * i % 20 for i in range(60)]
SPEC = ["--num-samples=60", "--order=Shuffle(seed=3)", "--world-size=4", "--batch-size=5"]
PLAN = ip.Plan(ip.Shuffle(60, seed=3), world_size=4, batch_size=5)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a column of lengths."""
    np.save(tmp_path / "my lengths.npy", np.array(LENGTHS))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("Balance('my lengths.npy')", {}),
        (
            "ip.Balance('my lengths.npy', quadratic=1, linear=24_576)",
            {"linear": 24576, "quadratic": 1},
        ),
        ("Balance('my lengths.npy', quadratic=10**3, linear=0)", {"linear": 0, "quadratic": 1000}),
    ],
)
def test_build(text: str, weights: dict[str, int], capsys: pytest.CaptureFixture[str]) -> None:
    """The path of the lengths, and what they cost, are one option."""
    run(capsys, "build", "a.plan", *SPEC, "--balance", text)
    plan = ip.load("a.plan")
    assert PLAN.replace(balance=ip.Balance(LENGTHS, **weights)) == plan
    shown = run(capsys, "show", "a.plan", "--epoch=0", "--step=1", "--rank=2")
    assert plan.batch(0, step=1, rank=2).tolist() == [int(word) for word in shown.split()[:5]]


def test_show(capsys: pytest.CaptureFixture[str]) -> None:
    """A plan in words says what its balance is worth, in JSON too, over which steps."""
    run(capsys, "build", "a.plan", *SPEC, *BALANCE)
    said = json.loads(run(capsys, "show", "a.plan", "--json"))
    assert [0, 1, 2] == said["work"]["steps"]
    ratios = {}
    for name, plan in (("as_dealt", PLAN), ("balanced", ip.load("a.plan"))):
        lengths = np.array(LENGTHS)
        work = np.array(
            [
                [lengths[plan.batch(0, step=step, rank=rank)].sum() for rank in range(4)]
                for step in range(3)
            ]
        )
        ratios[name] = (work.max(axis=1) / work.mean(axis=1)).mean()
        assert ratios[name] == pytest.approx(said["work"]["ratios"][name])
    assert 1.0 == said["work"]["ratios"]["bound"]
    words = (
        f"work: the slowest rank has {ratios['balanced']:.3f} times the mean work "
        f"({ratios['as_dealt']:.3f} without balance; the costliest unit alone forces at least "
        "1.000); averaged over 3 of 3 steps of epoch 0\n"
    )
    text = run(capsys, "show", "a.plan")
    assert words in text
    assert "balance      balance-v1(lengths 60 numbers of sha256 " in text


def test_show_without_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    """Where the world size is open, or nothing is left, there is no work to look at."""
    run(
        capsys,
        "build",
        "a.plan",
        *SPEC[:2],
        "--batch-size=5",
        "--balance",
        "Balance('my lengths.npy')",
    )
    assert "work:" not in run(capsys, "show", "a.plan")


def test_show_without_steps(capsys: pytest.CaptureFixture[str]) -> None:
    """Where what is left of an epoch fills no step, its work is not looked at."""
    array("lengths.npy", [1, 2, 3])
    plan = without_steps(ip.Sequential(3), ip.Balance("lengths.npy"))
    Path("plan.json").write_text(plan.to_json())
    options = ["--epoch=0", "--column", "lengths.npy"]
    assert "work: not looked at" in run(capsys, "show", "plan.json", *options)
    assert json.loads(run(capsys, "show", "plan.json", *options, "--json"))["work"] is None


def test_a_plan_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    """A plan in a .json file finds its lengths as it does columns of its order."""
    plan = PLAN.replace(balance=ip.Balance(LENGTHS))
    Path("plan.json").write_text(plan.to_json())
    where = ["--epoch=0", "--step=1", "--rank=2", "--column", "my lengths.npy"]
    shown = run(capsys, "show", "plan.json", *where)
    assert plan.batch(0, step=1, rank=2).tolist() == [int(word) for word in shown.split()]
