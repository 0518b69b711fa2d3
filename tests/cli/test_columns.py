"""Columns on the command line: in the text of an order, and beside a plan in a .json file."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import indexplan as ip
from indexplan.cli.written import order_as_written
from tests.cli.test_cli import fails, run
from tests.support.listed import Listed

IMPORT = "--import=tests.support.listed"
SPEC = ["--num-samples=5", "--world-size=1", "--batch-size=2", IMPORT]
FIRST = ["--epoch=0", "--step=0", "--rank=0"]
PLAN = ip.Plan(Listed([3, 1, 3, 0], 5, [0.5, 2.0]), world_size=1, batch_size=2)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the two columns, one of them under a name with a space."""
    np.save(tmp_path / "my rows.npy", np.array([3, 1, 3, 0]))
    np.save(tmp_path / "shares.npy", np.array([0.5, 2.0]))
    (tmp_path / "plan.json").write_text(PLAN.to_json())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_build(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An order's columns are paths in its text."""
    text = "Listed('my rows.npy', shares='shares.npy')"
    run(capsys, "build", "a.plan", *SPEC, "--order", text)
    assert PLAN == ip.load("a.plan")
    assert 2 == len(list((folder / "a.plan/columns").iterdir()))
    assert "3 1\n" == run(capsys, "show", "a.plan", *FIRST)


def test_a_column_that_is_not_needed() -> None:
    """A column that may be None is left out."""
    order = order_as_written("Listed('my rows.npy')", {"num_samples": 5})
    assert Listed([3, 1, 3, 0], 5) == order


@pytest.mark.parametrize(
    "columns",
    [
        ["my rows.npy", "shares.npy"],
        ["a.plan/columns"],
        ["other.npy", "here=.npy", "rows", "shares.npy"],
    ],
)
def test_plan_without_its_columns(
    columns: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plan in a .json file finds its columns, by their numbers, in files and folders of files."""
    ip.save(PLAN, "a.plan")
    np.save("other.npy", np.array([3, 1, 3, 1]))
    np.save("here=.npy", np.array([0.5, 3.0]))
    samples = PLAN.order.to_dict()["samples"]["sha256"]
    (folder / "rows").mkdir()
    shutil.copy(f"a.plan/columns/{samples}.npy", "rows")
    words = ["plan.json", IMPORT, *(f"--column={each}" for each in columns)]
    assert "3 1\n" == run(capsys, "show", *words, *FIRST)
    assert "rank 0, slot 1" in run(capsys, "locate", *words, "--index=1", "--epoch=0")
    assert "step 0" in run(capsys, "explain", *words, "--index=1")
    said = json.loads(run(capsys, "diff", *words, "a.plan", "--json"))
    assert said == json.loads(run(capsys, "diff", "a.plan", "a.plan", IMPORT, "--json"))
    assert said == json.loads(run(capsys, "diff", *words, "plan.json", "--json"))
    run(capsys, "plot", *words, "--kind=mixing", "--output=a.png")
    run(capsys, "export", *words, "out")
    assert [3, 1, 3, 0] == np.load("out/epoch-00000/rank-00000.npy").tolist()


def test_columns_that_are_not_those_of_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    """Other numbers are never taken for the plan's."""
    np.save("other.npy", np.array([3, 1, 3, 1]))
    words = ["show", "plan.json", IMPORT, "--column=shares.npy"]
    for more in ([], ["--column=other.npy"], ["--column=shares.npy"]):
        said = fails(capsys, 1, *words, *more)
        assert said.startswith("plan.json: samples needs a column of 4 numbers, <u4, with sha256 ")
        assert said.endswith("give it, or the folder that it is in, as --column")
