"""What is installed: the table of tested versions, and what is said where a package is missing."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import indexplan as ip
import indexplan_jax
from indexplan.partition.remainders import REMAINDERS, Policy
from indexplan_jax.steady import steady_of
from indexplan_torch.versions import TESTED
from tests.errors.catalogue.adapters import without_names
from tests.support.fresh import printed
from tests.trainers.ranks import ROOT


def installed_by_ci(name: str) -> set[str]:
    """Return every version of a package that CI installs: locked ones, and those of commands."""
    pin = re.compile(rf"(?<![\w.-]){name}==([\d.]+)")
    files = [*(ROOT / ".ci").glob("locked-*.txt")]
    locks = "test", "dev", *beside()  # the project's groups, and what is installed beside them
    assert {file.stem for file in files} == {f"locked-{each}" for each in locks}
    files += ROOT / "README.md", ROOT / "CONTRIBUTING.md"
    return {version for file in files for version in pin.findall(file.read_text())}


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("adapter", "missing", "extra"),
    [
        ("indexplan_torch", "torch", "torch"),
        ("indexplan_fetch", "fsspec", "remote"),
        ("indexplan_jax.grain", "grain", "grain"),
    ],
)
def test_without_torch_the_extra_is_named(
    tmp_path: Path, adapter: str, missing: str, extra: str
) -> None:
    """Where torch, fsspec or Grain truly is not there, importing an adapter says how to get it."""
    for package in ("numpy", "numpy.libs"):  # nothing else that is installed can be imported
        home = Path(np.__file__).parents[1] / package
        if home.exists():
            (tmp_path / package).symlink_to(home)
    paths = [str(ROOT), str(ROOT / "adapters"), str(tmp_path)]
    code = f"import sys; sys.path[:0] = {paths}; import indexplan, {adapter}"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], check=False, capture_output=True, text=True
    )
    assert 1 == done.returncode
    expected = f"ModuleNotFoundError: {adapter} needs {missing}, which is not installed; "
    cure = f"pip install '.[{extra}]' in your checkout of indexplan"  # which is on the path alone
    assert expected + cure == done.stderr.splitlines()[-1]
    code = f"from indexplan.errors import install; print(install({extra!r}))"
    assert f"pip install 'indexplan[{extra}]'\n" == printed("-c", code)


def test_without_jax_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing the package works, as for those who use Grain; taking a function names JAX."""
    for name in [name for name in sys.modules if name.startswith("indexplan_jax.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jax", None)  # as if it were not there
    said = (
        r"indexplan_jax\.shuffle needs jax, which is not installed; pip install 'indexplan\[jax\]"
    )
    with pytest.raises(ModuleNotFoundError, match=said):
        indexplan_jax.shuffle  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'permute'"):
        indexplan_jax.permute  # noqa: B018


@pytest.mark.parametrize("policy", [Policy("wraps", repeats=True), Policy("ends", leaves=True)])
@pytest.mark.parametrize("num_samples", [100, 96])
def test_a_remainder_that_it_does_not_know(
    monkeypatch: pytest.MonkeyPatch, policy: Policy, num_samples: int
) -> None:
    """One that is added to the library is refused until somebody has looked at its steps."""
    monkeypatch.setitem(REMAINDERS, "new", policy)
    plan = ip.Plan(ip.Shuffle(num_samples), world_size=2, batch_size=3, remainder="new")
    why = ", as 6 does not divide 100" if num_samples == 100 else ""
    with pytest.raises(ip.IndexPlanError) as caught:
        steady_of(plan)
    said = f"""plan.remainder must be "drop", "pad" or "carry"{why}; got 'new'; """
    assert str(caught.value) == said + 'use plan.replace(remainder="drop")'
