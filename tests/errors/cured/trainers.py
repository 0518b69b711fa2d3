"""Cures of the adapters where a trainer's own loaders and loops meet them, followed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import indexplan as ip
from indexplan_torch import Bins, PlanLoader
from indexplan_torch.accelerate import prepare
from indexplan_torch.causal import join_causal
from tests.errors.catalogue.made import OPEN
from tests.errors.catalogue.torches import loader
from tests.errors.catalogue.trainers import trained_by_lightning, trainer


def resumed() -> None:
    """Skip by a state, or by the plan of a cursor."""
    saved = loader()
    next(iter(saved))
    by_state = loader()
    by_state.load_state_dict(saved.state_dict())
    by_cursor = loader(plan=OPEN.resume(saved.cursor))
    assert len(list(by_state)) == len(list(by_cursor)) == 4


def prepared() -> None:
    """Prepare a PlanLoader by our own prepare, with a seedable sampler for other loaders."""
    from accelerate import Accelerator, DataLoaderConfiguration

    from indexplan_torch.accelerate import prepare

    options = DataLoaderConfiguration(use_seedable_sampler=True)
    assert len(list(prepare(Accelerator(cpu=True, dataloader_config=options), loader()))) == 5


class Learned(torch.nn.Module):
    """A model whose loss is its only weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))

    def forward(self, x: Any) -> dict[str, Any]:
        return {"loss": self.weight * x.float().mean()}


def train(
    made: PlanLoader,
    model: Any = None,
    resume: str | None = None,
    hear: Callable[[], Any] = tuple,
    **options: Any,
) -> int:
    """Train under transformers.Trainer with KeepState; return the number of updates."""
    import transformers

    from indexplan_torch.transformers import KeepState

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self) -> Any:
            return made

        def training_step(self, *args: Any, **kwargs: Any) -> Any:
            hear()
            return super().training_step(*args, **kwargs)

    given: dict[str, Any] = {"use_cpu": True, "disable_tqdm": True, "report_to": [], **options}
    arguments = transformers.TrainingArguments(output_dir="run", **given)
    running = Trainer(model=model or Learned(), args=arguments)
    running.add_callback(KeepState(running))
    running.train(resume_from_checkpoint=resume)
    return int(running.state.global_step)


def of_tensors(plan: ip.Plan = OPEN) -> PlanLoader:
    """Make a loader whose batches a model takes."""
    return loader(plan=plan, collate_fn=lambda samples: {"x": torch.tensor(samples)})


def kept() -> None:
    """Keep the state of a PlanLoader in the run that saves, and resume with another batch size."""
    saving: dict[str, Any] = {"num_train_epochs": 4, "save_steps": 7, "save_strategy": "steps"}
    assert train(of_tensors(), **saving) == 20
    # 2 of 10 samples of the second pass are left in steps of 2, which are one of 5, and two passes
    larger = of_tensors(OPEN.replace(batch_size=5))
    assert train(larger, resume="run/checkpoint-7", **saving) == 7 + 2 + 2 * 2


def asked() -> None:
    """Ask for the size of each micro-batch, of which an update has two."""
    made, sizes = of_tensors(), []
    options: dict[str, Any] = {"gradient_accumulation_steps": 2, "num_train_epochs": 1}
    train(made, hear=lambda: sizes.append(made.step_size), **options)
    assert sizes == [2] * 5


def with_a_batch_axis() -> None:
    """Train a causal model on bins that join_causal joins."""
    from transformers import GPT2Config, GPT2LMHeadModel

    plan = ip.Plan(ip.Packed([2, 3], max_length=5), batch_size=1)
    samples = [{"input_ids": torch.tensor(ids)} for ids in ([1, 2], [3, 4, 5])]
    rows = PlanLoader(Bins(samples), plan, collate_fn=join_causal)
    config = GPT2Config(vocab_size=8, n_embd=4, n_layer=1, n_head=1)
    assert train(rows, GPT2LMHeadModel(config), num_train_epochs=1) == 1


def evaluated() -> None:
    """Evaluate with a plan of one sub-epoch."""
    whole = OPEN.replace(sub_epochs=2).replace(sub_epochs=1)
    made = loader(plan=whole, collate_fn=lambda samples: {"x": torch.tensor(samples)})
    ended = trainer(report_to=[])
    ended.model = Learned()
    assert ended.evaluation_loop(made, "Evaluation", prediction_loss_only=True).num_samples == 10


def evaluated_on_all() -> None:
    """Evaluate by larger batches, or by padded ones, prepared."""
    ended = trainer(report_to=[])
    ended.model = Learned()
    options: Any = {"rank": 0, "collate_fn": lambda samples: {"x": torch.tensor(samples)}}
    made = loader(plan=OPEN, world_size=4, evaluation=True, **options)
    padded = loader(plan=OPEN.replace(batch_size=1, remainder="pad"), world_size=1, **options)
    for each in (made, prepare(ended.accelerator, padded)):
        ended.evaluation_loop(each, "Evaluation", prediction_loss_only=True)


CURED: dict[str, Callable[[], Any]] = {
    **dict.fromkeys(
        (
            "batches that are skipped after a resume",
            "batches that nobody counts",
        ),
        resumed,
    ),
    "batches that are dealt out by a seedable sampler": prepared,
    "batches that are dealt out by hand": prepared,
    "a sampler in a loader of Lightning's": lambda: trained_by_lightning(loader()),
    **dict.fromkeys(
        (
            "a trainer that is none",
            "a trainer's loader without a plan",
            "a trainer that counts steps of other passes",
        ),
        kept,
    ),
    "a micro-batch of an update that was fetched together": asked,
    "rows for Trainer without a batch axis": with_a_batch_axis,
    "an evaluation of a part of the data under Trainer": evaluated,
    "an evaluation of unequal ranks under Trainer": evaluated_on_all,
}
