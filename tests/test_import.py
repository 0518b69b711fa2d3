"""What importing the library loads, and what using it changes."""

import json
import sys

import pytest

import indexplan as ip
from tests.support.fresh import printed


def loaded(*steps: str) -> list[set[str]]:
    """Return which modules each of some steps loads, one after another in a fresh process."""
    told = "\nprint(json.dumps([*{*sys.modules} - known])); known = {*sys.modules}\n"
    code = "import json, sys; known = set()\n" + "".join(step + told for step in steps)
    return [set(json.loads(line)) for line in printed("-c", code).splitlines()]


def test_import_needs_only_numpy() -> None:
    """`import indexplan` loads neither numba nor torch, nor anything else beside NumPy."""
    numpys, ours = (
        {name.partition(".")[0] for name in names}
        for names in loaded("import numpy", "import indexplan")
    )
    outside = ours - numpys - set(sys.stdlib_module_names)
    assert {"indexplan"} == outside - {"__mp_main__"}


@pytest.mark.slow
def test_most_orders_wait_for_their_use() -> None:
    """A run imports the orders that it uses; the others are there when a spec names one."""
    spec = ip.Plan(ip.Epochs(ip.Shuffle(9), 4), batch_size=1).to_json()
    before, more = loaded("import indexplan as ip", f"plan = ip.Plan.from_json({spec!r})")
    assert "indexplan.orders.shuffle" in before
    assert "indexplan.orders.epochs" not in before
    assert "indexplan.orders.epochs" in more


@pytest.mark.slow
def test_a_name_of_ours_is_taken() -> None:
    """Before ours was ever imported, too."""
    code = (
        "import indexplan as ip\nclass Own(ip.Sequential):\n    algorithm = 'epochs-v1'\n"
        "try:\n    ip.register(Own)\nexcept ip.IndexPlanError as error:\n    print(error)"
    )
    said = "algorithm must be a name that no other class has registered; got 'epochs-v1'; "
    assert printed("-c", code) == f"{said}give it another name\n"


@pytest.mark.slow
def test_arithmetic_needs_no_numba() -> None:
    """Sizes, counts and cursors come without numba; indices of a shuffle load it; torch never."""
    plan = "import indexplan as ip; plan = ip.Plan(ip.Shuffle(10**12), world_size=8, batch_size=8)"
    counting = (
        "plan.steps(0).stop, plan.account(0), plan.cursor(0, step=3)\n"
        "plan.batch_sizes(0, rank=0, stop_step=4)"
    )
    counted, drawn = loaded(f"{plan}\n{counting}", "plan.batch(0, step=3, rank=2)")
    assert "numba" not in counted
    assert "numba" in drawn
    assert "torch" not in counted | drawn


@pytest.mark.slow
def test_a_type_that_is_only_returned_loads_no_other() -> None:
    """`indexplan` loads `indexplan.types` at its first use, and that one what is asked for."""
    types = (f"from indexplan.types import {name}" for name in ("Account", "Reading"))
    before, account, reading = loaded("import indexplan", *types)
    assert "indexplan.types" not in before
    assert {name for name in account if name.startswith("indexplan.")} == {"indexplan.types"}
    assert "indexplan.reports.explanation" in reading
    assert "indexplan.reports.verification" not in reading


@pytest.mark.slow
def test_a_loader_imports_no_more_than_it_needs() -> None:
    """What packs, fetches, keeps ledgers, or serves a device or one trainer waits for its use."""
    code = (
        "import indexplan as ip; from indexplan_torch import PlanLoader; "
        "loader = PlanLoader(range(9), ip.Plan(ip.Shuffle(9), batch_size=2)); "
        "loader.load_state_dict(loader.state_dict()); assert len(list(loader)) == 5"
    )
    used, more = loaded(code, "from indexplan_torch import *")
    ours = {name for name in used if name.startswith("indexplan_torch")}
    assert not [name for name in used if name.startswith(("indexplan_fetch", "indexplan.ledger"))]
    assert len(ours) <= 18
    assert not {"bins", "meshes", "recording", "sharded"} & {name[16:] for name in ours}
    assert {"indexplan_fetch", "indexplan_torch.bins", "indexplan_torch.sharded"} <= more
