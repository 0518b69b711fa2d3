"""The table of tested versions: what CI installs, what is required, and what is said."""

import re

import pytest

import indexplan as ip
from indexplan_torch.versions import TESTED
from tests.errors.catalogue.adapters import without_names
from tests.trainers.ranks import ROOT


def installed_by_ci(name: str) -> set[str]:
    """Return every version of a package that CI installs: what is locked, and what it names."""
    pin = re.compile(rf"(?<![\w.-]){name}==([\d.]+)")
    files = [*(ROOT / ".ci").glob("locked-*.txt"), ROOT / ".ci" / "run"]
    assert {file.stem for file in files} == {f"locked-{each}" for each in locks()} | {"run"}
    return {version for file in files for version in pin.findall(file.read_text())}


def locks() -> list[str]:
    """Return the names of the locks that CI installs: the project's groups, and others beside."""
    return ["test", "dev", *beside()]


def beside() -> dict[str, set[str]]:
    """Return what beside.toml asks for, by the names of its sets."""
    text = re.sub(r" *#.*", "", (ROOT / ".ci" / "beside.toml").read_text())
    sets = re.findall(r"^(\w+) = \[(.*?)\]$", text, re.MULTILINE | re.DOTALL)
    return {name: {*re.findall(r'"(.*?)"', packages)} for name, packages in sets}


@pytest.mark.parametrize("name", beside())
def test_locks_are_of_what_is_asked_for(name: str) -> None:
    """Whoever changes beside.toml runs .ci/lock; names are compared as indexes do."""
    lock = (ROOT / ".ci" / f"locked-{name}.txt").read_text()
    pins = re.findall(r"^(\S+) --hash=sha256:[0-9a-f]{64}$", lock, re.MULTILINE)
    assert len(pins) == len(lock.splitlines())
    assert {plain(pin) for pin in pins} == {plain(each) for each in beside()[name]}


def plain(pin: str) -> str:
    """Return a package's name and version, the name as indexes compare it."""
    return re.sub(r"[-_.]+(?=.*==)", "-", pin.lower())


def test_the_table_is_that_of_the_code() -> None:
    """docs/trainers.md shows the versions that errors name."""
    section = (ROOT / "docs" / "trainers.md").read_text().partition("## Tested versions")[2]
    rows = re.findall(r"^\| ([a-z-]+) \| ([\d.]+) \| ([\d.]+) \|$", section, re.MULTILINE)
    assert TESTED == {name: (floor, tested) for name, floor, tested in rows}


@pytest.mark.parametrize("name", TESTED)
def test_ci_installs_what_the_table_says(name: str) -> None:
    """A lock that moves asks for a new row; a release that is newer than the lock asks nobody."""
    assert {TESTED[name][1]} == installed_by_ci(name)


def test_the_lowest_versions_are_those_required() -> None:
    """The extras ask for no older version than the table starts with."""
    text = (ROOT / "pyproject.toml").read_text()
    required = dict(re.findall(r'"([a-z-]+)(?:\[train\])?>=([\d.]+)"', text))
    known = TESTED.keys() & required.keys()
    assert {"torch", "lightning", "accelerate", "transformers", "torchdata", "ray"} == known
    assert {name: required[name] for name in known} == {name: TESTED[name][0] for name in known}


def test_groups_without_names() -> None:
    """Torch 2.2 names no groups: the default one alone is no mesh's, of more nobody can tell."""
    assert {} == without_names(1)
    with pytest.raises(ip.IndexPlanError, match="process groups beside the default one must say"):
        without_names(2)
