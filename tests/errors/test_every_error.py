"""Every error that somebody can meet: its whole message, and that none is forgotten.

errors.txt lists what provokes each, and what they say. All are provoked for real. Their tracebacks
tell which lines made them, so an error that is added to the code, and not to errors.txt, fails.
"""

from __future__ import annotations

import ast
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from traceback import walk_tb
from typing import NamedTuple

import pytest

from tests.errors.catalogue.numbers import LINES
from tests.errors.provoking import CASES, COMMANDS, Outcome, not_provoked, provoked
from tests.variants.table import laws

ROOT = Path(__file__).parents[2]
OTHERS = {"AttributeError", "IndexError", "StopIteration", "ArgumentError"}  # Python's, argparse's
HELPERS = {"explained", "_explained"}  # raise an error in the words of their caller
AGAIN = "run `python -m tests.errors.provoking`, and read its diff"


def check_form(message: str) -> None:
    """Check that a message is one line that ends with what to do, as a clause."""
    assert "\n" not in message
    assert re.search(r" (must|needs|need) ", message)
    assert re.search(r"; [^;]*[^;.\s]$", message)
    assert not re.search(r"(?<![\w,.:/*-])1 (?!as|is|takes|class\b)[a-z-]+s\b", message)  # 1 ranks


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder in which the workers of one run tell which lines their errors reached."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "reached"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.mark.parametrize("name", [name for name in CASES if name not in COMMANDS])
def test_error(name: str, places: Path) -> None:
    """An error says what is wrong and what to do, in one line, and nothing else is said."""
    done = done_by(name, places)
    assert CASES[name].text == done.wording(), AGAIN
    assert ("", "", []) == (done.out, done.err, done.warned)
    check_form(str(done.error))


@pytest.mark.parametrize("name", COMMANDS)
def test_command(name: str, places: Path) -> None:
    """A command that fails says why in one line on stderr, and exits with 1 or 2."""
    done = done_by(name, places)
    assert CASES[name].text == done.wording(), AGAIN
    assert done.code in {1, 2}
    assert ("", []) == (done.out, done.warned)
    check_form(done.err.removesuffix("\n"))


def test_no_number_is_left_out() -> None:
    """errors.txt has each argument of the calls of catalogue/numbers.py, and no other."""
    assert LINES == [
        line for case in CASES.values() if case.section == "numbers" for line in case.code
    ]


def test_laws_name_entries_that_are_here() -> None:
    """laws.txt names entries by their comment, or by the command that they type."""
    named = [
        re.fullmatch(r".*::test_(?:error|command)\[(.*)\]", t) for law in laws() for t in law.tests
    ]
    assert [] == [each[1] for each in named if each and each[1] not in CASES]


class Site(NamedTuple):
    """A statement or call that makes an error: where it is, and its beginning."""

    file: str
    where: str
    text: str
    start: int
    stop: int


@cache
def sites() -> list[Site]:
    """Every place in the packages at which an error is made, by reading the code."""
    files = [*ROOT.glob("indexplan/**/*.py"), *ROOT.glob("adapters/**/*.py")]
    return [site for file in sorted(files) for site in _sites(file)]


def _sites(file: Path) -> Iterator[Site]:
    def walk(node: ast.AST, where: str, header: ast.AST | None) -> Iterator[Site]:
        for child in ast.iter_child_nodes(node):
            inside = getattr(child, "name", "") if isinstance(child, SCOPES) else ""
            again = isinstance(child, ast.Raise) and isinstance(child.exc, ast.Subscript)
            if again:  # what a thread raised, which was made elsewhere
                continue
            if isinstance(child, ast.Raise) and child.exc and _name(child.exc) not in OTHERS:
                yield site(child, child, where)
            elif isinstance(child, ast.Call) and _name(child) in HELPERS:
                yield site(child, header or child, where)
            # the traceback of what a context manager raises names its `with`
            within = child if isinstance(child, ast.withitem) else None
            outer = node if within is not None else None if isinstance(child, ast.stmt) else header
            yield from walk(child, f"{where}.{inside}".strip(".") if inside else where, outer)

    def site(node: ast.AST, lines: ast.AST, where: str) -> Site:
        stop = lines.body[0].lineno - 1 if isinstance(lines, ast.With) else lines.end_lineno
        text = " ".join(ast.unparse(node).split())[:60]
        return Site(str(file.relative_to(ROOT)), where, text, lines.lineno, stop)

    yield from walk(ast.parse(file.read_text()), "", None)


SCOPES = (ast.FunctionDef, ast.ClassDef)


def _name(node: ast.AST | None) -> str:
    """Return the last name of what is called."""
    if isinstance(node, ast.Call):
        return _name(node.func)
    return getattr(node, "attr", "") or getattr(node, "id", "")


def reached(error: BaseException | None) -> Iterator[tuple[str, int]]:
    """Yield the files and lines at which an error, and those behind it, were made."""
    if error is None:
        return
    frames = [
        (str(Path(frame.f_code.co_filename).relative_to(ROOT)), line, frame.f_code.co_name)
        for frame, line in walk_tb(error.__traceback__)
        if Path(frame.f_code.co_filename).is_relative_to(ROOT)
    ]
    frames = [each for each in frames if each[0].startswith(("indexplan/", "adapters/"))]
    if frames:
        yield frames[-1][:2]
        if frames[-1][2] in HELPERS and len(frames) > 1:
            yield frames[-2][:2]
    yield from reached(error.__cause__)
    yield from reached(error.__context__)


def told(name: str, folder: Path) -> Path:
    """Return the file that tells which lines an error reached."""
    return folder / sha256(name.encode()).hexdigest()


def done_by(name: str, folder: Path) -> Outcome:
    """Provoke an error or run a command, and tell the other workers which lines it reached."""
    done = provoked(name)
    file = told(name, folder)
    scratch = file.with_suffix(f".{os.getpid()}")
    scratch.write_text(json.dumps([*reached(done.error)]))
    scratch.replace(file)
    return done


def test_every_raise_is_in_the_catalogue(places: Path) -> None:
    """Each place that makes an error is reached by errors.txt, or listed with why it cannot."""
    lines = set()
    for name in CASES:
        file = told(name, places)
        if not file.exists():  # no worker has provoked it yet
            done_by(name, places)
        lines |= {(path, line) for path, line in json.loads(file.read_text())}
    found = {  # one and the same words in a function are one error
        site[:3]
        for site in sites()
        if any((site.file, line) in lines for line in range(site.start, site.stop + 1))
    }
    missing = Counter(site[:2] for site in {site[:3] for site in sites()} - found)
    known = not_provoked()
    assert len(found) > 200
    assert Counter() == missing - known, "to be added to errors.txt"
    assert Counter() == known - missing, "provoked after all"
