"""The public names, which 1.0 keeps: a change of these lists is a change for every user."""

from __future__ import annotations

import pkgutil
import types

import pytest

import indexplan as ip
import indexplan.plot
import indexplan.testing
import indexplan_fetch
import indexplan_jax
import indexplan_jax.grain
import indexplan_torch
import indexplan_torch.live

WRITTEN = """
    Balance Batched BlockShuffle ClassBalanced ClassBatches Column Cursor Dataset Distinct
    DocumentWindows Epochs Flat Grouped IndexPlanError Layer Ledger LengthGrouped LocalShuffle
    Mixture Order Packed Phase Plan
    PlanFileError Repeat Sequential ShardShuffle Shards Shuffle Split Subset TokenBudget
    TokenWindows Weighted Without __version__ diff draws explain
    export load plot reads register save
    shard_sizes stream testing traffic types verify worker_seed
"""
OF_OWN_ORDERS = ("Traits", "Units", "expand")
RETURNED = """
    Account At Batch Bench Check Difference Draws LedgerAccount Location Part
    Read Reading Reads Remainder Report Saved Stored Stream
    Traffic
"""
OF_A_PLAN = """
    account balance batch batch_size batch_sizes batches cursor cursor_at fingerprint from_json
    global_batch_size indices locate locate_all order remainder replace resume start step_size
    step_total steps sub_epochs to_json units world_size
"""
OF_A_BATCH = "bins copies inner_counts micro_batches num_valid offsets phase samples spans"
OF_TORCH = """
    About Bins Piece PlanBatchSampler PlanLoader PlanSampler
    ShardedDataset join open_array_record open_parquet open_tar
"""
OF_GRAIN = "PlanIterDataset"
OF_JAX = "rank_indices shuffle step_indices"
OF_FETCHING = "Fetched ShardFile ShardLoader open_array_record open_parquet open_tar"
OF_A_LIVE_LOADER = """
    cursor epoch load_state_dict num_valid state_dict step_size world_size
"""
DRAWN = "life mixing reading"


def test_what_a_user_writes() -> None:
    """The top level has what is written in a script, and nothing that is only returned."""
    assert WRITTEN.split() == dir(ip) == ip.__all__


def test_what_the_author_of_an_order_writes() -> None:
    """`indexplan.orders` alone has these: who uses an order needs none of them."""
    assert {*OF_OWN_ORDERS} <= {*ip.orders.__all__}
    assert not {*OF_OWN_ORDERS} & {*ip.__all__}


def test_what_is_only_returned() -> None:
    """These have names for annotations, each the type itself."""
    assert RETURNED.split() == dir(ip.types) == ip.types.__all__
    for name in ip.types.__all__:
        assert name == "Remainder" or name == getattr(ip.types, name).__name__


def test_a_plan_and_a_batch() -> None:
    """The fields of a plan, and what it can be asked; a batch with its units told apart."""
    plan = ip.Plan(ip.Sequential(8), world_size=2, batch_size=2)
    assert OF_A_PLAN.split() == [name for name in dir(plan) if name[0] != "_"]
    assert len(OF_A_PLAN.split()) == 26  # the most; a new name takes the place of another
    batch = plan.units(0, step=0, rank=0)
    assert OF_A_BATCH.split() == [name for name in dir(batch) if name[0] != "_"]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (DRAWN, ip.plot.__all__),
        ("check_order", ip.testing.__all__),
        (
            OF_A_LIVE_LOADER,
            [name for name in dir(indexplan_torch.live.LiveLoader) if name[0] != "_"],
        ),
        (OF_TORCH, indexplan_torch.__all__),  # each trainer has a module of its own
        (OF_GRAIN, indexplan_jax.grain.__all__),
        (OF_JAX, indexplan_jax.__all__),  # tests/everywhere/jax_checks.py has it with JAX
        (OF_JAX, dir(indexplan_jax)),
        (OF_FETCHING, indexplan_fetch.__all__),
    ],
)
def test_other_modules(names: str, found: list[str]) -> None:
    """Pictures, checks of one's own order, live loaders, and the adapters."""
    assert names.split() == found


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
