"""NeMo AutoModel's loader, StepScheduler and checkpoints, on CPU: a plan, and its own sampler.

Its fine-tuning recipe asks torch.cuda for memory before all else. So this is a recipe of its own
BaseRecipe, whose loop has that one's lines about data and checkpoints.

Beside row.py it needs `pip install torch datasets pyyaml nemo-automodel==0.7.0`.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import datasets  # noqa: F401 (as building a loader would in each rank)
import torch
import torch.distributed as dist
import yaml
from nemo_automodel.components.checkpoint.config import CheckpointingConfig
from nemo_automodel.components.config.loader import load_yaml_config
from nemo_automodel.recipes._typed_config import RecipeConfig
from nemo_automodel.recipes.base_recipe import BaseRecipe
from torch.nn.parallel import DistributedDataParallel

from tests.runs.row import Leg, Numbered, Steps  # noqa: F401 (named in the YAML file)

ENDLESS = True  # an epoch's last step is filled with samples of the next
LOCAL_BATCH = 2
PLAN = {
    "batch_sampler": {
        "_target_": f"{__name__}.ByPlan",
        "batch_size": LOCAL_BATCH,
        "seed": 1,
    }
}


@dataclass
class ByPlan:
    """What AutoModel asks for each rank's batch sampler, as its page has it."""

    batch_size: int
    seed: int = 0

    def build(self, *, dataset_len: int, rank: int, world_size: int) -> Any:
        """Return the batch sampler of a rank; AutoModel calls this."""
        import indexplan as ip
        from indexplan_torch import PlanBatchSampler

        order = ip.Shuffle(dataset_len, self.seed)
        plan = ip.Plan(order, batch_size=self.batch_size, remainder="carry")
        return PlanBatchSampler(plan, rank=rank, world_size=world_size)


class Recipe(BaseRecipe):
    """AutoModel's fine-tuning recipe, as far as it is about data, steps and checkpoints."""

    def __init__(self, cfg: Any, checkpoint_dir: Path) -> None:
        self.cfg = RecipeConfig(cfg)
        self.checkpoint_dir = checkpoint_dir

    def setup(self) -> None:
        """Build what the YAML file says, in the fine-tuning recipe's sequence."""
        rank, world_size = dist.get_rank(), dist.get_world_size()
        self.peft_config = None
        self.checkpointer = CheckpointingConfig(
            checkpoint_dir=self.checkpoint_dir,
            model_save_format="torch_save",
            save_consolidated=False,
        ).build(dp_rank=rank, tp_rank=0, pp_rank=0)
        torch.manual_seed(0)
        self.model = torch.nn.Linear(1, 1)
        self.parallel_loss = DistributedDataParallel(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.dataloader = self.cfg.dataloader.build(dp_rank=rank, dp_world_size=world_size)
        local = self.cfg.get("step_scheduler.local_batch_size")
        self.step_scheduler = self.cfg.step_scheduler.build(self.dataloader, world_size, local)

    def train(self) -> Steps:
        """Take steps, and save where the scheduler says; return the samples of each."""
        steps: Steps = []
        for epoch in self.step_scheduler.epochs:
            self.step_scheduler.set_epoch(epoch)
            for batches in self.step_scheduler:
                for batch in batches:
                    self.parallel_loss(batch[:, None].float()).mean().backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
                steps.append([sample for batch in batches for sample in batch.tolist()])
                if self.step_scheduler.is_ckpt_step:
                    self.save_checkpoint(epoch, self.step_scheduler.step, 0.0)
        self._finalize_and_close_checkpointer()
        return steps


def ours(leg: Leg) -> Steps:
    """Train with a plan, which the YAML file names."""
    return trained(to_the_end(leg), PLAN, num_epochs=leg.epoch + 1)


def theirs(leg: Leg) -> Steps:
    """Train with what AutoModel makes of a map-style dataset: StatefulDistributedSampler."""
    return trained(to_the_end(leg), {}, num_epochs=leg.epoch + 1)


def to_the_end(leg: Leg) -> Leg:
    """Return a last leg without a limit: what the sampler reads late isn't lost."""
    return leg if leg.save else replace(leg, steps=None)


def trained(leg: Leg, more: dict[str, Any], **scheduled: Any) -> Steps:
    """Train from a checkpoint, or the start, to the next checkpoint, or the end."""
    schedule = {
        "local_batch_size": LOCAL_BATCH,
        "global_batch_size": leg.global_batch,
        "num_epochs": 3,
        "max_steps": 10**6,
        "ckpt_every_steps": 10**6,
        "save_checkpoint_every_epoch": False,
        **scheduled,
    }
    content = {
        "dataset": {"_target_": f"{__name__}.Numbered", "samples": leg.samples},
        "dataloader": {"collate_fn": "torch.utils.data.default_collate"},
        "step_scheduler": schedule,
        **more,
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "recipe.yaml")
        file.write_text(yaml.safe_dump(content))
        cfg = load_yaml_config(file)
        recipe = Recipe(cfg, leg.save or Path(folder))
        if "batch_sampler" in more:
            recipe.cfg.dataloader.batch_sampler_config = recipe.cfg.batch_sampler.instantiate()
        recipe.setup()
        if leg.checkpoint is not None:
            recipe.load_checkpoint(str(next(leg.checkpoint.glob("epoch_*"))))
        if leg.steps is not None:
            recipe.step_scheduler.max_steps = recipe.step_scheduler.step + leg.before + leg.steps
        return recipe.train()[leg.before :]
