"""Whatever is typed, and whatever a plan holds, a command ends with 0, 1 or 2 and plain text."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import pytest

import indexplan as ip
from indexplan.cli import main

ESCAPE = "\x1b[2J\x1b]0;owned\x07\r"
WORDS = ["", "a", ESCAPE, "\ud800", "-1", "inf", "9" * 5000, "1.5", "[Phase(0, 5)]", "é"]

COMMANDS: dict[str, list[str]] = {
    "build": ["a.plan", "--num-samples=9", "--batch-size=2", "--epochs=1", "--part=1/1"],
    "build of orders": ["b.plan", "--num-samples=9", "--global-batch-size=2", "--order=Shuffle()"],
    "build of a dataset": ["c.plan", "--dataset=data", "--pattern=*", "--batch-size=2"],
    "build of chunks": ["d.plan", "--num-samples=9", "--batch-size=2", "--units-per-chunk=5"],
    "show": ["right.plan", "--epoch=0", "--step=0", "--rank=0", "--world-size=2"],
    "show of all": ["right.plan"],
    "show as JSON": ["right.plan", "--json"],
    "show of a dataset": ["right.plan", "--dataset=data", "--pattern=*", "--epoch=0"],
    "show of names": [
        *("right.plan", "--epoch=0", "--step=0", "--rank=0", "--dataset=data", "--pattern=*")
    ],
    "locate": ["right.plan", "3"],
    "explain": ["right.plan", "3", "--epochs=1"],
    "diff": ["right.plan", "right.plan", "--epochs=1", "--world-size=2"],
    "verify": ["right.plan"],
    "export": ["right.plan", "--format=npy"],
    "plot": ["nowhere.plan", "--out=a.png"],
}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in a folder with a dataset and a plan, whose names and words are commands."""
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    (Path("data") / f"one{ESCAPE}\n").write_text("1")
    dataset = ip.Dataset.scan("data")
    object.__setattr__(dataset, "pattern", f"*{ESCAPE}\n")
    phase = ip.Phase(0, 2, {f"a{ESCAPE}": f"b{ESCAPE}\n"})
    plan = ip.Plan(ip.Sequential(1), world_size=2, batch_size=[phase])
    ip.save(plan, "right.plan", dataset=dataset)


class Typed:
    """A command, and what it said."""

    def __init__(self, words: list[str]) -> None:
        out, err = io.TextIOWrapper(io.BytesIO(), "ascii"), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                self.code: Any = main(words)
            except SystemExit as exit_:
                self.code = exit_.code
        out.flush()
        self.out, self.err = out.buffer.getvalue().decode("ascii"), err.getvalue()  # type: ignore[attr-defined]


def problem_of(words: list[str]) -> str | None:
    """Return what is wrong with how a command ends, if anything is."""
    try:
        typed = Typed(words)
    except Exception as error:
        return f"{type(error).__name__}: {error!s:.99}"
    if typed.code not in (0, 1, 2):
        return f"exit code {typed.code}"
    for line in (typed.out + typed.err).split("\n"):
        if not line.isprintable():
            return f"a command to the terminal: {line[:99]!a}"
    return None


def test_every_word_of_every_command() -> None:
    """A wrong word is told in words; no traceback, and nothing that a terminal obeys.

    Names, patterns and parameters that a plan holds are printed with escapes, each in its line.
    """
    problems = {}
    for name, right in COMMANDS.items():
        if problem := problem_of([name.split()[0], *right]):
            problems[name] = problem
        for place, word in enumerate(right):
            for wrong in WORDS:
                option, equals, _ = word.partition("=")
                typed = [*right]
                typed[place] = f"{option}={wrong}" if equals else wrong
                problem = problem_of([name.split()[0], *typed])
                if problem:
                    problems[f"{name} {typed[place][:50]!a}"] = problem
    assert not problems, "\n".join(f"{typed}: {said}" for typed, said in problems.items())


def test_a_name_cannot_look_like_a_line() -> None:
    """A line end in a file's name, or in a parameter, does not end the line."""
    batch = ["--epoch=0", "--step=0", "--rank=0", "--dataset=data", "--pattern=*"]
    assert 1 == Typed(["show", "right.plan", *batch]).code  # the dataset has another pattern
    words = ["build", "new.plan", "--dataset=data", "--pattern=*", "--batch-size=1"]
    assert 0 == Typed([*words, "--world-size=1"]).code
    assert 1 == len(Typed(["show", "new.plan", *batch]).out.splitlines())
