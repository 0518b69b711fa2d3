"""OLMo-core's Trainer with its Checkpointer, on CPU: through PlanDataLoader, and its own loader.

Beside row.py it needs `pip install torch numpy ai2-olmo-core==3.0.0`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from olmo_core.config import DType
from olmo_core.data import (
    DataCollator,
    NumpyDataLoaderConfig,
    NumpyFSLDatasetConfig,
    TokenizerConfig,
)
from olmo_core.nn.transformer import TransformerConfig
from olmo_core.optim import AdamWConfig
from olmo_core.train import Duration, TrainerConfig
from olmo_core.train.callbacks import Callback, CheckpointerCallback
from olmo_core.train.train_module import TransformerTrainModuleConfig
from olmo_core.train.train_module.transformer import TransformerDataParallelConfig

from tests.runs.row import Leg, Numbered, Steps

ENDLESS = True  # an epoch's last step is filled with samples of the next
LENGTH = 4  # tokens of a sample, which are its number


@dataclass
class Recorded(Callback):
    """The samples of each optimizer step, as the train module gets them."""

    steps: list[list[int]] = field(default_factory=list)

    def pre_step(self, batch: dict[str, Any]) -> None:
        """Note a batch's samples."""
        self.steps.append(batch["input_ids"][:, 0].tolist())


def tokens_of(index: int) -> torch.Tensor:
    """Return a sample whose tokens are its number."""
    return torch.full((LENGTH,), index)


def ours(leg: Leg) -> Steps:
    """Train with a plan."""
    import indexplan as ip
    from indexplan_torch.olmo import PlanDataLoader

    def loader(work_dir: Path) -> PlanDataLoader:
        order = ip.Shuffle(leg.samples, seed=1)
        return PlanDataLoader(
            Numbered(leg.samples, tokens_of),
            order,
            collator=DataCollator(pad_token_id=0),
            global_batch_size=leg.global_batch * LENGTH,
            sequence_length=LENGTH,
            work_dir=work_dir,
        )

    return trained(leg, loader)


def theirs(leg: Leg) -> Steps:
    """Train with NumpyFSLDataLoader, as OLMo-core's scripts build it."""

    def loader(work_dir: Path) -> Any:
        tokens = work_dir / f"tokens-{leg.rank}.npy"  # raw, as OLMo-core's files are
        np.arange(leg.samples, dtype=np.uint16).repeat(LENGTH).tofile(tokens)
        dataset = NumpyFSLDatasetConfig(
            paths=[str(tokens)],
            sequence_length=LENGTH,
            tokenizer=TokenizerConfig(leg.samples + 1, leg.samples, leg.samples),
            work_dir=str(work_dir),
        ).build()
        size = leg.global_batch * LENGTH
        return NumpyDataLoaderConfig(global_batch_size=size, seed=1).build(dataset)

    return trained(leg, loader)


def trained(
    leg: Leg, loader: Callable[[Path], Any], callbacks: dict[str, Callback] | None = None
) -> Steps:
    """Run the Trainer from a checkpoint, or the start, to the next checkpoint, or the end."""
    os.environ["OLMO_SHARED_FS"] = "1"
    torch.manual_seed(0)
    model = TransformerConfig.olmo2_1M(vocab_size=1032, n_layers=1, dtype=DType.float32)
    module = TransformerTrainModuleConfig(
        rank_microbatch_size=leg.global_batch // leg.world_size * LENGTH,
        max_sequence_length=LENGTH,
        optim=AdamWConfig(lr=1e-3),
        dp_config=TransformerDataParallelConfig(name="ddp"),
    ).build(model.build(init_device="meta"), device=torch.device("cpu"))
    with tempfile.TemporaryDirectory() as folder:
        work_dir, recorded = _of_all_ranks(folder), Recorded()
        trainer = TrainerConfig(
            save_folder=str(leg.save or work_dir),
            save_overwrite=True,
            work_dir=work_dir,
            max_duration=Duration.epochs(leg.epoch + 2),
            metrics_collect_interval=1000,
            callbacks={
                "recorded": recorded,
                "checkpointer": CheckpointerCallback(save_interval=1_000_000, save_async=False),
                **(callbacks or {}),
            },
        ).build(module, loader(Path(work_dir)))
        if leg.checkpoint is not None:
            trainer.load_checkpoint(str(leg.checkpoint), load_trainer_state=True)
        if leg.steps is not None:
            trainer.hard_stop = Duration.steps(trainer.global_step + leg.before + leg.steps)
        trainer.fit()
        dist.barrier()
    return recorded.steps[leg.before :]


def _of_all_ranks(folder: str) -> str:
    """Return the first rank's folder."""
    folders = [folder]
    dist.broadcast_object_list(folders)
    return folders[0]
