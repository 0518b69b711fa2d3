"""The public names, which 1.0 keeps: a change of these or of docs/reference is for every user."""

from __future__ import annotations

import pkgutil
import types

import indexplan as ip
import indexplan.plot
import indexplan.testing
import indexplan_fetch
import indexplan_jax
import indexplan_jax.grain
import indexplan_torch
import indexplan_torch.live

OF_OWN_ORDERS = ("Traits", "Units", "expand")
OF_A_PLAN = """
    account balance batch batch_size batch_sizes batches cursor cursor_at fingerprint from_json
    global_batch_size indices locate locate_all order remainder replace resume start step_size
    step_total steps sub_epochs to_json units world_size
"""
OF_A_BATCH = "bins copies inner_counts micro_batches num_valid offsets phase samples spans"
OF_A_LIVE_LOADER = "cursor epoch load_state_dict num_valid state_dict step_size world_size"


def test_modules_show_what_they_export() -> None:
    """Of these names docs/reference has one entry each: see tests/test_docs.py.

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
    packages = (
        ip,
        ip.plot,
        ip.testing,
        indexplan_fetch,
        indexplan_jax.grain,
        indexplan_torch,
    )
    named = {(each, name) for each in packages for name in each.__all__}
    functions = {n for each, n in named if isinstance(getattr(each, n), types.FunctionType)}
    modules = {
        info.name
        for package in (ip, indexplan_fetch, indexplan_jax, indexplan_torch)
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if not info.name.startswith("indexplan.cli.")  # which has a file for each verb
    }
    assert len(modules) > 200
    assert len(functions) > 15
    assert set() == {name for name in modules if name.rpartition(".")[2] in functions}
