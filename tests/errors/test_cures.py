"""Cures: what they name is there, and what they say to type is typed; so are pip's commands.

What a cure mends, such as a file, a ledger or a loader inside a pass, is mended in the tests of its
folder.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib.metadata import metadata
from pathlib import Path

import pytest

import indexplan as ip
from indexplan.errors import install
from indexplan.keywords import PLACES
from indexplan_torch import PlanLoader, lightning, transformers
from tests.errors.provoking import CASES, COMMANDS, outcome, play
from tests.support.fresh import printed
from tests.test_advice import problems, resolved

CURED_COMMANDS = [name for name, case in COMMANDS.items() if case.cure]
OWNERS = (PlanLoader, ip.Mixture, ip.Plan, lightning, transformers)  # of what cures call
# Python's, torch's and others', and an order of a reader's own
OTHERS = {"len", "range", "next", "iter", "DataLoader", "MyOrder", "init_device_mesh", "astype"}
OTHERS |= {"ShardOptions", "list", "Path", "read_text", "values"}
WITH_CALLS = re.compile(r"[A-Za-z_][\w.]*\(")
DOTTED = re.compile(r"\b(?:plan|order|ip|indexplan(?:_torch)?)(?:\.[A-Za-z_]\w*)+(?![\w(/])")


def calls(cure: str) -> Iterator[ast.Call]:
    """Yield the calls that a cure writes as Python, those inside others too."""
    for start in WITH_CALLS.finditer(cure):
        for stop in range(start.end(), len(cure) + 1):
            try:
                call = ast.parse(cure[start.start() : stop], mode="eval").body
            except SyntaxError:
                continue
            if isinstance(call, ast.Call):
                yield call
                break


def test_what_cures_call_is_there() -> None:
    """By its name, with the keywords that the cure writes, as what pages name."""
    wrong, seen = [], 0
    for cure in (*(case.text.rpartition("; ")[2] for case in CASES.values()), *PLACES.values()):
        for name in DOTTED.findall(cure):
            wrong += problems(name)
        for call in calls(cure):
            name = ast.unparse(call.func)
            seen += name not in OTHERS
            if "." not in name and name not in OTHERS:
                known = resolved([name]) or any(hasattr(each, name) for each in OWNERS)
                wrong += [] if known else [f"{name}: {cure}"]
            call.args.append(ast.Constant(...))  # a cure may leave others out
            wrong += problems(ast.unparse(call))
    assert not wrong
    assert seen > 150


@pytest.mark.slow
@pytest.mark.parametrize("name", CURED_COMMANDS)
def test_the_cured_command_succeeds(name: str) -> None:
    """A user who types what the error says gets an answer, and no complaint."""
    case = COMMANDS[name]
    done = outcome(lambda: play(case.section, [*case.code, *case.cure]))
    assert done.error is None
    assert done.code[0] in {1, 2}
    assert [0] * len(done.code[1:]) == done.code[1:], done.err
    assert done.err.count("\n") == 1, done.err
    assert done.warned == []


ROOT = Path(__file__).parents[2]


def extras() -> set[str]:
    """Return the extras that are named where errors are made."""
    files = [*ROOT.glob("indexplan/**/*.py"), *ROOT.glob("adapters/**/*.py")]
    called = re.compile(r"\binstall\([\"'](\w+)[\"']\)")
    return {name for file in files for name in called.findall(file.read_text())}


def test_every_extra_that_is_named_is_there() -> None:
    """And no error writes such a command itself."""
    known = metadata("indexplan").get_all("Provides-Extra") or []
    assert {"cli", "torch", "shards", "remote"} < extras()
    assert set() == extras() - {*known}
    files = [*ROOT.glob("indexplan/**/*.py"), *ROOT.glob("adapters/**/*.py")]
    writes = [
        file.name for file in files if re.search(r"pip install \W*indexplan", file.read_text())
    ]
    assert ["errors.py"] == writes


@pytest.mark.slow
def test_pip_takes_what_is_installed() -> None:
    """It finds indexplan in the environment, so it asks no index for it: here it has none."""
    commands = {extra: install(extra).removeprefix("pip install ").strip("'") for extra in extras()}
    assert {extra: f"indexplan[{extra}]" for extra in extras()} == commands
    pip = ["-m", "pip", "install", "--dry-run", "--no-index", "--no-deps", *commands.values()]
    assert "Requirement already satisfied: indexplan" in printed(*pip, loud=True)
