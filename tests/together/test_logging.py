"""The page on logging, with TensorBoard and an offline wandb, which .ci/run installs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import indexplan as ip
from indexplan_torch import PlanLoader
from tests.test_docs import check_page

pytestmark = pytest.mark.loggers


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the loggers' own
def test_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it logs is in the files: the place after each step, and the samples of each source."""
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    monkeypatch.setenv("WANDB_SILENT", "true")
    check_page("logging", tmp_path)
    events = EventAccumulator(str(tmp_path / "runs"))
    events.Reload()
    sizes = [(each.step, each.value) for each in events.Scalars("data/samples")]
    places = [place for place, _ in sizes]
    assert sorted(set(places)) == places
    assert places[-1] == sum(size for _, size in sizes)
    assert {0.8} == {round(each.value, 6) for each in events.Scalars("share/web")}
    assert {"loss/web", "loss/code", "data/tokens"} <= set(events.Tags()["scalars"])
    assert list((tmp_path / "wandb").glob("offline-run-*/*.wandb"))


@pytest.mark.filterwarnings("ignore")  # Lightning's advice
@pytest.mark.parametrize("num_workers", [0, 1])
def test_lightning_holds_the_batch_that_the_loader_tells_of(num_workers: int) -> None:
    """In training_step, groups and cursor are of the batch that it got."""
    sources = {"a": ip.Sequential(70), "b": ip.Shuffle(30, seed=1)}
    plan = ip.Plan(ip.Mixture(sources, weights={"a": 0.6, "b": 0.4}), batch_size=7)
    loader = PlanLoader(torch.arange(100), plan, num_workers=num_workers)
    seen: list[Any] = []

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.line = torch.nn.Linear(1, 1)

        def training_step(self, batch: Any) -> Any:
            assert (batch.numpy() >= 70).tolist() == (loader.groups == 1).tolist()
            seen.append((len(seen) + 1, len(batch)) == (loader.cursor.step, loader.step_size))
            return self.line(batch[:, None].float()).sum()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.0)

    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = pl.Trainer(max_steps=10, accelerator="cpu", **quiet)  # type: ignore[arg-type]
    trainer.fit(Module(), loader)
    assert [True] * 10 == seen
