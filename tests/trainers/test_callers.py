"""Each caller of the table is found in the installed framework, by its own code and ours."""

import contextlib
import importlib
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from lightning.fabric import Fabric

import indexplan as ip
from indexplan_torch import PlanLoader, callers, join
from indexplan_torch.callers import CALLERS, Caller
from indexplan_torch.versions import TESTED

pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # torchdata calls it

PLAN = ip.Plan(ip.Sequential(12), batch_size=3)
# what they refuse is in composer_resume_checks.py and composer_checks.py, in their own environment
IN_COMPOSER = {"IN_COMPOSER"}


def data() -> Any:
    """A dataset of as many samples as the plan's order."""
    return [{"x": float(index), "labels": float(index)} for index in range(12)]


def counted() -> None:
    """Read through Fabric's wrapper."""
    next(iter(Fabric(accelerator="cpu").setup_dataloaders(PlanLoader(data(), PLAN))))


def trained(loader: Any = None, model: Any = None, **asked: Any) -> Any:
    """Train with a loader, two micro-batches in an update; a step asks the loader something."""
    import transformers

    loader = PlanLoader(data(), PLAN) if loader is None else loader

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self) -> Any:
            return loader

        def training_step(self, *_: Any, **__: Any) -> Any:
            asked.get("step", lambda _: None)(loader)
            return torch.zeros(())

    options: dict[str, Any] = {"use_cpu": True, "disable_tqdm": True, "report_to": []}
    options |= {"gradient_accumulation_steps": 2, "max_steps": 1, "save_strategy": "no"}
    arguments = transformers.TrainingArguments(output_dir="unused", **options)
    Trainer(model=model or torch.nn.Linear(1, 1), args=arguments).train()


def rows() -> None:
    """Train a model on rows that a join has made."""
    trained(PlanLoader([[1.0, 2.0]] * 12, PLAN, collate_fn=join))


PROVOKED: dict[str, list[Callable[[], Any]]] = {
    "COUNTING_ITERATIONS": [counted],
    "IN_TRANSFORMERS": [trained],
    "RESUMING": [trained],
    "READING_ROWS": [rows],
    "FETCHED_TOGETHER": [lambda: trained(step=lambda loader: loader.step_size)],
}


def test_every_caller_is_looked_for() -> None:
    """A new row of the table needs a case here."""
    assert CALLERS.keys() == PROVOKED.keys() | IN_COMPOSER


def test_every_caller_is_of_a_tested_version() -> None:
    """A reader of the table finds there which versions it was seen in."""
    assert {each.package for each in CALLERS.values()} <= TESTED.keys()


@pytest.mark.parametrize(
    ("name", "provoke"), [(name, each) for name, all_of in PROVOKED.items() for each in all_of]
)
def test_a_caller_is_found(
    name: str, provoke: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The framework's own code calls ours, which sees it, with all the variables that it reads."""
    monkeypatch.chdir(tmp_path)
    found = []
    look = callers.look

    def noting(caller: Caller) -> Any:
        deeper = replace(caller, depth=caller.depth + 1)  # by this function
        seen = look(deeper)
        if caller is CALLERS[name] and seen is not None:
            found.append(seen.values.keys())
        return seen

    monkeypatch.setattr(callers, "look", noting)
    with contextlib.suppress(ip.IndexPlanError):  # what many of them are looked for
        provoke()
    old = {"epoch_dataloader"} if name == "FETCHED_TOGETHER" else set()  # of older versions
    assert set(CALLERS[name].reads) - old in [each - old for each in found]


@pytest.mark.parametrize(
    "name", [n for n, each in CALLERS.items() if each.modules and each.functions]
)
def test_a_version_without_the_caller_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A renamed function is an error, where looks would find nobody in silence."""
    caller = CALLERS[name]
    for module in caller.modules:
        monkeypatch.setitem(sys.modules, module, ModuleType(module))
    lacks = re.escape(f"{caller.package} must have {caller.modules[0]}.{caller.functions[0]}, ")
    with pytest.raises(ip.IndexPlanError, match=f"^{lacks}"):
        callers.look(caller)


def test_nobody_is_found_who_is_not_calling() -> None:
    """With all the frameworks imported."""
    importlib.import_module("transformers.trainer")
    assert [] == [name for name, each in CALLERS.items() if callers.look(each) is not None]


def test_a_plain_pass_looks_at_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen batches, lengths, states and cursors read no frame where no trainer is imported."""
    for name in {name for caller in CALLERS.values() for name in caller.modules}:
        monkeypatch.delitem(sys.modules, name, raising=False)

    def getframe(_: int) -> Any:
        raise AssertionError("a look")

    seen = SimpleNamespace(modules=sys.modules, _getframe=getframe, maxsize=sys.maxsize)
    monkeypatch.setattr(callers, "sys", seen)
    loader = PlanLoader(range(48), ip.Plan(ip.Sequential(48), batch_size=3))
    loader.set_epoch(0)
    for step, _ in enumerate(loader, 1):
        assert step % 16 == loader.cursor.step == loader.state_dict()["cursor"]["step"]
        assert (16, 3) == (len(loader), loader.step_size)
    assert step == 16
