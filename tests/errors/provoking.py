"""Provoke every error of the catalogue for real, each in an empty folder.

What they say is written to errors.txt, whose diff shows how a change words errors:

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
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import indexplan as ip
import indexplan.cli
from indexplan.orders.registry import OURS, registered
from tests.errors.catalogue import CASES, COMMANDS
from tests.errors.catalogue.made import Command

FILE = Path(__file__).with_name("errors.txt")
module = sys.modules["indexplan.cli.main"]  # indexplan.cli.main is its function


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
            rf"(?<=got {package} ){re.escape(version(package))}": "{version}"
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


@cache
def provoked(name: str) -> Outcome:
    """Provoke an error of the catalogue, once for all tests."""
    return outcome(CASES[name])


@cache
def commanded(name: str) -> Outcome:
    """Run a command of the catalogue, once for all tests; its error is what it complained of."""
    words, before, *_ = typed()[name]
    errors: list[BaseException] = []
    say = module.in_words_of

    def kept(parser: Any, error: ip.IndexPlanError) -> ip.IndexPlanError:
        errors.append(error)
        return say(parser, error)

    def run() -> int:
        before()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "in_words_of", kept)
            return module.main(shlex.split(words))

    done = outcome(run)
    return done._replace(error=errors[0] if errors else None)


@cache
def typed() -> dict[str, Command]:
    """Return the commands of the catalogue by what is typed, numbered where that comes again."""
    seen: Counter[str] = Counter()
    found = {}
    for command in COMMANDS:
        words = command[0]
        seen[words] += 1
        again = f"  # again, {seen[words]}" if seen[words] > 1 else ""
        found[f"$ indexplan {words}{again}"] = command
    return found


def written() -> dict[str, str]:
    """Return what errors.txt has: the wording of each error by its name."""
    lines = FILE.read_text().splitlines()
    return dict(zip(lines[0::3], (line.removeprefix("    ") for line in lines[1::3]), strict=True))


def main() -> None:
    """Write errors.txt."""
    os.environ["COLUMNS"] = "80"
    found = {name: provoked(name).wording() for name in CASES}
    found |= {name: commanded(name).wording() for name in typed()}
    FILE.write_text("\n".join(f"{name}\n    {text}\n" for name, text in found.items()))


if __name__ == "__main__":
    main()
