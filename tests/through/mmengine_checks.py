"""mmengine's loops: one skips what a run has trained on by drawing it, the other takes a state."""

from __future__ import annotations

import contextlib
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

import indexplan as ip
from indexplan_torch import PlanLoader
from tests.test_docs import blocks

with warnings.catch_warnings():  # torch's own, of what mmengine imports
    warnings.simplefilter("ignore", DeprecationWarning)
    import mmengine
    from mmengine.hooks import Hook
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


PAGE: dict[str, Any] = {"mmengine": mmengine}
(block,) = (each for each in blocks("docs/trainers.md") if "class KeepLoader" in each)
exec(block, PAGE)  # noqa: S102 (our own page)
KeepLoader = PAGE["KeepLoader"]


class Die(Hook):  # type: ignore[misc,unused-ignore]
    """Ends a training before it saves the step."""

    def after_train_iter(self, runner: Runner, *_: Any, **__: Any) -> None:
        if runner.iter == 14:
            raise KeyboardInterrupt


def by_epochs(
    folder: Path, loader: PlanLoader, hooks: list[Hook], *, resume: bool, of: Path | None = None
) -> Any:
    """Train three epochs, with the weights of a checkpoint if one is given; return the reads."""
    model = Model()
    runner = Runner(
        model,
        str(folder),
        train_dataloader=loader,
        train_cfg={"by_epoch": True, "max_epochs": 3},
        optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.0}},
        default_hooks={"checkpoint": {"type": "CheckpointHook", "interval": 4, "by_epoch": False}},
        custom_hooks=hooks,
        resume=resume,
        load_from=None if of is None else str(of),
        log_level="ERROR",
        experiment_name=f"{folder.name}-{resume}-{of is None}",
    )
    with contextlib.suppress(KeyboardInterrupt):
        runner.train()
    return model.read


@pytest.mark.parametrize(("ranks", "workers"), [(1, 0), (1, 2), (2, 0)])
def test_an_epoch_resumes_where_its_checkpoint_stands(
    tmp_path: Path, ranks: int, workers: int
) -> None:
    """EpochBasedTrainLoop would read the epoch from its start again; a hook keeps the state."""
    loader = PlanLoader(Rows(), PLAN, num_workers=workers)
    by_epochs(tmp_path, loader, [KeepLoader(), Die()], resume=False)
    loader = PlanLoader(Rows(), PLAN, rank=0, world_size=ranks, compare=False)
    read = by_epochs(tmp_path, loader, [KeepLoader()], resume=True)
    one = PLAN.replace(world_size=1)
    rest = PLAN.replace(world_size=ranks).resume(one.cursor(1, step=2))  # 10 steps an epoch
    left = [(epoch, step) for epoch in (1, 2) for step in rest.steps(epoch)]
    assert [rest.batch(epoch, step=step, rank=0).tolist() for epoch, step in left] == read


def test_weights_of_a_checkpoint_begin_a_run_at_its_start(tmp_path: Path) -> None:
    """`load_from` without `resume` loads a checkpoint too, whose loader stood elsewhere."""
    by_epochs(tmp_path, PlanLoader(Rows(), PLAN), [KeepLoader(), Die()], resume=False)
    (saved,) = tmp_path.glob("iter_4.pth")
    read = by_epochs(tmp_path, PlanLoader(Rows(), PLAN), [KeepLoader()], resume=False, of=saved)
    one = PLAN.replace(world_size=1)
    steps = [(epoch, step) for epoch in range(3) for step in range(10)]
    assert [one.batch(epoch, step=step, rank=0).tolist() for epoch, step in steps] == read
