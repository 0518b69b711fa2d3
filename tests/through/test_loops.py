"""Loops of Keras, pytorch-ignite and mmengine that read a plan, stopped and resumed.

Keras on torch reads a plan as it is; where another backend draws ahead, it is refused. Ignite's
checkpoint holds the loader's state, and the plan ends epochs. One loop of mmengine skips what a run
has trained on by drawing it, the other takes a state.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import warnings
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import indexplan as ip
from indexplan_torch import PlanLoader
from indexplan_torch.versions import TESTED
from tests.test_docs import blocks

os.environ["KERAS_BACKEND"] = "torch"
import keras

with warnings.catch_warnings():  # torch's own, of what these import
    warnings.simplefilter("ignore", DeprecationWarning)
    import mmengine
    from ignite.engine import Engine, Events
    from ignite.handlers import Checkpoint, DiskSaver
    from mmengine.hooks import Hook
    from mmengine.model import BaseModel
    from mmengine.runner import Runner

pytestmark = pytest.mark.filterwarnings("ignore")  # of torch's arrays and checkpoints

PLAN = ip.Plan(ip.Shuffle(43, seed=3), batch_size=4)
STEPS = 11  # of an epoch on one rank
LONG = ip.Plan(ip.Shuffle(1003, seed=4), batch_size=8)  # for Keras's block of the page


class Rows(torch.utils.data.Dataset[Any]):
    """Numbers, each with a label, or under a name; it notes what is read."""

    def __init__(self, num: int = 43, name: str = "") -> None:
        self.num, self.name, self.read = num, name, list[int]()

    def __len__(self) -> int:
        return self.num

    def __getitem__(self, index: int) -> Any:
        self.read.append(index)
        row = torch.tensor([float(index)])
        return {self.name: row} if self.name else (row, torch.tensor([1.0]))


def batches(plan: ip.Plan, rank: int = 0) -> list[list[int]]:
    """Return what a rank reads in what is left of three epochs; on one rank, if it is open."""
    fixed = plan if plan.world_size else plan.replace(world_size=1)
    steps = [(epoch, step) for epoch in range(plan.start.epoch, 3) for step in fixed.steps(epoch)]
    return [fixed.batch(epoch, step=step, rank=rank).tolist() for epoch, step in steps]


def block_with(text: str) -> str:
    """Return the page's block that has some text."""
    (block,) = (each for each in blocks("docs/trainers.md") if text in each)
    return block


# --- Keras


class Noting(keras.Model):  # type: ignore[misc,unused-ignore]
    """A model that keeps what it was trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.read = keras.layers.Dense(1), list[list[int]]()
        self.compile("sgd", "mse")

    def call(self, inputs: Any) -> Any:
        return self.layer(inputs)

    def train_step(self, data: Any) -> Any:
        self.read.append([int(each) for each in data[0][:, 0]])
        return super().train_step(data)


class Save(keras.callbacks.Callback):  # type: ignore[misc,unused-ignore]
    """Keeps the loader's state after a number of steps, and stops there."""

    def __init__(self, loader: PlanLoader, steps: int) -> None:
        super().__init__()
        self.loader, self.left, self.state = loader, steps, dict[str, Any]()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        del batch, logs
        self.left -= 1
        if not self.left:
            self.state, self.model.stop_training = self.loader.state_dict(), True


@pytest.mark.parametrize(("stop", "workers"), [(4, 0), (11, 0), (15, 2), (33, 0)])
def test_keras_reads_the_plan_and_resumes_in_it(stop: int, workers: int) -> None:
    """It looks at a batch before the first epoch; all are read once, the last one smaller."""
    loader, model = PlanLoader(Rows(), PLAN, num_workers=workers), Noting()
    save = Save(loader, stop)
    model.fit(loader, epochs=3, callbacks=[save], verbose=0)
    assert batches(PLAN)[:stop] == model.read
    loader, resumed = PlanLoader(Rows(), PLAN, num_workers=workers), Noting()
    loader.load_state_dict(save.state)
    resumed.fit(loader, epochs=3, initial_epoch=loader.cursor.epoch, verbose=0)
    assert batches(PLAN) == model.read + resumed.read


