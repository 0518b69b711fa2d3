"""Balance on the command line: a plan that is built with it, shown and drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import indexplan as ip
from tests.cli.test_cli import run

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
    """A plan in words says that it has a balance, of which lengths."""
    run(capsys, "build", "a.plan", *SPEC, *BALANCE)
    assert "balance      balance-v1(lengths 60 numbers of sha256 " in run(capsys, "show", "a.plan")


def test_a_plan_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    """A plan in a .json file finds its lengths as it does columns of its order."""
    plan = PLAN.replace(balance=ip.Balance(LENGTHS))
    Path("plan.json").write_text(plan.to_json())
    where = ["--epoch=0", "--step=1", "--rank=2", "--column", "my lengths.npy"]
    shown = run(capsys, "show", "plan.json", *where)
    assert plan.batch(0, step=1, rank=2).tolist() == [int(word) for word in shown.split()]
