"""Which passes Lightning reads, in one process: its looks, what it cuts, and evaluations."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
from lightning.pytorch.utilities import CombinedLoader

import indexplan as ip
from indexplan_torch import PlanBatchSampler, PlanLoader, PlanSampler
from indexplan_torch.lightning import RefreshStepCounts

pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning's own

PLAN = ip.Plan(ip.Shuffle(12, seed=1), batch_size=3)
HALVES = PLAN.replace(sub_epochs=2)


def loader_of(plan: ip.Plan, **options: Any) -> PlanLoader:
    """A loader whose samples are their indices."""
    return PlanLoader(range(plan.order.num_samples), plan, **options)


def of_plan(plan: ip.Plan, *numbers: int) -> list[list[list[int]]]:
    """The batches of passes."""
    whole = plan.replace(world_size=1)
    where = [divmod(number, plan.sub_epochs) for number in numbers]
    return [[b.tolist() for b in whole.batches(*each, rank=0)] for each in where]


class Model(pl.LightningModule):
    """A model that keeps what it is trained and validated with."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.trained: list[Any] = []
        self.looks: list[Any] = []
        self.validated: list[Any] = []

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        batch = batch[0] if isinstance(batch, list | tuple) else batch
        self.trained.append(batch.tolist())
        return self.layer(batch[:, None].float()).mean()

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        (self.looks if self.trainer.sanity_checking else self.validated).append(batch.tolist())

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def trainer(**options: Any) -> Any:
    """A quiet Trainer."""
    off = ("logger", "enable_progress_bar", "enable_model_summary", "enable_checkpointing")
    quiet = dict.fromkeys(off, False)
    where = {"accelerator": "cpu", "devices": 1, "callbacks": [RefreshStepCounts()]}
    return pl.Trainer(**{**quiet, **where, **options})


LIMIT = (
    "epoch 0, sub-epoch 0: the trainer's limit ends each pass after 1 of 4 steps, so 9 of its 12 "
    "samples are never read; use ip.Epochs(order, 3), whose epochs have so many and lose none, "
    "without a limit, or pass partial=True if this is intended"
)


