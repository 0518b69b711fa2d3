"""What importing the library loads, and what using it changes."""

import json
import sys

import pytest

import indexplan as ip
from tests.support.fresh import printed


def modules_after(code: str) -> set[str]:
    """Names of the top-level modules that a fresh process has after some code."""
    code += "\nimport sys, json; print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"
    return set(json.loads(printed("-c", code)))


def test_import_needs_only_numpy() -> None:
    """`import indexplan` loads neither numba nor torch, nor anything else beside NumPy."""
    loaded = modules_after("import indexplan") - modules_after("import numpy")
    assert not {"numba", "llvmlite", "torch", "tqdm", "matplotlib"} & loaded
    outside = loaded - set(sys.stdlib_module_names) - {"__mp_main__"}
    assert {"indexplan"} == outside


@pytest.mark.slow
def test_most_orders_wait_for_their_use() -> None:
    """A run imports the orders that it uses; the others are there when a spec names one."""
    names = "[name for name in sys.modules if name.startswith('indexplan.orders.')]"
    spec = ip.Plan(ip.Epochs(ip.Shuffle(9), 4), batch_size=1).to_json()
    code = (
        f"import json, sys, indexplan as ip; before = {names}; "
        f"plan = ip.Plan.from_json({spec!r}); print(json.dumps([before, {names}]))"
    )
    before, after = json.loads(printed("-c", code))
    assert "indexplan.orders.shuffle" in before
    assert "indexplan.orders.epochs" not in before
    assert "indexplan.orders.epochs" in after


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
    plan = (
        "import indexplan as ip\nplan = ip.Plan(ip.Shuffle(10**12), world_size=8, batch_size=8)\n"
    )
    counting = (
        "plan.steps(0).stop, plan.account(0), plan.cursor(0, step=3)\n"
        "plan.batch_sizes(0, rank=0, stop_step=4)"
    )
    assert "numba" not in modules_after(plan + counting)
    loaded = modules_after(plan + "plan.batch(0, step=3, rank=2)")
    assert "numba" in loaded
    assert "torch" not in loaded


@pytest.mark.slow
def test_a_type_that_is_only_returned_loads_no_other() -> None:
    """`indexplan` loads `indexplan.types` at its first use, and that one what is asked for."""
    names = "{name for name in sys.modules if name.startswith('indexplan.')}"
    code = (
        f"import json, sys, indexplan as ip; before = {names}; "
        f"from indexplan.types import Account; "
        f"account = {names} - before; from indexplan.types import Reading; "
        f"print(json.dumps([*map(sorted, (before, account, {names} - before - account))]))"
    )
    before, account, reading = json.loads(printed("-c", code))
    assert "indexplan.types" not in before
    assert account == ["indexplan.types"]
    assert "indexplan.reports.explanation" in reading
    assert "indexplan.reports.verification" not in reading


@pytest.mark.slow
def test_a_loader_imports_no_more_than_it_needs() -> None:
    """What packs, fetches, keeps ledgers, or serves a device or one trainer waits for its use."""
    ours = "('indexplan_fetch', 'indexplan_torch', 'indexplan.ledger')"
    names = f"sorted(name for name in sys.modules if name.startswith({ours}))"
    code = (
        "import json, sys, indexplan as ip; from indexplan_torch import PlanLoader; "
        "loader = PlanLoader(range(9), ip.Plan(ip.Shuffle(9), batch_size=2)); "
        "loader.load_state_dict(loader.state_dict()); assert len(list(loader)) == 5; "
        f"print(json.dumps({names})); from indexplan_torch import *; print(json.dumps({names}))"
    )
    used, everything = map(json.loads, printed("-c", code).splitlines())
    assert {"indexplan_torch"} == {name.partition(".")[0] for name in used}
    assert len(used) <= 18
    assert not {"bins", "meshes", "recording", "sharded"} & {n[16:] for n in used}
    assert {"indexplan_fetch", "indexplan_torch.bins", "indexplan_torch.sharded"} <= {*everything}
