"""Which passes Lightning reads: its looks, what it cuts, evaluations, and where it finds us."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
from lightning.pytorch.utilities import CombinedLoader

import indexplan as ip
from indexplan_torch import PlanBatchSampler, PlanLoader, PlanSampler
from indexplan_torch.lightning import RefreshStepCounts
from tests.trainers import lightning_runs
from tests.trainers.lightning_runs import QUIET, Recorder
from tests.trainers.lightning_runs import trainer as on_ranks
from tests.trainers.ranks import ROOT, run_ranks

IMPORTED_BY_RANKS = ("lightning.pytorch",)

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


class Model(Recorder):
    """A model that keeps what it is trained and validated with, and what was only looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.looks: list[Any] = []

    @property
    def trained(self) -> list[Any]:
        """The batches of all steps."""
        return [each for each in self.story if each != "validated"]

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.1)  # and asks for no steps, of a hook's

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        (self.looks if self.trainer.sanity_checking else self.validated).append(batch.tolist())


def trainer(**options: Any) -> Any:
    """A quiet Trainer of one process."""
    where = {"accelerator": "cpu", "devices": 1, "callbacks": [RefreshStepCounts()]}
    return pl.Trainer(**{**QUIET, **where, **options})


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
        trainer(max_epochs=2).fit(InPairs(), both)
    both = CombinedLoader([loader_of(PLAN), loader_of(few)], "max_size")
    fit = trainer(max_epochs=2)
    fit.fit(InPairs(), both)
    assert 8 == fit.global_step


class InPairs(Model):
    """A model that is trained with the batches of two loaders together, or with None of one."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.story.append([None if each is None else each.tolist() for each in batch])
        return self.layer(torch.ones(1, 1)).mean()


@pytest.mark.parametrize("kind", ["batches", "samples", "cycled", "overfit", "overfit in a hook"])
def test_a_sampler_in_another_loader_is_not_trained_on(kind: str) -> None:
    """Resumed after two epochs, one with workers read pass 0 where the plan has pass 2.

    Lightning starts a loader before it names the pass (its issue 21938), cycles one whose place
    nobody knows, and puts a sampler of its own in a DataLoader to overfit.
    """
    plan = ip.Plan(ip.Shuffle(9), batch_size=3, remainder="drop")
    form: Any = {"batch_sampler": PlanBatchSampler(plan)}
    if kind not in ("batches", "cycled"):
        form = {"sampler": PlanSampler(plan), "batch_size": 3}
    drawn: Any = torch.utils.data.DataLoader(range(9), **form)  # type: ignore[arg-type]
    if kind == "cycled":
        drawn = CombinedLoader([loader_of(PLAN), drawn], "max_size_cycle")
    model, options = InPairs(), {"overfit_batches": 2} if "overfit" in kind else {}
    if "hook" in kind:
        model.train_dataloader = lambda: {"a": [drawn]}  # type: ignore[method-assign]
    with pytest.raises(ip.IndexPlanError, match=r"^a training.s loader must have a state"):
        trainer(max_epochs=2, **options).fit(model, None if "hook" in kind else drawn)
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


# --- loaders of two lengths, on one rank and two, resumed after every step

SIZES = (23, 11)  # 3 and 2 steps of two ranks, 5 and 3 of one


def trained(folder: str, mode: str) -> dict[str, Any]:
    """Train for three epochs, and resume after each step; validate in sequence."""
    lightning_runs.prepare()

    class InSequence(InPairs):
        """A model that validates one loader after another."""

        def validation_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
            super().validation_step(batch, batch_idx)

    def both(mode: str, **options: Any) -> Any:
        plans = [ip.Plan(ip.Shuffle(size, seed=size), batch_size=5) for size in SIZES]
        loaders = [PlanLoader(range(plan.order.num_samples), plan, **options) for plan in plans]
        return CombinedLoader(loaders, mode)

    if mode == "sequential":  # which Lightning takes for evaluations alone
        model = InSequence()
        on_ranks().validate(model, both(mode, evaluation=True), verbose=False)
        return {"validated": model.validated}
    partial = {"partial": mode == "min_size"}  # which cuts the longer
    saves = pl.callbacks.ModelCheckpoint(
        folder, filename="{step}", every_n_train_steps=1, save_top_k=-1
    )
    model = InPairs()
    callbacks = [RefreshStepCounts(), saves]
    on_ranks(max_epochs=3, callbacks=callbacks, enable_checkpointing=True).fit(
        model, both(mode, **partial)
    )
    read = {"0": model.trained}
    for step in range(1, len(model.trained)):
        again = InPairs()
        where = f"{folder}/step={step}.ckpt"
        on_ranks(max_epochs=3).fit(again, both(mode, **partial), ckpt_path=where)
        read[str(step)] = again.trained
    return read


@pytest.mark.parametrize("num_ranks", [1, 2])
@pytest.mark.parametrize("mode", ["min_size", "max_size", "max_size_cycle", "sequential"])
def test_ranks_read_and_resume(mode: str, num_ranks: int, tmp_path: Path) -> None:
    """A resumed run reads what the uninterrupted one does, and each sample as often as others."""
    ranks = run_ranks(f"{__name__}:trained", num_ranks, str(tmp_path), mode)
    if mode == "sequential":
        read = sorted(sum([sum(rank["validated"], []) for rank in ranks], []))
        assert sorted([*range(SIZES[0]), *range(SIZES[1])]) == read
        return
    longer, shorter = (-(-size // (5 * num_ranks)) for size in SIZES)
    steps = 3 * (shorter if mode == "min_size" else longer)
    for rank in ranks:
        whole = rank.pop("0")
        assert steps == len(whole)
        assert {str(step) for step in range(1, steps)} == set(rank)
        for step, rest in rank.items():
            assert whole[int(step) :] == rest, step
        rank["0"] = whole
    for which, size in enumerate(SIZES):
        if (mode, which) != ("min_size", 0):
            batches = [pair[which] for rank in ranks for pair in rank["0"] if pair[which]]
            counts = Counter(sum(batches, []))
            assert {*range(size)} == set(counts)
            assert max(counts.values()) - min(counts.values()) <= 1


# --- the callback, which Trainers find in an installed package

CHILD = """
import json, sys, warnings
sys.path[:] = json.loads(sys.argv[1])
import lightning.pytorch
import torch
import indexplan as ip
from indexplan_torch import PlanLoader

