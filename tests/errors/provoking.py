"""Provoke every error of errors.txt for real, each in an empty folder.

An entry of errors.txt is the code that provokes an error, a command if it is one's, what is said,
and what is done instead if the command's cure is followed. A section's code has the names of its
module in tests/errors/catalogue, and those of `made`.

Last come the errors that nobody provokes, and why: how many in which functions of which files.

To add an error, write its code there and `    ?` below. This writes what errors say, and its diff
shows how a change words them:

    python -m tests.errors.provoking
"""

from __future__ import annotations

import contextlib
import io
import os
import platform
import re
import shlex
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module, metadata
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import indexplan as ip
import indexplan.cli
from indexplan.orders.registry import OURS, registered
from tests.errors.catalogue.numbers import LINES

FILE = Path(__file__).with_name("errors.txt")
LISTED, LEFT_OUT = FILE.read_text().split("\n\n[not provoked]\n\n")
TYPED = "$ indexplan "
module = sys.modules["indexplan.cli.main"]  # indexplan.cli.main is its function


class Case(NamedTuple):
    """An entry of errors.txt."""

    section: str
    code: list[str]
    text: str
    cure: list[str]

    @property
    def words(self) -> str:
        """The command that is typed, if it is one's error."""
        return self.code[-1].removeprefix(TYPED) if self.code[-1].startswith(TYPED) else ""


def read() -> dict[str, Case]:
    """Read the entries of errors.txt, by their first line, or by the command."""
    found: dict[str, Case] = {}
    seen: Counter[str] = Counter()
    section = ""
    for entry in LISTED.split("\n\n"):
        lines = entry.split("\n")
        if named := re.fullmatch(r"\[(\w+)\]", entry):
            section = named[1]
            continue
        typed = next((at for at, line in enumerate(lines) if line.startswith(TYPED)), None)
        at = len(lines) - 1 if typed is None else typed + 1
        case = Case(section, lines[:at], lines[at].removeprefix("    "), lines[at + 1 :])
        name = f"{section}: {lines[0].removeprefix('# ')}" if typed is None else lines[typed]
        seen[name] += 1
        found[name + (f"  # again, {seen[name]}" if seen[name] > 1 else "")] = case
    return found


def not_provoked() -> Counter[tuple[str, str]]:
    """Read how many errors of the functions of files nobody provokes."""
    found: Counter[tuple[str, str]] = Counter()
    for line in LEFT_OUT.splitlines():
        if line.startswith("    "):
            file, *function, number = line.split()
            found[file, "".join(function)] += int(number)
    return found


CASES = read()
COMMANDS = {name: case for name, case in CASES.items() if case.words}


class Outcome(NamedTuple):
    """What came of provoking an error."""

    code: Any
    error: BaseException | None
    out: str
    err: str
    warned: list[str]
    here: str

    def wording(self) -> str:
        """Return what was said, with names for what differs from machine to machine."""
        if self.code is None:
            return portable(str(self.error), self.here)
        return portable(f"exit {self.code}: {self.err.removesuffix(chr(10))}", self.here)


version_of = cache(metadata.version)  # which parses all that a package says of itself


def portable(text: str, here: str) -> str:
    """Write {here} for the current folder, {user} for its user, and so on."""
    ours = [each.algorithm for each in registered() if each.__module__.startswith(OURS)]
    lists = {
        "{orders}": [kind.algorithm for kind in registered()],
        "{ours}": ours,
        "{makers}": sorted(each.__name__ for each in registered()),
    }
    text = text.replace(here, "{here}")
    for name, words in lists.items():
        text = text.replace(", ".join(words), name)
    user = os.geteuid()
    patterns = {
        rf"(?<= on ){re.escape(platform.node())}(?=;)": "{host}",
        rf"(?<=user ){user}\b|(?<=/indexplan-){user}\b|(?<=/[0-9a-f]{{16}}-){user}\b": "{user}",
        r"\b[0-9a-f]{16}(?=\.\.\.)": "{digest}",  # of a plan.json
        r"(?<=/)[0-9a-f]{32}(?=/epoch-)": "{digest}",  # of a URL and a plan.json
        **{
            rf"(?<=got {package} ){re.escape(version_of(package))}": "{version}"
            for package in ("torch", "transformers")
        },
    }
    for pattern, name in patterns.items():
        text = re.sub(pattern, name, text)
    return text


def outcome(provoke: Callable[[], Any]) -> Outcome:
    """Provoke an error in an empty folder, which others may enter."""
    out, err, code, error = io.StringIO(), io.StringIO(), None, None
    before = Path.cwd()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        Path(folder).chmod(0o755)
        os.chdir(folder)
        here = str(Path.cwd())
        try:
            code = provoke()
        except SystemExit as exit_:
            code = exit_.code
        except ip.IndexPlanError as refused:
            error = refused
        finally:
            os.chdir(before)
    warned = [str(each.message) for each in caught]
    return Outcome(code, error, out.getvalue(), err.getvalue(), warned, here)


def play(section: str, lines: Sequence[str]) -> list[int]:
    """Run code, and type commands, as errors.txt has them; return the commands' exit codes."""
    names: dict[str, Any] = {}
    for each in ("made", section):
        names |= vars(import_module(f"tests.errors.catalogue.{each}"))
    codes = []
    for typed, block in groupby(lines, lambda line: line.startswith(TYPED)):
        if not typed:
            exec(compile("\n".join(block), FILE.name, "exec"), names)  # noqa: S102 (our own)
            continue
        for line in block:
            try:
                codes.append(module.main(shlex.split(line.removeprefix(TYPED))))
            except SystemExit as exit_:  # --help
                codes.append(int(exit_.code or 0))
    return codes


@cache
def provoked(name: str) -> Outcome:
    """Provoke an error, once for all tests; a command's is what it complained of."""
    case = CASES[name]
    errors: list[BaseException] = []
    say = module.in_words_of

    def kept(parser: Any, error: ip.IndexPlanError) -> ip.IndexPlanError:
        errors.append(error)
        return say(parser, error)

    def provoke() -> int | None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "in_words_of", kept)
            return next(iter(play(case.section, case.code)), None)

    done = outcome(provoke)
    return done._replace(error=errors[0] if errors else done.error)


def main() -> None:
    """Write errors.txt."""
    os.environ["COLUMNS"] = "80"
    for line in LINES:  # the last section, which has a line for each argument
        CASES.setdefault(f"numbers: {line}", Case("numbers", [line], "", []))
    lines, section = [], ""
    for name, case in CASES.items():
        if case.section != section:
            section = case.section
            lines.append(f"[{section}]\n")
        lines += [*case.code, f"    {provoked(name).wording()}", *case.cure, ""]
    FILE.write_text("\n".join([*lines, "[not provoked]\n", LEFT_OUT]))


if __name__ == "__main__":
    main()
