"""Weights that follow the loss of each source, by the page's code: resumed, and in the ledger."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
import torch.distributed as dist
import transformers
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.nn.parallel import DistributedDataParallel

import indexplan as ip
from indexplan_torch import PlanLoader
from indexplan_torch.transformers import use_plan
from tests.histories.listing import Listed
from tests.runs.row import Numbered
from tests.test_docs import blocks
from tests.trainers import lightning_runs
from tests.trainers.ranks import ON_CPU, run_ranks

SIZES = {"web": 70, "code": 30, "books": 11}
INPUTS = torch.randn(sum(SIZES.values()), 4, generator=torch.Generator().manual_seed(0))
ROWS: Any = Numbered(len(INPUTS), lambda index: {"x": INPUTS[index], "labels": index})
FIRST = [(0, {"web": 60, "code": 25, "books": 15})]
EVERY, EPOCHS = 5, 3
SAVED = (10, 13)  # steps: where the weights change, and between two such places


def page() -> dict[str, Any]:
    """What the section defines, over small sources."""
    names: dict[str, Any] = {"ip": ip, "PlanLoader": PlanLoader}
    for code in blocks("docs/mixtures.md"):
        if "by_source" in code and "train(" not in code:  # all but its loop, which test_pages runs
            exec(code, names)  # noqa: S102 (our own page)
    names["parts"] = {name: ip.Shuffle(size, seed=size) for name, size in SIZES.items()}
    torch.manual_seed(0)
    return names


def model_of(names: dict[str, Any]) -> Any:
    """The page's model, which keeps the samples that it is trained on."""

    class Model(names["Model"]):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.read: list[list[int]] = []

        def forward(self, x: Any, labels: Any) -> Any:
            self.read.append(labels.tolist())
            return super().forward(x, labels)

    return Model()


def by_a_loop(names: dict[str, Any], folder: Path, saved: int | None) -> tuple[Any, PlanLoader]:
    """Train in a plain loop under DDP; return the model and its loader."""
    dist.init_process_group("gloo")
    state = torch.load(folder / f"{saved}.pt") if saved else {}
    phases = state["loader"]["cursor"]["order"]["phases"] if saved else FIRST
    loader = PlanLoader(ROWS, names["plan_with"](phases), ledger=folder / "run.ledger")
    model = model_of(names)
    if saved:
        loader.load_state_dict(state["loader"])
        model.load_state_dict(state["model"])
    trained = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    done = saved or 0
    for epoch in range(loader.cursor.epoch, EPOCHS):
        loader.set_epoch(epoch)
        for batch in loader:
            losses = trained(**batch)
            optimizer.zero_grad()
            losses.mean().backward()
            optimizer.step()
            names["note"](loader, losses, model.by_source)
            done += 1
            if done % EVERY == 0:
                names["follow"](loader, model.by_source)
            if done in SAVED and saved is None:
                state = {"model": model.state_dict(), "loader": loader.state_dict()}
                if dist.get_rank() == 0:
                    torch.save(state, folder / f"{done}.pt")
    return model, loader


def by_lightning(names: dict[str, Any], folder: Path, saved: int | None) -> tuple[Any, PlanLoader]:
    """Train under Lightning."""

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = model_of(names)

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.01)

        def training_step(self, batch: Any) -> Any:
            losses = self.model(**batch)
            return {"loss": losses.mean(), "losses": losses.detach()}

    lightning_runs.prepare()
    module = Module()
    loader = PlanLoader(ROWS, names["plan_with"](FIRST), ledger=folder / "run.ledger")
    follow = names["FollowInLightning"](loader, module.model.by_source, EVERY)
    keep = ModelCheckpoint(folder, "{step}", every_n_train_steps=1, save_top_k=-1)
    callbacks = [follow] if saved else [follow, keep]
    options: Any = {"max_epochs": EPOCHS, "callbacks": callbacks}
    trainer = lightning_runs.trainer(**{**options, "enable_checkpointing": saved is None})
    trainer.fit(module, loader, ckpt_path=folder / f"step={saved}.ckpt" if saved else None)
    return module.model, loader


