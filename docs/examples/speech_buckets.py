"""Utterances in batches with a budget of frames; stopped on two ranks, resumed on three.

    torchrun --nproc-per-node 2 docs/examples/speech_buckets.py --checkpoint speech.pt --max-steps 9
    torchrun --nproc-per-node 3 docs/examples/speech_buckets.py --checkpoint speech.pt

In a step, ranks read batches of different sizes and lengths. Each frame still counts the same: the
loss is divided by the frames of all ranks, which the loader knows. So training on any number of
ranks gives the same result as one process, up to rounding.
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
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import Dataset

import indexplan as ip
from indexplan_torch import Bins, PlanLoader

NUM, FEATURES, CLASSES, EPOCHS = 500, 6, 4, 2
PADDING = -100  # a label that a loss leaves out


def utterance_lengths() -> np.ndarray:
    """Return the frames of each utterance: short commands, and long sentences."""
    rng = np.random.default_rng(0)
    long = rng.random(NUM) < 0.4
    frames = np.where(long, rng.normal(120, 30, NUM), rng.normal(30, 8, NUM))
    return frames.clip(5, 200).astype(np.int64)


class Speech(Dataset):
    """Frames of features, with a label for each frame."""

    def __init__(self, lengths: np.ndarray) -> None:
        self.lengths = lengths

    def __len__(self) -> int:
        """Return the number of utterances."""
        return len(self.lengths)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, int]:
        """Return an utterance's frames, their labels, and its number."""
        random = torch.Generator().manual_seed(index)
        frames = torch.randn(self.lengths[index], FEATURES, generator=random, dtype=torch.float64)
        return frames, frames[:, :CLASSES].cumsum(0).argmax(1), index


def padded(samples: list) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return a bin's frames and labels, padded; how many each utterance has; their numbers."""
    frames, labels, numbers = zip(*samples, strict=True)
    counts = torch.tensor([len(each) for each in frames])
    row = pad_sequence(labels, batch_first=True, padding_value=PADDING)
    return pad_sequence(frames, batch_first=True), row, counts, torch.tensor(numbers)


class Model(nn.Module):
    """A recurrent network that labels each frame."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.GRU(FEATURES, 12, batch_first=True)
        self.head = nn.Linear(12, CLASSES)

    def forward(self, frames: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        """Return logits, of shape (batch, frames, classes)."""
        packed = pack_padded_sequence(frames, counts, batch_first=True, enforce_sorted=False)
        return self.head(pad_packed_sequence(self.mix(packed)[0], batch_first=True)[0])


def train(options: argparse.Namespace) -> None:
    """Train the rest of the epochs, or some steps of them."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    lengths = utterance_lengths()
    order = ip.TokenBudget(lengths, max_tokens=800, num_buckets=12, seed=1)
    plan = ip.Plan(order, global_batch_size=6)  # bins of all ranks
    # a bin is made one padded batch; a rank's bins of a step come as a list of these
    loader = PlanLoader(Bins(Speech(lengths), join=padded), plan, num_workers=1, collate_fn=list)
    torch.manual_seed(0)
    model = DistributedDataParallel(Model().double())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
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
    seen = torch.zeros(2, dtype=torch.int64)  # frames, and what they are padded to
    for epoch in range(start.epoch, EPOCHS):
        loader.set_epoch(epoch)
        for bins in loader:
            optimizer.zero_grad()
            for i, (frames, labels, counts, numbers) in enumerate(bins, 1):
                with nullcontext() if i == len(bins) else model.no_sync():
                    logits = model(frames, counts).flatten(0, 1)
                    loss = cross_entropy(logits, labels.flatten(), reduction="sum")
                    (loss * world_size / loader.step_total(lengths)).backward()
                here[epoch, numbers] += 1
                seen += torch.tensor([counts.sum(), labels.numel()])
            optimizer.step()
            done += 1
            if done == options.max_steps:
                break
        if done == options.max_steps:
            break

    for sums in (here, seen):
        dist.all_reduce(sums)
    times += here
    if rank == 0:
        state = {name: part.state_dict() for name, part in parts.items()}
        torch.save({**state, "times": times}, new := options.checkpoint.with_suffix(".new"))
        new.replace(options.checkpoint)  # whole, even if the run is killed
        print(f"{done} steps, {1 - seen[0] / seen[1]:.1%} padding")
        for epoch in range(EPOCHS):
            print(f"epoch {epoch}: {times[epoch].eq(1).sum()} of {NUM} utterances once")


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
