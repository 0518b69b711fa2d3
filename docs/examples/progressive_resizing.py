"""Progressive resizing in Lightning: batch size and resolution change, also inside an epoch.

    torchrun --nproc-per-node 2 docs/examples/progressive_resizing.py

The plan holds the schedule. Workers get each sample's index together with its step's resolution.
The callback gives Lightning the number of steps of the next epoch, so no step is cut off and
validation runs at the epoch's end. You never rebuild the loader.
"""

import lightning
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy, interpolate
from torch.utils.data import Dataset

import indexplan as ip
from indexplan_torch import About, PlanLoader
from indexplan_torch.lightning import RefreshStepCounts

PHASES = [
    ip.Phase(at=0, size=32, parameters={"resolution": 8}),
    ip.Phase(at=450, size=16, parameters={"resolution": 12}),  # in the middle of epoch 1
    ip.Phase(at=(2, 0), size=8, parameters={"resolution": 16}),
    ip.Phase(at=(3, 0), size=24, parameters={"resolution": 16}),
]
PLAN = ip.Plan(ip.Shuffle(300, seed=0), batch_size=PHASES)
VALIDATION = ip.Plan(
    ip.Sequential(101), batch_size=[ip.Phase(size=20, parameters={"resolution": 16})]
)


class Digits(Dataset):
    """Images of digits, in the resolution that the plan asks for."""

    def __init__(self, start: int, stop: int) -> None:
        images, labels = load_digits(return_X_y=True)
        self.images = torch.tensor(images[start:stop] / 16).float().view(-1, 1, 8, 8)
        self.labels = torch.tensor(labels[start:stop])

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.labels)

    def __getitem__(self, item: tuple[int, int]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return an image and its label."""
        index, resolution = item
        return interpolate(self.images[[index]], (resolution, resolution))[0], self.labels[index]


class Classifier(lightning.LightningModule):
    """A small convolutional net, for images of any resolution."""

    def __init__(self) -> None:
        super().__init__()
        pool = nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten())
        self.net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), pool, nn.Linear(128, 10))
        self.pixels = 0
        self.counts = torch.zeros(2)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the logits of some images."""
        return self.net(images)

    def training_step(self, batch: list[torch.Tensor], step: int) -> torch.Tensor:
        """Return the loss of a batch."""
        images, labels = batch
        pixels = images.shape[-1]
        if step == 0 or pixels != self.pixels:
            self.pixels = pixels
            said = f"{len(images)} images a rank, {pixels} x {pixels} pixels"
            self.print(f"epoch {self.current_epoch} from step {step}: {said}")
        return cross_entropy(self(images), labels)

    def on_validation_epoch_start(self) -> None:
        """Start counting."""
        self.counts = torch.zeros(2)

    def validation_step(self, batch: list[torch.Tensor], _: int) -> None:
        """Count the right answers."""
        images, labels = batch
        right = (self(images).argmax(1) == labels).sum()
        self.counts += torch.tensor([right, len(labels)])

    def on_validation_epoch_end(self) -> None:
        """Print where the run stands, and the exact accuracy."""
        right, count = self.all_gather(self.counts).sum(0).int().tolist()
        self.print(f"after {self.trainer.global_step} steps: {right} of {count} right")

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return what trains the net."""
        return torch.optim.SGD(self.parameters(), lr=0.1)


def main() -> None:
    """Train for four epochs, validating after each."""
    lightning.seed_everything(0)

    def item(index: int, about: About) -> tuple[int, int]:
        return index, about["resolution"]

    train = PlanLoader(Digits(0, 300), PLAN, item=item, num_workers=2, persistent_workers=True)
    validation = PlanLoader(Digits(300, 401), VALIDATION, item=item)
    trainer = lightning.Trainer(
        max_epochs=4,
        accelerator="cpu",
        devices=2,
        callbacks=[RefreshStepCounts()],
        num_sanity_val_steps=0,
        enable_progress_bar=False,
    )
    trainer.fit(Classifier(), train, validation)


if __name__ == "__main__":
    main()