def warned():
    loader = PlanLoader(torch.arange(8), ip.Plan(ip.Sequential(8), batch_size=4))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            assert len(list(loader)) == 2
    return [str(each.message) for each in caught]

said = [warned()]
sys.path.append(sys.argv[2])
said.append(warned())
sys.path.pop()
import indexplan_torch.lightning
print(json.dumps([*said, warned()]))
"""


def test_a_package_that_is_only_on_the_path(tmp_path: Path) -> None:
    """The first pass warns, once; not with the entry points, nor where the callback is passed."""
    site = tmp_path / "site"  # all that can be imported here, but nothing that is known of ours
    site.mkdir()
    for folder in map(Path, sys.path):
        for each in folder.iterdir() if folder.name == "site-packages" else []:
            ours = each.name.startswith(("indexplan", "_indexplan", "__editable__"))
            if not ours and not (site / each.name).exists():
                (site / each.name).symlink_to(each)
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    known = tmp_path / "known" / "indexplan-1.dist-info"
    known.mkdir(parents=True)
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: indexplan\nVersion: 1\n")
    lines = [f"[{group}]\n{name} = {at}" for group in points for name, at in points[group].items()]
    (known / "entry_points.txt").write_text("\n".join(lines))
    library = [each for each in sys.path if each and Path(each).name != "site-packages"]
    paths = [str(ROOT), str(ROOT / "adapters"), str(site), *library]
    command = [sys.executable, "-S", "-c", CHILD, json.dumps(paths), str(known.parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    only, found, passed = json.loads(done.stdout.splitlines()[-1])
    assert (found, passed) == ([], [])
    (message,) = only
    assert message.startswith("indexplan must be installed where Lightning's Trainer reads a plan")
    assert "Trainer(callbacks=[indexplan_torch.lightning.RefreshStepCounts()])" in message
