"""torchtitan: its own loader and a plan's, in its training loop's steps, saved and loaded by DCP.

Its Trainer needs CUDA, so the loop of `Trainer.train` is written out here: a step takes a batch for
each accumulation, and the checkpoint manager is asked after each.

Beside row.py it needs `pip install torch datasets torchtitan==0.3.0`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from torchtitan.components.checkpoint import CheckpointManager
from torchtitan.components.dataloader import BaseDataLoader
from torchtitan.components.optimizer import LRSchedulersContainer, default_adamw
from torchtitan.components.tokenizer import BaseTokenizer
from torchtitan.hf_datasets import DatasetConfig, text_datasets

from tests.runs.row import Leg, Steps

ENDLESS = True
SEQ_LEN = 4  # tokens of a row, which has one document
ROWS = 2  # of a rank's batch


class Numbers(BaseTokenizer):
    """Encodes a sample's number as a document: that number, and a last token."""

    def encode(self, text: str, **_: Any) -> list[int]:
        """Return the tokens of a row, and one more."""
        return [int(text)] * SEQ_LEN + [0]

    def decode(self, tokens: list[int]) -> str:
        """Return the number."""
        return str(tokens[0])

    def get_vocab_size(self) -> int:
        """Return some number, which nobody asks for."""
        return 2**20


class Rows(torch.utils.data.Dataset[Any]):
    """The rows of documents that fill one each, asked for by the parts that they are made of."""

    def __init__(self, num_samples: int) -> None:
        self.num_samples = num_samples

    def __len__(self) -> int:
        return self.num_samples

    def __getitem__(self, row: Any) -> Any:
        ((number, _, _),) = row
        tokens = torch.tensor(Numbers().encode(str(number)))
        return {"input": tokens[:-1], "positions": torch.arange(SEQ_LEN)}, tokens[1:]


def ours(leg: Leg) -> Steps:
    """Train on rows of a plan."""
    import indexplan as ip
    from indexplan_torch.torchtitan import PlanDataLoader

    order = ip.DocumentWindows([SEQ_LEN] * leg.samples, SEQ_LEN, overlap=0, seed=1)
    return train(leg, PlanDataLoader.Config(dataset=Rows(leg.samples), order=order))


def theirs(leg: Leg) -> Steps:
    """Train on rows of torchtitan's own text loader."""

    def load(_: str) -> Dataset:
        return Dataset.from_dict({"text": [str(number) for number in range(leg.samples)]})

    text_datasets.DATASETS["numbers"] = DatasetConfig("", load, lambda sample: sample["text"])
    return train(leg, text_datasets.HuggingFaceTextDataLoader.Config(dataset="numbers"))


class State:
    """What Trainer keeps of its own in a checkpoint."""

    step = 0

    def state_dict(self) -> dict[str, Any]:
        """Return the steps that were done."""
        return {"step": self.step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue at a step."""
        self.step = state["step"]


def train(leg: Leg, config: BaseDataLoader.Config) -> Steps:
    """Load, train, and save as `Trainer.train` does; return the samples of each optimizer step."""
    loader = config.build(
        dp_world_size=leg.world_size,
        dp_rank=leg.rank,
        tokenizer=Numbers(),
        seq_len=SEQ_LEN,
        local_batch_size=ROWS,
    )
    model, state = torch.nn.Linear(SEQ_LEN, 1), State()
    optimizers = default_adamw(lr=0.01).build(model_parts=[model])
    manager = CheckpointManager.Config(
        enable=True,
        interval=2**30,
        last_save_model_only=False,
        folder=str(leg.save or leg.checkpoint or "none"),
        initial_load_path=str(_newest(leg.checkpoint)) if leg.checkpoint else None,
        initial_load_model_only=False,
        keep_latest_k=0,
    ).build(
        dataloader=loader,
        model_parts=[model],
        optimizers=optimizers,
        lr_schedulers=LRSchedulersContainer.Config().build(
            optimizers=optimizers, training_steps=100
        ),
        states={"train_state": state},
        sd_adapter=None,
    )
    manager.load()
    first = state.step + leg.before
    accumulated = leg.global_batch // (leg.world_size * ROWS)
    batches, steps = iter(loader), []
    while leg.steps is None or state.step < first + leg.steps:
        state.step += 1
        try:
            taken = [next(batches) for _ in range(accumulated)]
        except StopIteration:  # as an error of torchtitan's own ends Trainer.train
            break
        optimizers.zero_grad()
        for fields, _ in taken:
            model(fields["input"].float()).mean().backward()
        optimizers.step()
        trained = [(fields["input"][:, 0], labels[:, 0]) for fields, labels in taken]
        steps.append([int(n) for row, label in trained for n in row[label != -100]])
        if leg.save:
            manager.save(state.step, last_step=state.step == first + (leg.steps or 0))
    manager.close()
    return steps[leg.before :]


def _newest(folder: Path) -> Path:
    return max(folder.glob("step-*"), key=lambda path: int(path.name.partition("-")[2]))
