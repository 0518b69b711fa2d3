"""Every trainer whose loader keeps a ledger: resumed, moved to another plan, and then asked.

Plain loops do the same in tests/adapters/test_recording.py and test_move.py.
"""

from __future__ import annotations

import warnings
from itertools import islice
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
from accelerate import Accelerator
from hypothesis import given, settings
from hypothesis import strategies as st
from lightning.fabric import Fabric
from transformers import Trainer, TrainerCallback, TrainingArguments

import indexplan as ip
from indexplan_torch import PlanLoader
from indexplan_torch.accelerate import prepare
from indexplan_torch.transformers import KeepState
from tests.adapters.small import check_steps, loader_of, of_plan
from tests.runs.row import Numbered

SAVED, EPOCHS = 15, 3  # after so many steps, of 11 an epoch, the run saves and may move


def row(index: int) -> dict[str, Any]:
    """Return a sample: its number."""
    return {"x": torch.tensor([float(index)])}


ROWS: Any = Numbered(53, row)


def samples(batch: dict[str, Any]) -> list[int]:
    """Return the numbers of a batch."""
    return [int(each) for each in batch["x"][:, 0]]


class Model(torch.nn.Module):
    """A model that stops the process, as a kill would, before a step."""

    def __init__(self, stop: int | None) -> None:
        super().__init__()
        self.layer, self.stop, self.read = torch.nn.Linear(1, 1), stop, list[list[int]]()

    def forward(self, x: Any) -> Any:
        if len(self.read) == self.stop:
            raise KeyboardInterrupt
        self.read.append(samples({"x": x}))
        return {"loss": self.layer(x).mean()}


class Module(pl.LightningModule):
    """The model in Lightning, where the run moves after a step."""

    def __init__(self, model: Model, move: Any) -> None:
        super().__init__()
        self.model, self.move = model, move

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.0)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return self.model(**batch)

    def on_train_batch_end(self, *_: Any) -> None:
        if self.trainer.global_step == SAVED:
            self.move()


def by_lightning(
    loader: PlanLoader, folder: Path, resumed: bool, stop: int | None, move: Any
) -> list[list[int]]:
    """Train; checkpoints are written every 15 steps."""
    model = Model(stop)
    keep = pl.callbacks.ModelCheckpoint(
        folder, "kept-{step}", every_n_train_steps=SAVED, save_top_k=-1
    )
    quiet: Any = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = pl.Trainer(max_epochs=EPOCHS, accelerator="cpu", callbacks=[keep], **quiet)
    module = Module(model, lambda: move(loader))
    try:
        trainer.fit(module, loader, ckpt_path=folder / "kept-step=15.ckpt" if resumed else None)
    except (KeyboardInterrupt, SystemExit):
        assert stop
    return model.read


