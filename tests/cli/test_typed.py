"""What is typed, right or wrong: help, the version, near misses, numbers, and errors as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import indexplan as ip
from indexplan.cli import main
from tests.cli.test_cli import fails

BUILD = ["build", "a.plan", "--num-samples=9", "--batch-size=2"]


def test_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """The command alone shows what it can do, and exits with 2: a script has lost its verb."""
    assert 2 == main([])
    said = capsys.readouterr()
    assert "" == said.err
    for verb in ("build", "show", "bench"):
        assert re.search(rf"^    {verb} +\w", said.out, re.MULTILINE)
    with pytest.raises(SystemExit) as exit_:
        main(["--help"])
    assert (0, said.out) == (exit_.value.code, capsys.readouterr().out)


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_version(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The version has a short option, too."""
    with pytest.raises(SystemExit) as exit_:
        main([option])
    assert (0, f"indexplan {ip.__version__}\n") == (exit_.value.code, capsys.readouterr().out)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ([*BUILD, "--order=block-shuffle"], "BlockShuffle"),
        ([*BUILD, "--order=BlockShuffle(blok_size=3)"], "block_size"),
        (["build", "a.plan", "--batch-size=2", "--order=Shufle(3)"], "Shuffle"),
        (["build", "a.plan", "--batch-size=2", "--order=Shuffle(3, sed=1)"], "seed"),
        (["plot", "plan.json", "-o", "a.pgn"], ".png"),
        (["orders", "BlokShuffle"], "BlockShuffle"),
    ],
)
def test_near_misses(
    words: list[str],
    meant: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A word with a slip is answered with the one that was meant."""
    monkeypatch.chdir(tmp_path)
    Path("plan.json").write_text(ip.Plan(ip.Shuffle(9), world_size=1, batch_size=2).to_json())
    assert f"did you mean {meant}?" in fails(capsys, 2, *words)
    Path("plan.json").unlink()
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["build", "a.plan", "--num-samples=9", "--batch-size", "abc"], "--batch-size: each part"),
        ([*BUILD, "--epochs", "1..x"], "argument --epochs: must be an integer"),
        ([*BUILD, "--sub-epochs", "two"], "argument --sub-epochs: must be an integer"),
        (["show", "a.plan", "--epoch", ""], "argument --epoch: must be an integer"),
        (["show", "a.plan", "--epoch", "1.5"], "argument --epoch: must be an integer"),
        (
            ["build", "a.plan", "--batch-size=2", "--num-samples=nan"],
            "--num-samples: must be an",
        ),
    ],
)
def test_bad_numbers(words: list[str], what: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is no number is told in one line, without the usage."""
    assert what in fails(capsys, 2, *words)


@pytest.mark.parametrize(
    ("words", "code", "kind"),
    [
        (["show", "nowhere.plan", "--json"], 1, "PlanFileError"),
        (["build", "a.plan", "--num-samples=0", "--batch-size=2", "--json"], 2, "IndexPlanError"),
        (["build", "a.plan", "--json", "--num-samples=x"], 2, "IndexPlanError"),
        (["show", "a.plan", "--colour", "--json"], 2, "IndexPlanError"),
        (["shwo", "--json"], 2, "IndexPlanError"),
    ],
)
def test_errors_as_json(
    words: list[str], code: int, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where JSON is asked for, stdout holds JSON whatever comes of it; people have their line."""
    assert code == main(words)
    said = capsys.readouterr()
    error = json.loads(said.out)["error"]
    assert said.err == f"indexplan: {error['message']}\n"
    assert ["type", "what", "rule", "got", "cure", "message", "exit_code"] == list(error)
    assert (kind, code) == (error["type"], error["exit_code"])
    got = "" if error["got"] is None else f"; got {error['got']}"
    assert error["message"] == f"{error['what']} {error['rule']}{got}; {error['cure']}"
