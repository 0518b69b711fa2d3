"""Each caller of the table is found in the installed framework, by its own code and ours."""

import contextlib
import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

import indexplan as ip
from indexplan_torch import (
    PlanBatchSampler,
    PlanLoader,
    PlanSampler,
    accelerate,
    callers,
    drawing,
    transformers,
)
from indexplan_torch.callers import Caller
from indexplan_torch.versions import TESTED

pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # torchdata calls it

PLAN = ip.Plan(ip.Sequential(12), batch_size=3)
FULL = PLAN.replace(remainder="drop")
FILES = (accelerate, transformers, drawing)
CALLERS = {n: each for file in FILES for n, each in vars(file).items() if isinstance(each, Caller)}
# what they refuse is in composer_resume_checks.py and composer_checks.py, in their own environment,
# in test_ray.py and in loops_checks.py
ELSEWHERE = {"IN_COMPOSER", "FETCHING_AHEAD", "SKIPPING"}


def data() -> Any:
    """A dataset of as many samples as the plan's order."""
    return [{"x": float(index), "labels": float(index)} for index in range(12)]


def trained() -> None:
    """Train with a loader."""
    import transformers

    loader = PlanLoader(data(), PLAN)

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self) -> Any:
            return loader

    arguments = transformers.TrainingArguments(output_dir="unused", use_cpu=True, report_to=[])
    Trainer(model=torch.nn.Linear(1, 1), args=arguments).train()


def wrapped(sampler: Any) -> None:
    """Read a sampler by a node of torchdata."""
    from torchdata.nodes import Loader, SamplerWrapper

    next(iter(Loader(SamplerWrapper(sampler))))


def sharded(sampler: Any) -> None:
    """Read a sampler by a shard of Accelerate's that was made by hand."""
    from accelerate.data_loader import BatchSamplerShard

    next(iter(BatchSamplerShard(sampler, 2, 0)))


def sharded_from_afar(sampler: Any) -> None:
    """Read a sampler by a shard, through more wrappers than anybody would count.

    The sampler is asked for its iterator before there is a shard.
    """
    from accelerate.data_loader import BatchSamplerShard

    batches: Any = iter(sampler)
    for _ in range(50):
        batches = (batch for batch in batches)
    next(iter(BatchSamplerShard(batches, 2, 0)))


PROVOKED: dict[str, list[Callable[[], Any]]] = {
    "IN_TRANSFORMERS": [trained],
    "COUNTING_DRAWS": [lambda: wrapped(PlanBatchSampler(PLAN)), lambda: wrapped(PlanSampler(FULL))],
    "SHARDING": [
        lambda: sharded(PlanBatchSampler(PLAN)),
        lambda: sharded(PlanBatchSampler(FULL)),
        lambda: sharded_from_afar(PlanBatchSampler(PLAN)),
    ],
}


def test_every_caller_is_looked_for() -> None:
    """A new row of the table needs a case here."""
    assert CALLERS.keys() == PROVOKED.keys() | ELSEWHERE


def test_every_caller_is_of_a_tested_version() -> None:
    """A reader of the table finds there which versions it was seen in."""
    assert {each.package for each in CALLERS.values()} <= TESTED.keys()


@pytest.mark.parametrize(
    ("name", "provoke"), [(name, each) for name, all_of in PROVOKED.items() for each in all_of]
)
def test_a_caller_is_found(
    name: str, provoke: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The framework's own code calls ours, which sees it."""
    monkeypatch.chdir(tmp_path)
    found = []
    look = callers.look

    def noting(caller: Caller) -> Any:
        seen = look(caller)
        if caller is CALLERS[name] and seen is not None:
            found.append(seen)
        return seen

    for file in FILES:
        monkeypatch.setattr(file, "look", noting)
    with contextlib.suppress(ip.IndexPlanError):  # what many of them are looked for
        provoke()
    assert found


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
