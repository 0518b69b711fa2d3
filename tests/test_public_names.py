"""The public names, which 1.0 keeps: a change of these or of docs/reference is for every user.

Every one is documented by an example, and every example says what happens.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
import types
from dataclasses import fields
from pathlib import Path

import pytest

import indexplan as ip
import indexplan.plot
import indexplan.testing
import indexplan.types
import indexplan_fetch
import indexplan_jax
import indexplan_jax.grain
import indexplan_torch
import indexplan_torch.live
from indexplan.orders.registry import _REGISTRY, registered

ROOT = Path(__file__).parents[1]
PACKAGES = (ip, indexplan_fetch, indexplan_jax, indexplan_torch)
EXPORTING = (ip, ip.plot, ip.testing, ip.types)
EXPORTING += (indexplan_fetch, indexplan_jax.grain, indexplan_torch)
OF_OWN_ORDERS = ("Traits", "Units", "expand")
OF_A_PLAN = """
    account balance batch batch_size batch_sizes batches cursor cursor_at fingerprint from_json
    global_batch_size indices locate locate_all order remainder replace resume start step_size
    step_total steps sub_epochs to_json units world_size
"""
OF_A_BATCH = "bins copies inner_counts micro_batches num_valid offsets phase samples spans"
OF_A_LIVE_LOADER = "cursor epoch load_state_dict num_valid state_dict step_size world_size"


def test_modules_show_what_they_export() -> None:
    """Of these names docs/reference has one entry each: see below.

    `indexplan.orders` alone has those of the author of an order: who uses one needs none of them.
    """
    for module in (ip, ip.types, indexplan_jax):
        assert sorted(module.__all__) == dir(module)
    assert "life mixing reading" == " ".join(ip.plot.__all__)
    assert ["PlanIterDataset"] == indexplan_jax.grain.__all__
    assert {*OF_OWN_ORDERS} <= {*ip.orders.__all__}
    assert not {*OF_OWN_ORDERS} & {*ip.__all__}
    for name in ip.types.__all__:
        assert name == "Remainder" or name == getattr(ip.types, name).__name__


def test_a_plan_and_a_batch() -> None:
    """The fields of a plan, and what it can be asked; a batch with its units told apart."""
    plan = ip.Plan(ip.Sequential(8), world_size=2, batch_size=2)
    assert len(OF_A_PLAN.split()) == 26  # the most; a new name takes the place of another
    for names, made in (
        (OF_A_PLAN, plan),
        (OF_A_BATCH, plan.units(0, step=0, rank=0)),
        (OF_A_LIVE_LOADER, indexplan_torch.live.LiveLoader),
    ):
        assert names.split() == [name for name in dir(made) if name[0] != "_"]


def test_no_module_has_the_name_of_a_public_function() -> None:
    """What a package exports does not depend on which of its modules was imported first."""
    named = {(each, name) for each in EXPORTING for name in each.__all__}
    functions = {n for each, n in named if isinstance(getattr(each, n), types.FunctionType)}
    modules = {
        info.name
        for package in PACKAGES
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if not info.name.startswith("indexplan.cli.")  # which has a file for each verb
    }
    assert len(modules) > 200
    assert len(functions) > 15
    assert set() == {name for name in modules if name.rpartition(".")[2] in functions}


def test_every_public_name_is_in_the_reference() -> None:
    """Each name has one entry; what the entries show is looked at in tests/site."""
    pages = [page.read_text() for page in (ROOT / "docs" / "reference").glob("*.md")]
    entries = re.findall(r"^::: (\S+)$", "\n".join(pages), re.MULTILINE)
    modules = (*PACKAGES, ip.types, ip.testing)
    public = {f"{each.__name__}.{name}" for each in modules for name in each.__all__}
    public -= {"indexplan.testing", "indexplan.types"}
    public |= {f"indexplan.orders.{name}" for name in OF_OWN_ORDERS}
    of_trainers = {name for name in entries if name.count(".") == 2} - public
    assert sorted(public | of_trainers) == sorted(entries)


# --- examples
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


FIELDS = {field.name for field in fields(ip.Plan)}  # which its own docstring describes
ASKED = [name for name in vars(ip.Plan) if not (name.startswith("_") or name in FIELDS)]
PUBLIC = [
    *((package, name) for package in EXPORTING for name in package.__all__),
    *((ip.Plan, name) for name in ASKED),
]


WITHOUT = {"__version__", "Remainder"}  # text, and an alias of types


@pytest.mark.parametrize(("owner", "name"), [each for each in PUBLIC if each[1] not in WITHOUT])
def test_every_public_name_has_an_example(owner: object, name: str) -> None:
    """A docstring with an example, for what a package exports, and what a plan can be asked."""
    assert ">>>" in (getattr(owner, name).__doc__ or "")


SECTION = re.compile(r"^(Other )?Parameters\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(("owner", "name"), [each for each in PUBLIC if each[0] is not ip.Plan])
def test_every_parameter_is_described(owner: object, name: str) -> None:
    """A docstring that describes parameters describes all of them."""
    value = getattr(owner, name)
    sections = SECTION.findall(inspect.getdoc(value) or "")
    if sections:
        text = "\n".join(body for _, body in sections)
        described = set(re.findall(r"\w+", " ".join(re.findall(r"^[\w*, ]+", text, re.MULTILINE))))
        parameters = {each for each in inspect.signature(value).parameters if each[0] != "_"}
        assert not parameters - described
