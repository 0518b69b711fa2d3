"""At a terminal, lines end between words within its width, and a little is coloured."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

import indexplan as ip
from indexplan.cli import main
from indexplan.cli.terminal import fitted
from tests.support.terminal import seen_at_a_terminal

ESCAPES = re.compile(r"\x1b\[[\d;]*m")
PHASES = "0:4 8000:3x2:resolution=192"
MIXED = "Mixture({'web': Shuffle(60), 'code': Weighted('lengths.npy')}, {'web': 0.7, 'code': 0.3})"
COMMANDS = [
    *([verb, f"{name}.plan"] for verb in ("show", "verify") for name in ("long", "mixed", "work")),
    ["show", "long.plan", "--epoch=0", "--step=0"],
    ["show", "long.plan", "--epoch=0", "--step=2", "--rank=3"],
    ["explain", "work.plan", "--index=7"],
    ["locate", "work.plan", "--index=7", "--epoch=0"],
    ["locate", "work.plan", "--index=70", "--epoch=0"],
    ["diff", "work.plan", "mixed.plan"],
    ["diff", "work.plan", "long.plan"],
    ["show", "mixed.plan", "--stop", "7"],
    ["traffic", "work.plan", "--shards=lengths.npy"],
    ["shards", "lengths.npy"],
    ["finish", "work.plan"],
    ["export", "work.plan", "out"],
    ["orders"],
    ["shwo"],
    ["build", "work.plan", "--num-samples=60", "--batch-size=3"],
]


class Terminal(io.StringIO):
    """A stream that says that somebody looks at it."""

    def isatty(self) -> bool:
        return True


def seen(words: list[str]) -> str:
    """What a command says, on both streams, where both are terminals."""
    with contextlib.redirect_stdout(Terminal()) as out, contextlib.redirect_stderr(out):
        main(words)
    return out.getvalue()


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in a folder with columns; forget what the tester's terminal is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    np.save("lengths.npy", np.arange(1, 61))


@pytest.mark.parametrize("columns", [60, 80])
def test_no_line_is_wider(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a verb says, but for a word that is too long, such as a fingerprint."""
    monkeypatch.setenv("COLUMNS", str(columns))
    ranks = ["--world-size=4", "--batch-size=5"]
    for name, words in {
        "long": ["--num-samples=20_000", "--world-size=1024", "--batch-size", PHASES],
        "mixed": ["--order", MIXED, *ranks],
        "work": ["--num-samples=60", "--balance=lengths.npy", "--epochs=2", *ranks],
    }.items():
        seen(["build", f"{name}.plan", *words])
    for words in COMMANDS:
        text = ESCAPES.sub("", seen(words))
        assert len(text) > 20
        for line in re.split("[\r\n]", text):
            long = max(map(len, line.split()), default=0) > columns - 20 or "%|" in line
            assert len(line) <= columns or long, (words, line)


def test_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of checks, headings and errors have one at a terminal that knows it, no JSON has."""
    ip.save(ip.Plan(ip.Shuffle(10), world_size=1, batch_size=2), "a.plan")
    assert "\x1b[32mok\x1b[0m  every unit" in seen(["verify", "a.plan"])
    assert re.search(r"\x1b\[1mepoch +steps.*per rank\x1b\[0m\n0 ", seen(["show", "a.plan"]))
    assert seen(["shwo"]).startswith("\x1b[1;31mindexplan:\x1b[0m the verb must")
    chunk = Path("a.plan/epoch-00000/chunk-00000.npy")
    chunk.write_bytes(chunk.read_bytes()[:-1] + b"\7")
    assert "\x1b[1;31mBAD\x1b[0m every byte" in seen(["verify", "a.plan"])
    assert "\x1b" not in seen(["verify", "a.plan", "--json"])
    with contextlib.redirect_stdout(io.StringIO()) as out:
        main(["verify", "a.plan"])
    assert "\x1b" not in out.getvalue()
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert "\x1b" not in seen(["verify", "a.plan"]) + seen(["shwo"])


def test_a_file_has_whole_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not shown at a terminal is not broken, so that a line can be searched for."""
    monkeypatch.setenv("COLUMNS", "20")
    ip.save(ip.Plan(ip.Shuffle(10), world_size=1, batch_size=2), "a.plan")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        main(["verify", "a.plan"])
    assert str(ip.verify(ip.load("a.plan"))) + "\n" == out.getvalue()


def test_fitted() -> None:
    """What goes on stands behind the label; a long word stays whole."""
    assert "order   1234 1234\n        1234 1234" == fitted("order   1234 1234 1234 1234", 20)
    assert "  1234 1234 1234\n      1234 1234" == fitted("  1234 1234 1234 1234 1234", 20)
    assert f"a\n    {'x' * 30}" == fitted(f"a {'x' * 30}", 20)
    assert "short" == fitted("short", 5)


def test_code_can_be_pasted() -> None:
    """What `show` says to run in Python runs, copied from a narrow terminal, for a long path."""
    path = f"{'a long name ' * 8}.plan"
    plan = ip.Plan(ip.Shuffle(1000, seed=3), world_size=8, batch_size=2, sub_epochs=2)
    ip.save(plan, path)
    Path("open.json").write_text(ip.Plan(ip.Weighted("lengths.npy"), batch_size=2).to_json())
    for words, expected in (
        ([path], plan.resume(plan.cursor(0, 0, step=1))),
        (["open.json", "--column=lengths.npy"], None),
    ):
        said = seen_at_a_terminal("show", *words, columns=60, stdout=True)
        lines = ESCAPES.sub("", said).splitlines()
        code = "\n".join(lines[lines.index("") :])
        code = code[re.search(r"^import ", code, re.MULTILINE).start() :]  # type: ignore[union-attr]
        exec(code, names := dict[str, ip.Plan]())  # noqa: S102 (what people are told to paste)
        assert 1 == names["plan"].start.step
        assert expected in (None, names["plan"])


def test_a_real_terminal() -> None:
    """Of 60 columns, known from the terminal itself."""
    ip.save(ip.Plan(ip.Shuffle(1000), world_size=1024, batch_size=2), "a.plan")
    said = seen_at_a_terminal("show", "a.plan", columns=60, stdout=True)
    lines = ESCAPES.sub("", said).split("\r\n")
    assert "\x1b[1mepoch" in said
    assert 60 >= max(len(line) for line in lines if len(line.split()) > 2) > 40