def test_the_page_saves_a_keras_model_and_its_loader_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its block, in two halves: the second continues where the last pair was saved."""
    train, resume = block_with("class Save(keras").split("\nsaved = ")
    monkeypatch.chdir(tmp_path)
    dataset, model = Rows(1003), keras.Sequential([keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(1e-9), "mse")
    names = globals() | {"dataset": dataset, "plan": LONG, "model": model}
    exec(train, names)  # noqa: S102
    dataset.read.clear()
    exec("saved = " + resume, names)  # noqa: S102
    left = LONG.replace(world_size=1)
    left = left.resume(left.cursor(2, step=100))
    assert sum(batches(left), []) == list(dict.fromkeys(dataset.read))  # it looks at a batch first
    assert ["run-0-100.keras", "run-1-100.keras", "run-2-100.keras"] == sorted(
        each.name for each in tmp_path.glob("*.keras")
    )


OTHER_BACKEND = """
import keras, torch
import indexplan as ip
from indexplan_torch import PlanLoader

dataset = torch.utils.data.TensorDataset(torch.arange(43.0)[:, None], torch.ones(43, 1))
loader = PlanLoader(dataset, ip.Plan(ip.Shuffle(43, seed=3), batch_size=4))
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
assert "jax" == keras.config.backend()
for method in (model.fit, model.evaluate, model.predict):
    try:
        method(loader, verbose=0)
    except ip.IndexPlanError as error:
        print(error)
print(sum(len(rows) for rows, _ in loader))
"""


def test_other_backends_are_refused() -> None:
    """Those may draw ahead of the training. A plain loop reads in the same process."""
    environment = {**os.environ, "KERAS_BACKEND": "jax"}
    command = [sys.executable, "-c", OTHER_BACKEND]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    *refused, read = done.stdout.splitlines()
    assert ("43", 3) == (read, len(refused))
    for each in refused:
        assert "got jax, which may draw ahead" in each
        assert "KERAS_BACKEND=torch" in each


def test_a_loader_is_no_array() -> None:
    """It looks as one that lacks `__array__`, to NumPy and to Keras on torch."""
    loader = PlanLoader(Rows(), PLAN)
    assert not hasattr(loader, "__array__")
    assert loader is np.asarray(loader).item()
    assert TESTED["keras"][1] == keras.__version__  # the table of docs/trainers.md names it


# --- pytorch-ignite


@pytest.mark.parametrize("stop", [5, 11, 15])
@pytest.mark.parametrize(("ranks", "size"), [(1, 4), (3, 4), (2, 7)])
def test_ignite_resumes_exactly_by_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int, ranks: int, size: int
) -> None:
    """Its block, killed at a step, in an epoch or at its end, resumes by its last line but one.

    On other ranks and in other batches; it ends after three epochs.
    """
    monkeypatch.chdir(tmp_path)
    block = block_with("def end_epoch").replace("every=100", "every=1")
    read, model = list[list[int]](), torch.nn.Linear(1, 1)

    def train_step(_: Engine, batch: Any) -> None:
        if len(read) == stop and not resuming:
            raise TimeoutError
        read.append(batch.tolist())

    def run(code: str, plan: ip.Plan, **options: Any) -> None:
        read.clear()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        names: dict[str, Any] = {"dataset": range(43), "model": model, "optimizer": optimizer}
        names |= {"PlanLoader": partial(PlanLoader, **options), "plan": plan}
        names |= {"Engine": Engine, "Events": Events, "torch": torch}
        names |= {"Checkpoint": Checkpoint, "DiskSaver": DiskSaver, "train_step": train_step}
        exec(code, names)  # noqa: S102 (our own page)

    resuming = False
    with pytest.raises(TimeoutError):
        run(block, PLAN, num_workers=2 * (stop == 15))
    assert batches(PLAN)[:stop] == read
    resuming = True
    line = block.replace("# Checkpoint.load", "Checkpoint.load")
    again = line.replace("checkpoint_200.pt", f"checkpoint_{stop}.pt")
    plan, one = PLAN.replace(batch_size=size), PLAN.replace(world_size=1)
    rest = plan.replace(world_size=ranks).resume(one.cursor(stop // STEPS, step=stop % STEPS))
    for rank in range(ranks):
        run(again, plan, rank=rank, world_size=ranks, compare=False)
        assert batches(rest, rank) == read


# --- mmengine


class Model(BaseModel):  # type: ignore[misc,unused-ignore]
    """A model that keeps what it was trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.read = torch.nn.Linear(1, 1), list[list[int]]()

    def forward(self, inputs: Any, mode: str = "loss") -> Any:
        del mode
        self.read.append([int(each) for each in inputs[:, 0]])
        return {"loss": self.layer(inputs).mean()}


