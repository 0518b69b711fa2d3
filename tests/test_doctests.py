"""Every public name is documented by an example, and every example says what happens."""

import doctest
import importlib
import inspect
import pkgutil
import re
from dataclasses import fields
from pathlib import Path

import pytest

import indexplan
import indexplan.plot
import indexplan.types
import indexplan_fetch
import indexplan_jax
import indexplan_jax.grain
import indexplan_torch
from indexplan.orders.registry import _REGISTRY, registered

PACKAGES = (indexplan, indexplan_fetch, indexplan_jax, indexplan_torch)
EXPORTING = (
    *(indexplan, indexplan.plot, indexplan.types),
    *(indexplan_fetch, indexplan_jax.grain, indexplan_torch),
)
# JAX computes these
OF_JAX = {f"indexplan_jax.{name}" for name in ("key_words", "network", "taken", "traced")}
# Lightning's import warns, the others have environments of their own; their tests import these
OF_A_TRAINER = {
    "indexplan_torch.composer",
    "indexplan_torch.lightning",
    "indexplan_torch.olmo",
    "indexplan_torch.torchtitan",
}

MODULES = sorted(
    info.name
    for package in PACKAGES
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if info.name not in OF_A_TRAINER | OF_JAX | {"indexplan.__main__"}
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples of a module's docstrings run, in a folder of their own, and are right."""
    monkeypatch.chdir(tmp_path)
    registered()  # ours have to be there already; those that an example registers are forgotten
    monkeypatch.setattr("indexplan.orders.registry._REGISTRY", dict(_REGISTRY))
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.FAIL_FAST)
    assert 0 == failed


FIELDS = {field.name for field in fields(indexplan.Plan)}  # which its own docstring describes
ASKED = [name for name in vars(indexplan.Plan) if not (name.startswith("_") or name in FIELDS)]
PUBLIC = [
    *((package, name) for package in EXPORTING for name in package.__all__),
    *((indexplan.Plan, name) for name in ASKED),
]


WITHOUT = {"__version__", "Remainder"}  # text, and an alias of types


@pytest.mark.parametrize(("owner", "name"), [each for each in PUBLIC if each[1] not in WITHOUT])
def test_every_public_name_has_an_example(owner: object, name: str) -> None:
    """A docstring with an example, for what a package exports, and what a plan can be asked."""
    assert ">>>" in (getattr(owner, name).__doc__ or "")


SECTION = re.compile(r"^(Other )?Parameters\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    ("owner", "name"), [each for each in PUBLIC if each[0] is not indexplan.Plan]
)
def test_every_parameter_is_described(owner: object, name: str) -> None:
    """A docstring that describes parameters describes all of them."""
    value = getattr(owner, name)
    sections = SECTION.findall(inspect.getdoc(value) or "")
    if sections:
        text = "\n".join(body for _, body in sections)
        described = set(re.findall(r"\w+", " ".join(re.findall(r"^[\w*, ]+", text, re.MULTILINE))))
        parameters = {each for each in inspect.signature(value).parameters if each[0] != "_"}
        assert not parameters - described
