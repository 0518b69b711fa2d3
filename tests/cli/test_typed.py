"""What is typed, right or wrong: help, the version, errors as JSON; one step is not 1 steps."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import indexplan as ip
from indexplan.cli import main
from tests.support.shell import Shell


def test_alone(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    """The command alone shows what it can do, and exits with 2: a script has lost its verb.

    The version has a short option, too.
    """
    said = shell.run(code=2)
    for verb in ("build", "show", "bench"):
        assert re.search(rf"^    {verb} +\w", said, re.MULTILINE)
    version = f"indexplan {ip.__version__}\n"
    for option, expected in (("--help", said), ("-V", version), ("--version", version)):
        with pytest.raises(SystemExit) as exit_:
            main([option])
        assert (0, expected) == (exit_.value.code, capsys.readouterr().out)


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


@pytest.mark.parametrize(
    "words",
    [
        "build new.plan --order=Shufle(3) --batch-size=2",
        "build new.plan --num-samples=9 --batch-size=2 --part=3/2",
        "build new.plan --num-samples=9 --batch-size=2 --units-per-chunk=0",
        "export plan.json out",  # for any number of ranks
        "plot plan.json -o a.png --kind=life --epoch=5",
    ],
)
def test_what_is_refused_leaves_nothing_behind(words: str, here: Path, shell: Shell) -> None:
    """Nothing that the same words, once they are right, would find in their way."""
    (here / "plan.json").write_text(ip.Plan(ip.Shuffle(9), batch_size=2).to_json())
    shell.fails(2, *words.split())
    assert [here / "plan.json"] == list(here.iterdir())


ONE = ["--world-size=1", "--batch-size=1"]
COMMANDS = [
    ["build", "new.plan", "--num-samples=1", *ONE],
    ["build", "one.plan", "--num-samples=1", *ONE],
    ["show", "one.plan"],
    ["show", "one.plan", "--epoch=0", "--step=0"],
    ["explain", "one.plan", "--index=0", "--epochs=1"],
    ["explain", "dropped.plan", "--index=0", "--epochs=1"],
    ["locate", "one.plan", "--index=0", "--epoch=0"],
    ["diff", "one.plan", "dropped.plan", "--epochs=1"],
    ["verify", "one.plan"],
    ["export", "one.plan", "out"],
    ["shards", "sizes.npy"],
    ["shards", "one.npy", "--plan=one.plan", "--ranks-per-node=1"],
    ["show", "groups.plan"],
    ["show", "balanced.plan"],
    ["show", "files.plan"],
    ["locate", "one.plan", "--index=1", "--epoch=0"],
    ["show", "one.plan", "--epoch=0", "--step=1"],
    ["verify", "files.plan", "--dataset=data"],
]


@pytest.mark.usefixtures("here")
def test_ones(capsys: pytest.CaptureFixture[str]) -> None:
    """No verb says 1 of several, in its answer or in an error."""
    for name, values in {"one": [1], "sizes": [0], "labels": [0]}.items():
        np.save(f"{name}.npy", values)
    Path("data").mkdir()
    Path("data/a").write_text("x")
    built = {
        "one": ["--num-samples=1"],
        "groups": ["--order=ClassBalanced('labels.npy')"],
        "balanced": ["--num-samples=1", "--balance=Balance('one.npy')"],
        "files": ["--dataset=data"],
    }
    for name, words in built.items():
        assert 0 == main(["build", f"{name}.plan", *words, *ONE])
    Path("data/a").write_text("")  # has changed, and is empty
    capsys.readouterr()
    for words in COMMANDS:
        main(words)
        said = capsys.readouterr()
        text = said.out + said.err
        assert text
        found = re.findall(r"(?<![\w,.:/*-])1 (?!as|is|was)[a-z-]+s\b", text)
        assert [] == found, (words, text)
