"""Callers that are looked for: refused where renamed, and nobody in a plain pass."""

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

pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # torchdata calls it

PLAN = ip.Plan(ip.Sequential(12), batch_size=3)
FILES = (accelerate, transformers, drawing)
CALLERS = {n: each for file in FILES for n, each in vars(file).items() if isinstance(each, Caller)}


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
