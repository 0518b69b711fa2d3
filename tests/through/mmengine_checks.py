"""mmengine's IterBasedTrainLoop, which skips what a run has trained on by drawing it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

import indexplan as ip
from indexplan_torch import PlanLoader

with warnings.catch_warnings():  # torch's own, of what mmengine imports
    warnings.simplefilter("ignore", DeprecationWarning)
    from mmengine.model import BaseModel
    from mmengine.runner import Runner

pytestmark = pytest.mark.filterwarnings("ignore")  # mmengine's own, of torch's checkpoints

PLAN = ip.Plan(ip.Shuffle(40, seed=3), batch_size=4)


class Rows(torch.utils.data.Dataset[Any]):
    """40 numbers."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> Any:
        return {"inputs": torch.tensor([float(index)])}


class Model(BaseModel):  # type: ignore[misc,unused-ignore]
    """A model that keeps what it was trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.read = torch.nn.Linear(1, 1), list[list[int]]()

    def forward(self, inputs: Any, mode: str = "loss") -> Any:
        del mode
        self.read.append([int(each) for each in inputs[:, 0]])
        return {"loss": self.layer(inputs).mean()}


def trained(folder: Path, loader: PlanLoader, steps: int, *, resume: bool = False) -> Any:
    """Train up to a step; return what was read."""
    model = Model()
    Runner(
        model,
        str(folder),
        train_dataloader=loader,
        train_cfg={"by_epoch": False, "max_iters": steps},
        optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.0}},
        default_hooks={"checkpoint": {"type": "CheckpointHook", "interval": 3, "by_epoch": False}},
        resume=resume,
        log_level="ERROR",
        experiment_name=f"{folder.name}-{steps}-{resume}",
    ).train()
    return model.read


@pytest.fixture(autouse=True)
def _old_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let checkpoints be loaded as by the torch that mmengine 0.10 was written for."""
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")


def test_a_loader_with_a_state_is_refused_and_one_without_reads_on(tmp_path: Path) -> None:
    """Only one of the two may skip: with a state as well, steps would be lost in silence."""
    loader = PlanLoader(Rows(), PLAN)
    first = trained(tmp_path, loader, 3)
    loaded = PlanLoader(Rows(), PLAN)
    loaded.load_state_dict(loader.state_dict())
    with pytest.raises(ip.IndexPlanError, match="IterBasedTrainLoop, which skips 3 once more"):
        trained(tmp_path, loaded, 8, resume=True)
    resumed = PlanLoader(Rows(), PLAN.resume(loader.cursor))
    with pytest.raises(ip.IndexPlanError, match="IterBasedTrainLoop, which skips 3 once more"):
        trained(tmp_path, resumed, 8, resume=True)
    rest = trained(tmp_path, PlanLoader(Rows(), PLAN), 8, resume=True)
    one = PLAN.replace(world_size=1)
    assert [one.batch(0, step=step, rank=0).tolist() for step in range(8)] == first + rest