def said(**options: Any) -> tuple[list[list[int]], list[str]]:
    """Train with options of a Trainer; return what was read, and the warnings about passes."""
    model, loader = Model(), options.pop("loader", None) or loader_of(PLAN)
    valid = options.pop("valid", None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trainer(**options).fit(model, loader, valid)
    told = [str(each.message) for each in caught]
    return model.trained, [each for each in told if "left after" in each or "limit" in each]


def test_a_limit_that_loses_samples_is_told_once_and_its_cure_loses_none() -> None:
    """As steps or as a share, for training and validation, each loader once."""
    for limit in (1, 0.25):
        trained, told = said(max_epochs=4, limit_train_batches=limit)
        assert [each[0][0] for each in (of_plan(PLAN, number) for number in range(4))] == trained
        assert [LIMIT] == told
    _, told = said(max_epochs=3, limit_val_batches=1, valid=loader_of(PLAN))
    assert [LIMIT] == told
    cured = PLAN.replace(order=ip.Epochs(PLAN.order, 3))
    for options in ({}, {"limit_train_batches": 1}):
        trained, told = said(loader=loader_of(cured), max_epochs=4, **options)
        assert [*range(12)] == sorted(sum(trained, []))
        assert [] == told


@pytest.mark.parametrize(
    "options",
    [
        {"fast_dev_run": 2},
        {"max_epochs": 1, "limit_train_batches": 2},
        {"max_epochs": 2, "limit_train_batches": 9},  # more than there are
        {"max_epochs": 2, "max_steps": 6},
        {"max_epochs": 3, "limit_train_batches": 2, "loader": loader_of(PLAN, partial=True)},
    ],
)
def test_limits_that_lose_nothing_or_were_meant_are_not_told(options: dict[str, Any]) -> None:
    """Trial runs of one pass, and who says partial=True."""
    assert [] == said(**options)[1]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_sanity_looks_are_looks(num_workers: int) -> None:
    """What Lightning looks at before it trains is read whole later, in whichever epoch."""
    model, valid = Model(), loader_of(PLAN, num_workers=num_workers)
    trainer(max_epochs=4, check_val_every_n_epoch=2).fit(model, loader_of(PLAN), valid)
    assert of_plan(PLAN, 0)[0][:2] == model.looks
    assert sum(of_plan(PLAN, 1, 3), []) == model.validated


def test_a_validation_of_half_the_data_is_refused() -> None:
    """A plan with sub-epochs would validate on another part each time."""
    message = (
        "an evaluation's plan must have sub_epochs=1 under Lightning, as each evaluation is one "
        "pass; got sub_epochs=2; use plan.replace(sub_epochs=1)"
    )
    with pytest.raises(ip.IndexPlanError, match=f"^{re.escape(message)}$"):
        trainer(max_epochs=2).fit(Model(), loader_of(PLAN), loader_of(HALVES))
    with pytest.raises(ip.IndexPlanError, match=f"^{re.escape(message)}$"):
        trainer().validate(Model(), loader_of(HALVES))


CUT = (
    "a pass must be read whole before a later one begins; got 2 of 4 steps of epoch 0, sub-epoch "
    "0, and then epoch 1, sub-epoch 0; under Lightning combine loaders by mode 'max_size', which "
    "reads the longest whole, or resume from a checkpoint that "
    "ModelCheckpoint(every_n_train_steps=...) saved in that epoch, or pass partial=True if passes "
    "are left on purpose"
)


def test_a_shorter_loader_that_cuts_a_longer_one_is_told_of() -> None:
    """The error names the cure for combined loaders; with it, all of both is read."""
    few = ip.Plan(ip.Shuffle(6), batch_size=3)
    both = CombinedLoader([loader_of(PLAN), loader_of(few)], "min_size")
    with pytest.raises(ip.IndexPlanError, match=f"^{re.escape(CUT)}$"):
        trainer(max_epochs=2).fit(Model(), both)
    both = CombinedLoader([loader_of(PLAN), loader_of(few)], "max_size")
    fit = trainer(max_epochs=2)
    fit.fit(Model(), both)
    assert 8 == fit.global_step


class InPairs(Model):
    """A model that is trained with the batches of two loaders together, or with None of one."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.trained.append([None if each is None else each.tolist() for each in batch])
        return self.layer(torch.ones(1, 1)).mean()


@pytest.mark.parametrize("kind", ["batches", "samples", "cycled"])
def test_a_sampler_in_another_loader_is_not_trained_on(kind: str) -> None:
    """Resumed after two epochs, one with workers read pass 0 where the plan has pass 2.

    Lightning starts a loader before it names the pass (its issue 21938), and cycles one whose place
    nobody knows.
    """
    few = ip.Plan(ip.Shuffle(9), batch_size=3)
    form: Any = {"batch_sampler": PlanBatchSampler(few)}
    if kind == "samples":
        form = {"sampler": PlanSampler(few.replace(remainder="drop")), "batch_size": 3}
    drawn: Any = torch.utils.data.DataLoader(range(9), **form)
    if kind == "cycled":
        drawn = CombinedLoader([loader_of(PLAN), drawn], "max_size_cycle")
    with pytest.raises(ip.IndexPlanError, match=r"^a training.s loader must have a state"):
        trainer(max_epochs=2).fit(InPairs(), drawn)


@pytest.mark.parametrize("hook", [False, True])
def test_a_sampler_that_is_replaced_to_overfit_is_told_of(hook: bool) -> None:
    """Lightning puts a sampler of its own in a DataLoader, so that the plan would not be read."""
    plan = ip.Plan(ip.Shuffle(9), batch_size=3, remainder="drop")
    drawn: Any = torch.utils.data.DataLoader(range(9), sampler=PlanSampler(plan), batch_size=3)
    model = InPairs()
    if hook:
        model.train_dataloader = lambda: {"a": [drawn]}  # type: ignore[method-assign]
    with pytest.raises(ip.IndexPlanError, match=r"^a training.s loader must have a state"):
        trainer(max_epochs=2, overfit_batches=2).fit(model, None if hook else drawn)
    assert [] == model.trained


def test_a_hook_is_asked_once_where_no_plan_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """To overfit without a plan: the callback, which every Trainer has, is not in the way."""
    monkeypatch.setattr(PlanSampler, "made", False)
    model, asked = Model(), []

    def train_dataloader() -> Any:
        asked.append(1)
        return torch.utils.data.DataLoader(range(9), batch_size=3)  # type: ignore[arg-type]

    model.train_dataloader = train_dataloader  # type: ignore[method-assign]
    trainer(max_epochs=2, overfit_batches=2).fit(model)
    assert (1, 4) == (len(asked), len(model.trained))


def test_workers_that_draw_before_lightning_names_the_pass_are_told_of(tmp_path: Path) -> None:
    """Also without the callback, and where they have drawn a whole pass: pass 0 is not pass 1."""
    few = ip.Plan(ip.Shuffle(9), batch_size=3)
    callback = pl.callbacks.ModelCheckpoint(tmp_path, filename="end", save_on_train_epoch_end=True)

    def fit(model: Any, epochs: int, workers: int, where: Any = None) -> None:
        sampler: Any = PlanBatchSampler(few)
        drawn: Any = torch.utils.data.DataLoader(
            range(9), batch_sampler=sampler, num_workers=workers
        )
        plain = trainer(max_epochs=epochs, callbacks=[callback], enable_checkpointing=True)
        plain.callbacks = [each for each in plain.callbacks if type(each) is not RefreshStepCounts]
        plain.fit(model, drawn, ckpt_path=where)

    first, again = Model(), Model()
    fit(first, 1, 2)
    assert of_plan(few, 0)[0] == first.trained
    with pytest.raises(ip.IndexPlanError, match=r"^a trainer.s first set_epoch must come before"):
        fit(again, 2, 2, tmp_path / "end.ckpt")
    assert [] == again.trained
    fit(again, 2, 0, tmp_path / "end.ckpt")
    assert of_plan(few, 1)[0] == again.trained


def test_each_fit_of_a_new_trainer_begins_with_its_first_epoch() -> None:
    """Its numbers start at 0 again, and so do those of a loader that was cycled."""
    few = ip.Plan(ip.Shuffle(6, seed=2), batch_size=3)
    both = CombinedLoader([loader_of(PLAN), loader_of(few)], "max_size_cycle")
    read = []
    for _ in range(2):
        model = InPairs()
        trainer(max_epochs=2).fit(model, both)
        read.append(model.trained)
    assert read[0] == read[1]


def test_a_second_fit_after_max_steps_is_told_of() -> None:
    """Lightning would go on with the next epoch."""
    model, loader, fit = Model(), loader_of(PLAN), trainer(max_steps=2)
    fit.fit(model, loader)
    fit.fit_loop.epoch_loop.max_steps = 6
    with pytest.raises(ip.IndexPlanError, match=f"^{re.escape(CUT)}$"):
        fit.fit(model, loader)


def test_a_resume_after_max_steps_loses_nothing(tmp_path: Path) -> None:
    """From a checkpoint of the end, Lightning would go on with the next epoch too."""
    saves = pl.callbacks.ModelCheckpoint(tmp_path, filename="inside", every_n_train_steps=2)
    options = {"callbacks": [RefreshStepCounts(), saves], "enable_checkpointing": True}
    fit = trainer(max_steps=2, **options)
    fit.fit(Model(), loader_of(PLAN))
    fit.save_checkpoint(tmp_path / "after.ckpt")
    message = (
        "a pass must be read whole before a later one begins; got a resume after 2 of 4 steps of "
        "epoch 0, sub-epoch 0, and then epoch 1, sub-epoch 0; under Lightning resume from a "
        "checkpoint that ModelCheckpoint(every_n_train_steps=...) saved in that epoch, or pass "
        "partial=True if passes are left on purpose"
    )
    with pytest.raises(ip.IndexPlanError, match=f"^{re.escape(message)}$"):
        trainer(max_steps=6).fit(Model(), loader_of(PLAN), ckpt_path=tmp_path / "after.ckpt")
    model = Model()
    trainer(max_steps=6).fit(model, loader_of(PLAN), ckpt_path=tmp_path / "inside.ckpt")
    assert of_plan(PLAN, 0)[0][2:] + of_plan(PLAN, 1)[0][:2] == model.trained


def test_a_resume_after_limited_epochs_goes_on(tmp_path: Path) -> None:
    """What `limit_train_batches` leaves of an epoch is left on purpose, at a resume too."""
    fit = trainer(max_epochs=1, limit_train_batches=2)
    fit.fit(Model(), loader_of(PLAN))
    fit.save_checkpoint(tmp_path / "end.ckpt")
    model = Model()
    again = trainer(max_epochs=2, limit_train_batches=2)
    again.fit(model, loader_of(PLAN), ckpt_path=tmp_path / "end.ckpt")
    assert of_plan(PLAN, 1)[0][:2] == model.trained
