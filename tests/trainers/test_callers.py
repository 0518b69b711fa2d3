"""Callers that are looked for: of tested versions, refused where renamed, nobody in a plain pass.

Each is found by the framework's own code in the tests that `SEEN` names, which it refuses.
"""

import importlib
import re
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import indexplan as ip
from indexplan_torch import (
    PlanBatchSampler,
    PlanLoader,
    accelerate,
    callers,
    drawing,
    transformers,
)
from indexplan_torch.callers import Caller
from indexplan_torch.versions import TESTED
from tests.trainers.ranks import ROOT
from tests.variants.test_table import names_in

pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # torchdata calls it

PLAN = ip.Plan(ip.Sequential(12), batch_size=3)
FILES = (accelerate, transformers, drawing)
CALLERS = {n: each for file in FILES for n, each in vars(file).items() if isinstance(each, Caller)}
SEEN = {
    "IN_TRANSFORMERS": (
        "tests/trainers/test_hf_trainer.py",
        "test_without_the_callback_a_plan_is_refused",
    ),
    "COUNTING_DRAWS": (
        "tests/trainers/test_torchdata_passes.py",
        "test_nodes_that_count_draws_are_refused",
    ),
    "SHARDING": (
        "tests/trainers/test_accelerate.py",
        "test_a_shard_made_by_hand_deals_out_no_rank_s_batches",
    ),
    "IN_COMPOSER": ("tests/trainers/test_composer.py", "test_fits_of_every_world"),
    "FETCHING_AHEAD": ("tests/trainers/test_ray.py", "test_ray_train_keeps_the_plan"),
    "SKIPPING": (
        "tests/through/test_loops.py",
        "test_a_loader_with_a_state_is_refused_and_one_without_reads_on",
    ),
}


def test_every_caller_is_met() -> None:
    """A new row of the table needs a test with the framework, of a version that is tested."""
    assert CALLERS.keys() == SEEN.keys()
    assert all(test in names_in(ROOT / file) for file, test in SEEN.values())
    assert {each.package for each in CALLERS.values()} <= TESTED.keys()


@pytest.mark.parametrize("name", CALLERS)
def test_a_version_without_the_caller_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A renamed function is an error, where looks would find nobody in silence."""
    caller = CALLERS[name]
    monkeypatch.setitem(sys.modules, caller.module, ModuleType(caller.module))
    lacks = re.escape(f"{caller.package} must have {caller.module}.{caller.functions[0]}, ")
    with pytest.raises(ip.IndexPlanError, match=f"^{lacks}"):
        callers.look(caller)


def test_nobody_is_found_who_is_not_calling() -> None:
    """With all the frameworks imported."""
    importlib.import_module("torchdata.nodes")
    importlib.import_module("transformers.trainer")
    assert [] == [name for name, each in CALLERS.items() if callers.look(each) is not None]


def test_a_plain_pass_looks_at_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes, states and cursors of a PlanLoader read no frame, with the trainers imported.

    Its length is asked for once, which Hugging Face Trainer does before it trains. Composer sets
    the pass of a sampler, so that is another look where Composer is imported.
    """
    importlib.import_module("transformers.trainer")
    monkeypatch.setitem(sys.modules, "composer.trainer.trainer", ModuleType("composer's"))
    looks = []

    def getframe(_: int) -> Any:
        looks.append(1)

    seen = SimpleNamespace(modules=sys.modules, _getframe=getframe)
    monkeypatch.setattr(callers, "sys", seen)
    loader = PlanLoader(range(48), ip.Plan(ip.Sequential(48), batch_size=3))
    for epoch in range(2):
        loader.set_epoch(epoch)
        for step, _ in enumerate(loader, 1):
            assert step % 16 == loader.cursor.step == loader.state_dict()["cursor"]["step"]
            assert 3 == loader.step_size
    assert (16, 0) == (step, len(looks))
    assert (16, 1) == (len(loader), len(looks))
    monkeypatch.delitem(sys.modules, "composer.trainer.trainer")
    PlanBatchSampler(PLAN).set_epoch(1)
    assert 1 == len(looks)
