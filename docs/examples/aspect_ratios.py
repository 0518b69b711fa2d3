"""Images of several shapes, in batches of one shape; stopped on two ranks, resumed on three.

    torchrun --nproc-per-node 2 docs/examples/aspect_ratios.py --checkpoint arb.pt --max-steps 20
    torchrun --nproc-per-node 3 docs/examples/aspect_ratios.py --checkpoint arb.pt

Each batch holds images of one shape, and more of them if they are small. Every image is read, even
the last few of a rare shape. Each image counts the same in the loss, so training on any number of
ranks gives the same result as one rank.
"""

import argparse
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import Dataset, default_collate

import indexplan as ip
from indexplan_torch import Bins, PlanLoader

SHAPES = [(16, 16), (24, 12), (12, 24), (32, 32)]
IN_A_BATCH = {0: 8, 1: 8, 2: 8, 3: 2}
NUM, CLASSES, EPOCHS = 601, 3, 2


class Images(Dataset):
    """Images of stripes; the direction of the stripes is to be predicted."""

    def __init__(self, shapes: np.ndarray) -> None:
        self.shapes = shapes

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.shapes)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int, int]:
        """Return an image, its class, and its number."""
        height, width = SHAPES[self.shapes[index]]
        random = torch.Generator().manual_seed(index)
        noise = torch.randn(1, height, width, generator=random, dtype=torch.float64)
        rows, columns = torch.arange(height)[:, None], torch.arange(width)
        stripes = [rows + 0 * columns, columns + 0 * rows, rows + columns][index % CLASSES]
        return noise + (stripes % 4 < 2), index % CLASSES, index


def train(options: argparse.Namespace) -> None:
    """Train the rest of the epochs, or some steps of them."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    shapes = np.random.default_rng(0).choice(len(SHAPES), NUM, p=[0.6, 0.2, 0.15, 0.05])
    plan = ip.Plan(ip.Grouped(shapes, IN_A_BATCH, seed=1), global_batch_size=6)
    # a bin is made one batch; a rank's of a step come as a list of these
    bins_of = Bins(Images(shapes), join=default_collate)
    loader = PlanLoader(bins_of, plan, num_workers=1, collate_fn=list)
    torch.manual_seed(0)
    layers = nn.Conv2d(1, 8, 5), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    model = DistributedDataParallel(nn.Sequential(*layers, nn.Linear(8, CLASSES)).double())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    parts = {"loader": loader, "model": model.module, "optimizer": optimizer}
    times = torch.zeros(EPOCHS, NUM, dtype=torch.int64)  # how often each was read
    if options.checkpoint.exists():
        saved = torch.load(options.checkpoint)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        times = saved["times"]

    start = loader.cursor
    if rank == 0:
        print(f"{world_size} ranks start at epoch {start.epoch}, step {start.step}")
    done, here = 0, torch.zeros_like(times)
    for epoch in range(start.epoch, EPOCHS):
        loader.set_epoch(epoch)
        for batches in loader:
            optimizer.zero_grad()
            for i, (images, labels, numbers) in enumerate(batches, 1):
                with nullcontext() if i == len(batches) else model.no_sync():
                    loss = cross_entropy(model(images), labels, reduction="sum")
                    (loss * world_size / loader.step_total()).backward()  # a mean over images
                here[epoch, numbers] += 1
            optimizer.step()
            done += 1
            if done == options.max_steps:
                break
        if rank == 0:
            read = [f"{len(images)} of {tuple(images.shape[2:])}" for images, _, _ in batches]
            print(f"epoch {epoch}, after {done} steps: rank 0 read {', '.join(read)}")
        if done == options.max_steps:
            break

    dist.all_reduce(here)
    times += here
    if rank == 0:
        state = {name: part.state_dict() for name, part in parts.items()}
        torch.save({**state, "times": times}, new := options.checkpoint.with_suffix(".new"))
        new.replace(options.checkpoint)  # whole, even if the run is killed
        for epoch in range(EPOCHS):
            print(f"epoch {epoch}: {times[epoch].eq(1).sum()} of {NUM} images once")


def main() -> None:
    """Set up the ranks, and train on all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--max-steps", type=int, help="stop after this many steps")
    dist.init_process_group("gloo")
    train(parser.parse_args())  # its model must be gone before its group
    dist.barrier()  # all ranks leave together
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