PAGE: dict[str, Any] = {"mmengine": mmengine}
exec(block_with("class KeepLoader"), PAGE)  # noqa: S102 (our own page)
NUMBERS = count()  # of runs, whose names have to differ
BY_EPOCHS = {"by_epoch": True, "max_epochs": 3}


class Die(Hook):  # type: ignore[misc,unused-ignore]
    """Ends a training before it saves the step."""

    def after_train_iter(self, runner: Runner, *_: Any, **__: Any) -> None:
        if runner.iter == STEPS + 4:
            raise KeyboardInterrupt


def run(
    folder: Path, loader: PlanLoader, loop: dict[str, Any], *hooks: Hook, **given: Any
) -> list[list[int]]:
    """Train in one of mmengine's loops, which saves after every four steps; return the reads."""
    model = Model()
    runner = Runner(
        model,
        str(folder),
        train_dataloader=loader,
        train_cfg=loop,
        optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.0}},
        default_hooks={"checkpoint": {"type": "CheckpointHook", "interval": 4, "by_epoch": False}},
        custom_hooks=[PAGE["KeepLoader"](), *hooks] if loop["by_epoch"] else [],
        log_level="ERROR",
        experiment_name=f"run-{next(NUMBERS)}",
        **given,
    )
    with contextlib.suppress(KeyboardInterrupt):
        runner.train()
    return model.read


@pytest.fixture(autouse=True)
def _old_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let checkpoints be loaded as by the torch that mmengine 0.10 was written for."""
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")


def of_mmengine(plan: ip.Plan = PLAN, **options: Any) -> PlanLoader:
    """Return a loader whose batches mmengine's models take."""
    return PlanLoader(Rows(name="inputs"), plan, **options)


def test_a_loader_with_a_state_is_refused_and_one_without_reads_on(tmp_path: Path) -> None:
    """Only one of the two may skip: with a state as well, steps would be lost in silence."""
    loader = of_mmengine()
    first = run(tmp_path, loader, {"by_epoch": False, "max_iters": 4})
    loaded, to_8 = of_mmengine(), {"by_epoch": False, "max_iters": 8}
    loaded.load_state_dict(loader.state_dict())
    for each in (loaded, of_mmengine(PLAN.resume(loader.cursor))):
        with pytest.raises(ip.IndexPlanError, match="IterBasedTrainLoop, which skips 4 once more"):
            run(tmp_path, each, to_8, resume=True)
    assert batches(PLAN)[:8] == first + run(tmp_path, of_mmengine(), to_8, resume=True)


@pytest.mark.parametrize(("ranks", "workers"), [(1, 0), (1, 2), (2, 0)])
def test_an_epoch_resumes_where_its_checkpoint_stands(
    tmp_path: Path, ranks: int, workers: int
) -> None:
    """EpochBasedTrainLoop would read the epoch from its start again; a hook keeps the state.

    With the weights of a checkpoint alone, by `load_from`, a run begins at its start.
    """
    run(tmp_path, of_mmengine(num_workers=workers), BY_EPOCHS, Die())
    loader = of_mmengine(rank=0, world_size=ranks, compare=False)
    one = PLAN.replace(world_size=1)
    rest = PLAN.replace(world_size=ranks).resume(one.cursor(1, step=1))  # after 12 steps of 15
    assert batches(rest) == run(tmp_path, loader, BY_EPOCHS, resume=True)
    saved = {"load_from": str(tmp_path / "iter_4.pth"), "resume": False}
    assert batches(PLAN) == run(tmp_path, of_mmengine(), BY_EPOCHS, **saved)
