"""A batch of batches: 5 groups of 3 samples a step, under Lightning's default Trainer, two ranks.

    python docs/examples/batch_of_batches.py

The dataset gets a list of 3 indices, one group at a time; a step reads 5 such groups.
The Trainer leaves the loader as it is, without any flag, and each rank reads its share of the plan.
"""

import lightning
import torch
from torch.utils.data import Dataset

import indexplan as ip
from indexplan_torch import PlanLoader

# 110 samples, 2 ranks x 5 groups x 3 samples a step: 4 steps, the last one filled up by "pad",
# so that every group has 3 samples and groups can be stacked.
PLAN = ip.Plan(ip.Shuffle(110, seed=0), batch_size=(5, 3), remainder="pad")


class Groups(Dataset):
    """Samples that are asked for in groups."""

    def __init__(self) -> None:
        self.samples = torch.arange(110.0)

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.samples)

    def __getitem__(self, indices: list[int]) -> torch.Tensor:
        """Return a group: the samples of a list of indices."""
        return self.samples[indices]


class Contrast(lightning.LightningModule):
    """A model that is trained to tell a group's samples from their mean."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(()))

    def train_dataloader(self) -> PlanLoader:
        """Return the loader, which finds its rank by itself."""
        return PlanLoader(Groups(), PLAN, nested=True)

    def training_step(self, batch: torch.Tensor, step: int) -> torch.Tensor:
        """Return the loss of a batch, of shape (5 groups, 3 samples)."""
        for rank, groups in enumerate(self.all_gather(batch)):
            where = f"epoch {self.current_epoch} step {step} rank {rank}"
            self.print(f"{where}: {groups.int().tolist()}")
        return (self.scale * batch / 110 - batch.mean(1, keepdim=True) / 110).square().mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return what trains the model."""
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main() -> None:
    """Train for two epochs."""
    trainer = lightning.Trainer(
        max_epochs=2, accelerator="cpu", devices=2, enable_progress_bar=False
    )
    trainer.fit(Contrast())
    if trainer.is_global_zero:
        account = PLAN.replace(world_size=2).account(epoch=0)
        print(f"{trainer.global_step} steps; an epoch has {account.num_padded} padded samples")


if __name__ == "__main__":
    main()
