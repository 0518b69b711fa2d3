"""Composer tells the batch sampler which epoch it is, and each rank reads the plan's share of it.

    composer -n 2 docs/examples/composer_epochs.py

A Composer epoch is one pass over its loader: here, one of the plan's 3 sub-epochs. Composer calls
`set_epoch` on the loader's batch sampler before each of them.
"""

import torch
from composer import Trainer
from composer.models import ComposerModel
from composer.utils import dist
from torch.utils.data import TensorDataset

import indexplan as ip
from indexplan_torch import PlanLoader
from indexplan_torch.composer import KeepState

PLAN = ip.Plan(ip.Shuffle(103, seed=0), batch_size=8, sub_epochs=3)


class Line(ComposerModel):
    """A line through points; the model records which samples it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.line = torch.nn.Linear(1, 1)
        self.read: list[list[int]] = []

    def forward(self, batch: list[torch.Tensor]) -> torch.Tensor:
        """Return the line's values at some points."""
        points, _, indices = batch
        self.read.append(indices.tolist())
        return self.line(points)

    def loss(self, outputs: torch.Tensor, batch: list[torch.Tensor]) -> torch.Tensor:
        """Return how far the line is from a batch of points."""
        return (outputs - batch[1]).square().mean()


def main() -> None:
    """Train for 4 passes, and print what every rank read."""
    points = torch.linspace(-1, 1, 103)[:, None]
    dataset = TensorDataset(points, 3 * points + 1, torch.arange(103))
    model = Line()
    trainer = Trainer(
        model=model,
        train_dataloader=PlanLoader(dataset, PLAN),
        optimizers=torch.optim.SGD(model.parameters(), lr=0.1),
        max_duration="4ep",
        callbacks=[KeepState()],  # resumes where the loop stopped, on any number of ranks
        device="cpu",
        progress_bar=False,
    )
    trainer.fit()
    for rank, batches in enumerate(dist.all_gather_object(model.read)):
        if dist.get_global_rank() == 0:
            for step, batch in enumerate(batches):
                print(f"rank {rank} step {step} reads {batch}")
    trainer.close()


if __name__ == "__main__":
    main()
