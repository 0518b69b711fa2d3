"""Train on images under Lightning; stop any time, and resume on any number of devices.

python docs/examples/lightning_images.py --devices 2 --max-steps 30
python docs/examples/lightning_images.py --devices 3
"""

import argparse
from pathlib import Path

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import TensorDataset

import indexplan as ip
from indexplan_torch import PlanLoader


class Classifier(lightning.LightningModule):
    """A model like any other: it knows nothing about plans."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))

    def on_train_start(self) -> None:
        """Print where the run resumes."""
        self.print(f"{self.trainer.world_size} devices start after {self.global_step} steps")

    def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
        """Return the loss of a batch."""
        images, labels = batch
        return nn.functional.cross_entropy(self.net(images), labels)

    def validation_step(self, batch: list[torch.Tensor]) -> None:
        """Log the accuracy of a batch, weighted by its size."""
        images, labels = batch
        right = (self.net(images).argmax(1) == labels).float().mean()
        self.log("accuracy", right, batch_size=len(labels), sync_dist=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return what trains the model."""
        return torch.optim.Adam(self.parameters(), lr=0.01)


def main() -> None:
    """Train, from the last checkpoint if there is one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--max-steps", type=int, default=-1)
    options = parser.parse_args()

    images, labels = map(torch.tensor, load_digits(return_X_y=True))  # or an ImageFolder
    images = images.float() / 16
    train_set = TensorDataset(images[:1400], labels[:1400])
    valid_set = TensorDataset(images[1400:], labels[1400:])

    shuffled = ip.Plan(ip.Shuffle(len(train_set), seed=0), global_batch_size=60)
    in_order = ip.Plan(ip.Sequential(len(valid_set)), global_batch_size=60)
    trainer = lightning.Trainer(
        max_epochs=3,
        max_steps=options.max_steps,
        devices=options.devices,
        accelerator="cpu",
        callbacks=[ModelCheckpoint("checkpoints", every_n_train_steps=10, save_last=True)],
        logger=False,
        enable_progress_bar=False,
    )
    last = Path("checkpoints/last.ckpt")
    trainer.fit(
        Classifier(),
        PlanLoader(train_set, shuffled, num_workers=2, persistent_workers=True),
        PlanLoader(valid_set, in_order),
        ckpt_path=last if last.exists() else None,
    )
    trainer.print(f"{trainer.global_step} steps, {trainer.callback_metrics}")


if __name__ == "__main__":
    main()
