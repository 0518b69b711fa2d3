"""Trainers in whose runs the plan changes at a step: what they read, and what the ledger has."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch.distributed as dist
from accelerate import Accelerator
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import Trainer, TrainerCallback, TrainingArguments

import indexplan as ip
from indexplan_torch import PlanLoader
from indexplan_torch.accelerate import prepare
from indexplan_torch.transformers import KeepState
from tests.adapters.small import loader_of, of_plan
from tests.trainers.ranks import run_ranks
from tests.trainers.test_ledger_in_trainers import Model, Module, Rows, samples

ORDER = ip.Mixture(
    {"a": ip.Shuffle(30, seed=1), "b": ip.Shuffle(23, seed=2)}, weights={"a": 30, "b": 23}
)
PLAN = ip.Plan(ORDER, batch_size=5)  # 11 steps an epoch
AT, EPOCHS = 15, 3


def weighted(cursor: ip.Cursor) -> ip.Plan:
    """The plan with other weights from a cursor on, and as many steps."""
    return PLAN.replace(order=ORDER.with_phase(cursor, {"a": 1, "b": 4}))


def by_lightning(loader: PlanLoader, folder: Path, other: Any) -> list[list[int]]:
    """Move in a callback."""

    class Moves(pl.Callback):
        def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
            if trainer.global_step == AT:
                loader.move(other(loader.cursor))

    module = Module(None)
    quiet: Any = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    options: Any = {"max_epochs": EPOCHS, "accelerator": "cpu", "enable_checkpointing": False}
    trainer = pl.Trainer(default_root_dir=folder, callbacks=[Moves()], **options, **quiet)
    trainer.fit(module, loader)
    return module.read


def by_hf_trainer(loader: PlanLoader, folder: Path, other: Any) -> list[list[int]]:
    """Move in a callback."""

    class Own(Trainer):
        def get_train_dataloader(self) -> Any:
            return loader

    class Moves(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step == AT:
                loader.move(other(loader.cursor))

    model = Model(None)
    options: Any = {"num_train_epochs": EPOCHS, "report_to": [], "save_strategy": "no"}
    arguments = TrainingArguments(str(folder), use_cpu=True, disable_tqdm=True, **options)
    trainer = Own(model, arguments, train_dataset=Rows())
    trainer.add_callback(KeepState(trainer))
    trainer.add_callback(Moves())
    trainer.train()
    return model.read


def by_accelerate(loader: PlanLoader, folder: Path, other: Any) -> list[list[int]]:
    """Move the prepared loader, which has fetched the next batch."""
    del folder
    accelerator, read = Accelerator(cpu=True), []
    others = [*accelerator.gradient_state.dataloader_references]
    prepared = prepare(accelerator, loader)
    for _ in range(EPOCHS):
        for batch in prepared:
            read.append(samples(batch))
            if len(read) == AT:
                prepared.move(other(prepared.base_dataloader.cursor))
    assert others == accelerator.gradient_state.dataloader_references  # each loop has left it
    return read


def by_a_loop(loader: PlanLoader, folder: Path, other: Any) -> list[list[int]]:
    """Move in a plain loop."""
    del folder
    read = []
    for batch in (batch for _ in range(EPOCHS) for batch in loader):
        read.append(samples(batch))
        if len(read) == AT:
            loader.move(other(loader.cursor))
    return read


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("train", [by_lightning, by_hf_trainer, by_accelerate, by_a_loop])
def test_weights_change_at_a_step(train: Any, num_workers: int, tmp_path: Path) -> None:
    """The steps after it are those of the other plan, resumed there; the ledger has both."""
    path = tmp_path / "run.ledger"
    loader = PlanLoader(Rows(), PLAN, ledger=path, num_workers=num_workers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = train(loader, tmp_path, weighted)
    one = PLAN.replace(world_size=1)
    cursor = one.cursor(1, step=AT - 11)
    plans = [one, weighted(cursor).replace(world_size=1).resume(cursor)]
    wanted = [
        plans[step >= AT].batch(step // 11, step=step % 11, rank=0).tolist()
        for step in range(11 * EPOCHS)
    ]
    assert wanted == read
    ledger = ip.Ledger(path)
    assert ledger.verify().ok
    assert read == [ledger.batch(step, 0).tolist() for step in range(ledger.step)]
    assert 2 == len({ledger.at(step).plan.fingerprint for step in (0, AT)})


@pytest.mark.parametrize("num_steps", [1, 3, 7])  # inside the pass, and to its end
@pytest.mark.parametrize("train", [by_lightning, by_hf_trainer, by_accelerate, by_a_loop])
def test_a_trainer_jumps(train: Any, num_steps: int, tmp_path: Path) -> None:
    """The steps between are skipped, in the ledger too, and the next pass is read whole."""
    path, one = tmp_path / "run.ledger", PLAN.replace(world_size=1)

    def later(cursor: ip.Cursor) -> ip.Plan:
        return PLAN.resume(one.cursor(1, step=cursor.step + num_steps))

    loader = PlanLoader(Rows(), PLAN, ledger=path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = train(loader, tmp_path, later)
    every = [batch.tolist() for epoch in range(EPOCHS) for batch in one.batches(epoch, rank=0)]
    assert every[:AT] + every[AT + num_steps :] == read
    ledger = ip.Ledger(path)
    assert ledger.verify().ok
    assert read == [ledger.batch(step, 0).tolist() for step in range(ledger.step)]


TWO = ip.Plan(ip.Shuffle(53, seed=3), world_size=2, batch_size=5)
SMALLER = TWO.replace(batch_size=3).resume(TWO.cursor(0, step=4))


def on_two_ranks(folder: str) -> list[Any]:
    """Move on both ranks, to the same plan, and then to plans that differ."""
    dist.init_process_group("gloo")
    loader = PlanLoader(Rows(), TWO, ledger=f"{folder}/run.ledger")
    read: list[Any] = []
    try:
        for number, batch in enumerate(loader, 1):
            read.append(samples(batch))
            if number == 4:
                loader.move(SMALLER)
                read.append(loader.state_dict()["ledger"])
            if number == 5:
                loader.move(TWO.replace(batch_size=2 + dist.get_rank()))
    except ip.IndexPlanError as error:
        read.append(str(error))
    dist.destroy_process_group()
    return read


def test_all_ranks_move_or_none(tmp_path: Path) -> None:
    """Ranks read on with the same plan, and refuse plans that differ before they read them."""
    told = run_ranks("tests.trainers.test_move:on_two_ranks", 2, str(tmp_path))
    for rank, (*batches, line, last, error) in enumerate(told):
        assert [TWO.batch(0, step=step, rank=rank).tolist() for step in range(4)] == batches
        assert SMALLER.batch(0, step=4, rank=rank).tolist() == last
        assert told[0][4] == line
        assert "ranks must read the same plan; got batch_size " in error  # 2 or 3 first


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
