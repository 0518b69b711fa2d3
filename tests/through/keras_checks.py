"""Keras on torch reads a plan as it is; where another backend draws ahead, it is refused."""

from __future__ import annotations

import os
import subprocess
import sys
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

pytestmark = pytest.mark.filterwarnings("ignore")  # Keras's own, of torch's arrays

PLAN = ip.Plan(ip.Shuffle(43, seed=3), batch_size=4)  # 11 steps
EPOCHS = [
    PLAN.replace(world_size=1).batch(e, step=s, rank=0).tolist()
    for e in range(3)
    for s in range(11)
]


class Rows(torch.utils.data.Dataset[Any]):
    """43 numbers, each with a label."""

    def __len__(self) -> int:
        return 43

    def __getitem__(self, index: int) -> Any:
        return torch.tensor([float(index)]), torch.tensor([1.0])


class Read(torch.utils.data.Dataset[Any]):
    """1,003 numbers, each with a label, which notes what is read."""

    def __init__(self) -> None:
        self.read: list[int] = []

    def __len__(self) -> int:
        return 1003

    def __getitem__(self, index: int) -> Any:
        self.read.append(index)
        return torch.tensor([float(index) / 1003]), torch.tensor([1.0])


class Model(keras.Model):  # type: ignore[misc,unused-ignore]
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
def test_fit_reads_the_plan_and_resumes_in_it(stop: int, workers: int) -> None:
    """It looks at a batch before the first epoch; all are read once, the last one smaller."""
    loader, model = PlanLoader(Rows(), PLAN, num_workers=workers), Model()
    save = Save(loader, stop)
    model.fit(loader, epochs=3, callbacks=[save], verbose=0)
    assert EPOCHS[:stop] == model.read
    loader, resumed = PlanLoader(Rows(), PLAN, num_workers=workers), Model()
    loader.load_state_dict(save.state)
    resumed.fit(loader, epochs=3, initial_epoch=loader.cursor.epoch, verbose=0)
    assert EPOCHS == model.read + resumed.read


def test_the_page_saves_model_and_loader_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its block, in two halves: the second continues where the last pair was saved."""
    (block,) = (each for each in blocks("docs/trainers.md") if "class Save(keras" in each)
    train, resume = block.split("\nsaved = ")
    monkeypatch.chdir(tmp_path)
    dataset, plan = Read(), ip.Plan(ip.Shuffle(1003, seed=4), batch_size=8)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    names = globals() | {"dataset": dataset, "plan": plan, "model": model}
    exec(train, names)  # noqa: S102
    dataset.read.clear()
    exec("saved = " + resume, names)  # noqa: S102
    steps = range(100, plan.replace(world_size=1).steps(2).stop)
    left = [plan.replace(world_size=1).batch(2, step=step, rank=0).tolist() for step in steps]
    assert sum(left, []) == list(dict.fromkeys(dataset.read))  # it looks at a batch first
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
    assert "43" == read
    assert 3 == len(refused)
    for each in refused:
        assert "got jax, which may draw ahead" in each
        assert "KERAS_BACKEND=torch" in each


def test_a_loader_is_no_array() -> None:
    """It looks as one that lacks `__array__`, to NumPy and to Keras on torch."""
    loader = PlanLoader(Rows(), PLAN)
    assert not hasattr(loader, "__array__")
    assert loader is np.asarray(loader).item()


def test_the_version_is_the_tested_one() -> None:
    """The table of docs/trainers.md names it."""
    assert TESTED["keras"][1] == keras.__version__
