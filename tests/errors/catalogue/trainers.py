"""Errors of the adapters where a trainer's own loaders and loops meet them."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from torch.utils.data import DataLoader

import indexplan as ip
from indexplan_torch import Bins, PlanBatchSampler, PlanLoader, join
from tests.errors.catalogue.made import OPEN, Case
from tests.errors.catalogue.torches import loader


def skipped_after_a_resume() -> None:
    """Skip batches of a loader that was resumed past them."""
    from accelerate import skip_first_batches

    resumed = loader(plan=OPEN.resume(OPEN.replace(world_size=1).cursor(0, step=1)))
    next(iter(skip_first_batches(resumed, 1)))


def dealt_out_as_seeded() -> None:
    """Have Accelerate deal a rank's batches out again, where it reads nothing of ours before."""
    from accelerate.data_loader import prepare_data_loader

    given: dict[str, Any] = {"num_processes": 2, "process_index": 1, "use_seedable_sampler": True}
    next(iter(prepare_data_loader(loader(), **given)))


def dealt_out_by_hand() -> None:
    """Deal a rank's batches out again by a shard of Accelerate's, without its prepare."""
    from accelerate.data_loader import BatchSamplerShard

    next(iter(BatchSamplerShard(PlanBatchSampler(OPEN, rank=0, world_size=2), 2, 0)))


def trained_by_lightning(made: Any = None) -> None:
    """Train under Lightning, on a DataLoader of torch's unless another is given."""
    import lightning.pytorch as pl

    class Model(pl.LightningModule):
        def training_step(self, *_: Any) -> None:
            """Learn nothing."""

        def configure_optimizers(self) -> None:
            """Have nothing to learn with."""

    quiet: Any = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    quiet |= {"accelerator": "cpu", "enable_checkpointing": False}
    sampler: Any = PlanBatchSampler(OPEN)
    made = DataLoader(range(10), batch_sampler=sampler) if made is None else made
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Lightning says of the machine, and of the loader
        logging.disable(logging.INFO)
        try:
            pl.Trainer(max_steps=1, **quiet).fit(Model(), made)
        finally:
            logging.disable(logging.NOTSET)


def counted_by_nobody() -> None:
    """Ask a loader for its cursor, while another one draws its batches."""
    asked = loader()
    other = DataLoader(range(10), batch_sampler=asked.batch_sampler)  # type: ignore[arg-type]
    batches = iter(other)
    next(batches)
    _ = asked.cursor


def renamed_in_transformers() -> None:
    """Count steps under a version of transformers that calls its methods otherwise."""
    name = "transformers.trainer"
    with patch.dict(sys.modules, {name: ModuleType(name)}):
        len(loader())


def trainer(**options: Any) -> Any:
    """Make a Hugging Face Trainer."""
    import transformers

    arguments = transformers.TrainingArguments(output_dir=".", use_cpu=True, **options)
    return transformers.Trainer(model=torch.nn.Linear(1, 1), args=arguments)


def kept_of_nothing() -> None:
    """Keep the state of a trainer that is none."""
    from indexplan_torch.transformers import KeepState

    KeepState(object())


def kept_without_a_plan() -> None:
    """Keep the state of a loader that has no plan."""
    from indexplan_torch.transformers import KeepState

    made = trainer()
    made.add_callback(KeepState(made))
    made.set_initial_training_values(made.args, DataLoader(range(10)))  # type: ignore[arg-type]


def counted_by_steps() -> None:
    """Train by a plan without use_plan."""
    made = trainer()
    made.set_initial_training_values(made.args, loader())


def without_a_state() -> None:
    """Resume from a checkpoint that has no state."""
    with contextlib.redirect_stdout(io.StringIO()):  # the summary of the first training
        trained(of_tensors(), num_train_epochs=4, save_steps=7, save_strategy="steps")
    file = Path("run/checkpoint-7/trainer_state.json")
    saved = json.loads(file.read_text())
    del saved["stateful_callbacks"]["indexplan"]
    file.write_text(json.dumps(saved))
    trained(of_tensors(), resume="run/checkpoint-7", num_train_epochs=4)


