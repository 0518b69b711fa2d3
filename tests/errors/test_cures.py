"""Cures: what they name is there, and what they say to type is typed; so are pip's commands.

What a cure mends, such as a file, a ledger or a loader inside a pass, is mended in the tests of its
folder.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
import indexplan_torch
from indexplan.errors import install
from indexplan.keywords import PLACES
from indexplan_torch import PlanLoader, lightning, transformers
from indexplan_torch.loader import Options
from tests.errors.provoking import CASES, COMMANDS, outcome, play

CURED_COMMANDS = [name for name, case in COMMANDS.items() if case.cure]
PLAN = ip.Plan(ip.Without(ip.Shuffle(9), [3]), world_size=1, batch_size=2)
ROOTS: dict[str, Any] = {
    "plan": PLAN,
    "order": PLAN.order,
    "cursor": PLAN.start,
    "ip": ip,
    "indexplan": ip,
    "indexplan_torch": indexplan_torch,
    "np": np,
    "numpy": np,
}
OWNERS = (ip, indexplan_torch, PlanLoader, ip.Mixture, ip.Plan, lightning, transformers, np)
# Python's, torch's and others', and an order of a reader's own
OTHERS = {"len", "range", "next", "iter", "DataLoader", "MyOrder", "init_device_mesh", "astype"}
OTHERS |= {"client.get_executor", "frame.to_dict", "grain.sharding.ShardByJaxProcess"}
OTHERS |= {"ShardOptions", "torchdata.nodes.IterableWrapper", "json.loads", "list"}
OTHERS |= {"Path", "read_text", "values"}
WITH_CALLS = re.compile(r"[A-Za-z_][\w.]*\(")
DOTTED = re.compile(r"\b(?:plan|order|ip|indexplan(?:_torch)?)(?:\.[A-Za-z_]\w*)+(?![\w(/])")


def found(name: str) -> Any:
    """Return what a cure calls by this name, or None."""
    first, *rest = name.split(".")
    made = ROOTS.get(first)
    if first == "loader":
        made = PlanLoader(range(9), PLAN)
    elif first == "ledger":
        made = ip.Ledger("run.ledger")
    elif made is None:
        made = next((getattr(each, first) for each in OWNERS if hasattr(each, first)), None)
    for part in rest:
        if inspect.ismodule(made) and not hasattr(made, part):
            made = import_module(f"{made.__name__}.{part}")
        else:
            made = getattr(made, part, None)
    return made


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


def test_what_cures_call_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name, with the keywords that the cure writes."""
    monkeypatch.chdir(tmp_path)
    problems, seen = set(), 0
    for cure in (*(case.text.rpartition("; ")[2] for case in CASES.values()), *PLACES.values()):
        names = {each for each in DOTTED.findall(cure) if not each.endswith(".json")}
        problems |= {f"{name}: {cure}" for name in names if found(name) is None}
        for call in calls(cure):
            name = ast.unparse(call.func)
            if name in OTHERS:
                continue
            seen += 1
            made = found(name)
            given = {each.arg for each in call.keywords}
            if not callable(made) or (ours(made) and not given <= keywords(made)):
                problems.add(f"{name}: {cure}")
    assert not problems
    assert seen > 150


def ours(call: Any) -> bool:
    """Whether its signature is Python's to tell, and ours to change."""
    return (getattr(call, "__module__", None) or "").startswith("indexplan")


def keywords(call: Any) -> set[str]:
    """Return what a call of ours takes by name, with what it hands on to another."""
    taken = {*inspect.signature(call).parameters}
    if call is PlanLoader:
        taken |= {*Options.__annotations__}
    if call.__name__ == "replace":
        taken |= {*inspect.signature(ip.Plan).parameters}
    return taken


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
    pip = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--no-deps"]
    pip += commands.values()
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    assert "Requirement already satisfied: indexplan" in done.stdout, done.stdout + done.stderr
    assert 0 == done.returncode