def by_hf_trainer(
    loader: PlanLoader, folder: Path, resumed: bool, stop: int | None, move: Any
) -> list[list[int]]:
    """Train; checkpoints are written every 15 steps."""

    class Own(Trainer):
        def get_train_dataloader(self) -> Any:
            return loader

    class Moves(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step == SAVED:
                move(loader)

    model = Model(stop)
    options: Any = {"save_steps": SAVED, "num_train_epochs": EPOCHS, "report_to": []}
    arguments = TrainingArguments(str(folder / "hf"), use_cpu=True, disable_tqdm=True, **options)
    trainer = Own(model, arguments, train_dataset=ROWS)
    trainer.add_callback(KeepState(trainer))
    trainer.add_callback(Moves())
    try:
        trainer.train(
            resume_from_checkpoint=str(folder / "hf" / "checkpoint-15") if resumed else None
        )
    except KeyboardInterrupt:
        assert stop
    return model.read


def by_accelerate(
    loader: PlanLoader, folder: Path, resumed: bool, stop: int | None, move: Any
) -> list[list[int]]:
    """Train on a prepared loader, which has fetched the next batch; the loop saves."""
    accelerator = Accelerator(cpu=True)
    others = [*accelerator.gradient_state.dataloader_references]
    prepared = prepare(accelerator, loader)
    if resumed:
        accelerator.load_state(folder / "accelerate")

    def save() -> None:
        accelerator.save_state(folder / "accelerate")

    read = by_hand(prepared, save, resumed, stop, lambda: move(prepared))
    if stop is None:  # each loop has left it
        assert others == accelerator.gradient_state.dataloader_references
    return read


def by_fabric(
    loader: PlanLoader, folder: Path, resumed: bool, stop: int | None, move: Any
) -> list[list[int]]:
    """Train; the loop saves."""
    fabric = Fabric(accelerator="cpu", devices=1)
    batches = fabric.setup_dataloaders(loader)
    if resumed:
        loader.load_state_dict(fabric.load(folder / "fabric.ckpt")["loader"])

    def save() -> None:
        fabric.save(folder / "fabric.ckpt", {"loader": loader.state_dict()})

    return by_hand(batches, save, resumed, stop, lambda: move(loader))


def by_hand(batches: Any, save: Any, resumed: bool, stop: int | None, move: Any) -> list[list[int]]:
    """Read the rest of three epochs, or up to a step."""
    read: list[list[int]] = []
    passes = EPOCHS - 1 if resumed else EPOCHS  # the checkpoint lies in the second
    for batch in islice((batch for _ in range(passes) for batch in batches), stop):
        read.append(samples(batch))
        if not resumed and len(read) == SAVED:
            save()
            move()
    return read


TRAINERS = {each.__name__: each for each in (by_lightning, by_hf_trainer, by_accelerate, by_fabric)}


def train(
    by: str,
    loader: PlanLoader,
    folder: Path,
    *,
    resumed: bool = False,
    stop: int | None = None,
    move: Any = lambda _: None,
) -> list[list[int]]:
    """Train for three epochs, or up to a step; return the batches that the loop or model got."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TRAINERS[by](loader, folder, resumed, stop, move)


# --- what each of them keeps


STEPS = 11  # an epoch
ORDER = ip.Mixture(
    {"a": ip.Shuffle(30, seed=1), "b": ip.Shuffle(23, seed=2)}, weights={"a": 30, "b": 23}
)
PLAN = ip.Plan(ORDER, world_size=1, batch_size=5)
HERE = PLAN.cursor(1, step=SAVED - STEPS)  # the place of the checkpoint, or of the move
GONE = [3, 17, 44]
WITHOUT = PLAN.replace(order=ip.Without(ORDER, GONE, since=HERE))
WEIGHTED = PLAN.replace(order=ORDER.with_phase(HERE, {"a": 1, "b": 4}))
BY = pytest.mark.parametrize("by", TRAINERS)


def loader(
    folder: Path, plan: ip.Plan = PLAN, ledger: Any = "run.ledger", **options: Any
) -> PlanLoader:
    """Make the loader of a process; None and False are passed as they are."""
    ledger = ledger and folder / ledger
    return PlanLoader(ROWS, plan.replace(world_size=None), ledger=ledger, **options)


@BY
@pytest.mark.parametrize("plan", [PLAN, WITHOUT], ids=["the same", "without samples"])
def test_a_resumed_training_can_be_asked(by: str, plan: ip.Plan, tmp_path: Path) -> None:
    """Each step that counts is in the ledger, what is left out is not, and all else is read."""
    first = train(by, loader(tmp_path), tmp_path, stop=SAVED + 3)
    rest = train(by, loader(tmp_path, plan), tmp_path, resumed=True)
    account = check_steps(tmp_path / "run.ledger", first[:SAVED] + rest).account()
    assert EPOCHS * 53 == account.num_read + account.num_excluded
    assert (account.num_dropped, account.num_left) == (0, 0)
    assert account.num_void_steps in (3, 4)  # a batch that the loop held when it stopped counts
    if plan is WITHOUT:
        assert not {sample for batch in rest for sample in batch} & set(GONE)


@BY
def test_a_checkpoint_of_a_run_with_a_ledger_needs_it(by: str, tmp_path: Path) -> None:
    """The trainer passes the error on, reads nothing, and goes on where the ledger is left."""
    train(by, loader(tmp_path), tmp_path, stop=SAVED + 3)
    before = (tmp_path / "run.ledger").read_bytes()
    with pytest.raises(ip.IndexPlanError, match="as the state is that of a run which keeps one"):
        train(by, loader(tmp_path, ledger=None), tmp_path, resumed=True, stop=0)
    rest = train(by, loader(tmp_path, ledger=False), tmp_path, resumed=True)
    whole = [PLAN.batch(1, step=step, rank=0).tolist() for step in range(4, STEPS)]
    assert whole == rest[: len(whole)]
    assert before == (tmp_path / "run.ledger").read_bytes()


@BY
@pytest.mark.parametrize("num_workers", [0, 2])
def test_weights_change_at_a_step(by: str, num_workers: int, tmp_path: Path) -> None:
    """The steps after it are those of the other plan, resumed there; the ledger has both."""
    made, open_ = loader(tmp_path, num_workers=num_workers), WEIGHTED.replace(world_size=None)
    read = train(by, made, tmp_path, move=lambda its: its.move(open_))
    plans = [PLAN, WEIGHTED.resume(HERE)]
    assert read == [
        plans[step >= SAVED].batch(step // STEPS, step=step % STEPS, rank=0).tolist()
        for step in range(STEPS * EPOCHS)
    ]
    ledger = check_steps(tmp_path / "run.ledger", read)
    assert 2 == len({ledger.at(step).plan.fingerprint for step in (0, SAVED)})


@BY
@pytest.mark.parametrize("num_steps", [1, 3, 7])  # inside the pass, and to its end
def test_a_trainer_jumps(by: str, num_steps: int, tmp_path: Path) -> None:
    """The steps between are skipped, in the ledger too, and the next pass is read whole."""
    made = loader(tmp_path)
    to = PLAN.replace(world_size=None).resume(PLAN.cursor(1, step=HERE.step + num_steps))
    read = train(by, made, tmp_path, move=lambda its: its.move(to))
    every = [batch.tolist() for epoch in range(EPOCHS) for batch in PLAN.batches(epoch, rank=0)]
    assert every[:SAVED] + every[SAVED + num_steps :] == read
    check_steps(tmp_path / "run.ledger", read)


@pytest.mark.parametrize("prepared", [False, True])
@settings(max_examples=12, deadline=None)
@given(saved=st.integers(1, 14), more=st.integers(0, 7), ahead=st.booleans())
def test_a_state_that_is_loaded_in_a_loop_is_read_next(
    saved: int, more: int, ahead: bool, prepared: bool
) -> None:
    """Not the rest of the loop's pass, which the state does not name; nor what was fetched."""
    plan = ip.Plan(ip.Shuffle(103, seed=3), batch_size=5, sub_epochs=3)
    loader: Any = loader_of(plan, rank=0, world_size=1, num_workers=2 * ahead)
    loader = prepare(Accelerator(cpu=True), loader) if prepared else loader
    whole = plan.replace(world_size=1)
    every = [batch for number in range(6) for batch in of_plan(whole, number, rank=0)]
    got, state = [], None
    while loader.cursor.epoch < 2:
        for batch in loader:
            got.append(batch)
            if len(got) == saved:
                state = loader.state_dict()
            if len(got) == saved + more:
                loader.load_state_dict(state)
    assert every[: saved + more] + every[saved:] == got


@pytest.mark.parametrize("saved", [0, 3, STEPS])
def test_fabric_counts_on_from_a_state_that_is_loaded_between_passes(saved: int) -> None:
    """Its own numbers go on from the passes that were read before; the run's, from the state."""
    loader = loader_of(PLAN, rank=0, world_size=1)
    batches = Fabric(accelerator="cpu", devices=1).setup_dataloaders(loader)
    first = iter(batches)
    list(islice(first, saved))
    state = loader.state_dict()
    for each in (first, batches, batches):
        list(each)
    loader.load_state_dict(state)
    every = [batch for number in range(3) for batch in of_plan(PLAN, number, rank=0)]
    read = [batch for _ in range(3) for batch in batches]
    assert every[saved:] == read[: len(every) - saved]