def train(loader: Any, model: Any) -> None:
    """Train a model with a loader."""
    import transformers

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self) -> Any:
            return loader

    arguments = transformers.TrainingArguments(output_dir=".", use_cpu=True, report_to=[])
    Trainer(model=model, args=arguments).train()


PROMPTS: dict[str, Any] = {
    "num_generations": 2,
    "num_iterations": 1,
    "args": SimpleNamespace(generation_batch_size=8),
    "_step": 0,
    "_buffered_inputs": None,
}


def planned(order: Any, **trainer: Any) -> None:
    """Use a plan in a trainer that can't train by it."""
    from indexplan_torch.transformers import use_plan

    use_plan(SimpleNamespace(train_dataset=range(9), **trainer), ip.Plan(order, batch_size=1))


def rows_for_trainer() -> None:
    """Train a model of transformers on rows that have no batch axis."""
    from transformers import GPT2Config, GPT2Model

    plan = ip.Plan(ip.Packed([2, 3], max_length=5), batch_size=1)
    rows = PlanLoader(Bins([[1, 2], [3, 4, 5]]), plan, collate_fn=join)
    train(rows, GPT2Model(GPT2Config(vocab_size=8, n_embd=4, n_layer=1, n_head=1)))


def evaluated_by_halves() -> None:
    """Evaluate with a plan of two sub-epochs."""
    halves = OPEN.replace(sub_epochs=2)
    trainer().evaluation_loop(PlanLoader(range(10), halves, rank=0, world_size=1), "Evaluation")


def evaluated_by_unequal_ranks() -> None:
    """Evaluate where ranks have different numbers of batches, and gather after each."""
    single = OPEN.replace(batch_size=1)
    made = PlanLoader(range(10), single, rank=0, world_size=4, evaluation=True)
    trainer().evaluation_loop(made, "Evaluation")


CASES: list[Case] = [
    ("batches that are skipped after a resume", skipped_after_a_resume),
    ("batches that nobody counts", counted_by_nobody),
    ("batches that are dealt out by a seedable sampler", dealt_out_as_seeded),
    ("batches that are dealt out by hand", dealt_out_by_hand),
    ("a sampler in a loader of Lightning's", trained_by_lightning),
    ("a trainer that is none", kept_of_nothing),
    ("a trainer's loader without a plan", kept_without_a_plan),
    ("a trainer that counts its steps itself", counted_by_steps),
    ("a checkpoint of a trainer that counted its steps itself", without_a_state),
    ("a plan that reads each prompt once", lambda: planned(ip.Sequential(9), **PROMPTS)),
    (
        "a plan that packs what is packed",
        lambda: planned(ip.Packed([1] * 9, max_length=2), args=SimpleNamespace(packing=True)),
    ),
    ("rows for Trainer without a batch axis", rows_for_trainer),
    ("an evaluation of a part of the data under Trainer", evaluated_by_halves),
    ("an evaluation of unequal ranks under Trainer", evaluated_by_unequal_ranks),
    ("a caller of another name", renamed_in_transformers),
]


class Learned(torch.nn.Module):
    """A model whose loss is its only weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))

    def forward(self, x: Any) -> dict[str, Any]:
        return {"loss": self.weight * x.float().mean()}


def trained(made: PlanLoader, resume: str | None = None, **options: Any) -> None:
    """Train under transformers.Trainer with KeepState."""
    import transformers

    from indexplan_torch.transformers import KeepState

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self) -> Any:
            return made

    given: dict[str, Any] = {"use_cpu": True, "disable_tqdm": True, "report_to": [], **options}
    arguments = transformers.TrainingArguments(output_dir="run", **given)
    running = Trainer(model=Learned(), args=arguments)
    running.add_callback(KeepState(running))
    running.train(resume_from_checkpoint=resume)


def of_tensors() -> PlanLoader:
    """Make a loader whose batches a model takes."""
    return loader(collate_fn=lambda samples: {"x": torch.tensor(samples)})