def by_hf_trainer(names: dict[str, Any], folder: Path, saved: int | None) -> tuple[Any, PlanLoader]:
    """Train under a HF Trainer."""
    saving: Any = {"save_strategy": "no" if saved else "steps", "save_steps": 1}
    options: Any = {"num_train_epochs": EPOCHS, "report_to": [], "learning_rate": 0.01, **saving}
    arguments = transformers.TrainingArguments(str(folder), disable_tqdm=True, **options)
    model, checkpoint = model_of(names), folder / f"checkpoint-{saved}"
    trainer = names["FollowingTrainer"](model, arguments, train_dataset=ROWS)
    trainer.add_callback(names["FollowInTrainer"](EVERY))
    plan = names["plan_with"](names["phases_of"](checkpoint) if saved else FIRST)
    use_plan(trainer, plan, ledger=folder / "run.ledger")
    trainer.train(resume_from_checkpoint=str(checkpoint) if saved else None)
    return model, trainer.callback_handler.train_dataloader


def run(by: str, folder: str, saved: int | None) -> dict[str, Any]:
    """Train on this rank, from a checkpoint or from the start; return what it read, and weights."""
    warnings.simplefilter("ignore")
    model, loader = globals()[by](page(), Path(folder), saved)
    told = {"read": model.read, "weights": loader.plan.order.weights}
    # the state writes the ledger to its end
    return {**told, "losses": model.by_source.tolist(), "state": loader.state_dict()}


def unreduced(folder: str) -> str:
    """Train with a `note` that knows of no other rank; return the error."""
    names = page()
    names["dist"] = type("Alone", (), {"is_initialized": staticmethod(lambda: False)})
    try:
        by_a_loop(names, Path(folder), None)
    except ip.IndexPlanError as error:
        return str(error)
    return ""


# --- what ranks tell


RUN = f"{__name__}:run"
STEPS = EPOCHS * 7  # each of 16 samples or fewer, of 111


@pytest.mark.parametrize("by", ["by_a_loop", "by_lightning", "by_hf_trainer"])
def test_weights_follow_the_loss(by: str, tmp_path: Path) -> None:
    """Ranks come to the same weights, and new processes go on as if there had been no stop."""
    whole = run_ranks(RUN, 2, by, str(tmp_path), None, **ON_CPU)
    assert whole[0]["weights"] == whole[1]["weights"]
    assert whole[0].pop("state") == whole[1].pop("state")
    shares = [shares for _, shares in whole[0]["weights"]]
    assert 1 + STEPS // EVERY == len(shares) == len(set(map(tuple, shares)))
    check_ledger(tmp_path / "run.ledger", [each["read"] for each in whole])
    for saved in SAVED:
        again = run_ranks(RUN, 2, by, str(tmp_path), saved, **ON_CPU)
        assert again[0].pop("state") == again[1].pop("state")
        for rest, each in zip(again, whole, strict=True):
            assert each == {**rest, "read": each["read"][:saved] + rest["read"]}
        check_ledger(tmp_path / "run.ledger", [each["read"] for each in whole])


def check_ledger(path: Path, read: list[list[list[int]]]) -> None:
    """Check that a ledger says of each step, rank and sample what was read."""
    listed = Listed(steps=[list(step) for step in zip(*read, strict=True)])
    assert STEPS == len(listed.steps)
    listed.check(ip.Ledger(path))


def test_ranks_that_want_other_weights_are_refused(tmp_path: Path) -> None:
    """Without the sum over ranks, both name the difference at the next step."""
    told = run_ranks(f"{__name__}:unreduced", 2, str(tmp_path))
    for each in told:
        assert "ranks must read the same plan; got " in each
