"""Pre-training on windows of a file of tokens; stopped on two ranks, resumed on three.

    torchrun --nproc-per-node 2 docs/examples/token_windows.py --checkpoint win.pt --max-steps 15
    torchrun --nproc-per-node 3 docs/examples/token_windows.py --checkpoint win.pt

The tokens are in one file of uint16, the format that nanoGPT writes. Each epoch cuts them in
different places and predicts each token of an interval once, on any number of ranks. The run checks
this at its end.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import Dataset

import indexplan as ip
from indexplan_torch import PlanLoader

NUM_TOKENS, VOCABULARY, LENGTH, EPOCHS = 10_007, 50, 32, 2


class Windows(Dataset):
    """Windows of a file of tokens; a window may begin at any token."""

    def __init__(self, path: Path) -> None:
        self.tokens = np.memmap(path, np.uint16, "r")

    def __len__(self) -> int:
        """Return the number of tokens; a window may begin at any of them."""
        return len(self.tokens)

    def __getitem__(self, start: int) -> tuple[torch.Tensor, torch.Tensor, int]:
        """Return a window's inputs, its targets, which are one token further on, and its start."""
        window = torch.from_numpy(self.tokens[start : start + LENGTH + 1].astype(np.int64))
        return window[:-1], window[1:], start


class Model(nn.Module):
    """A recurrent network that predicts the next token."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, 16)
        self.mix = nn.GRU(16, 16, batch_first=True)
        self.head = nn.Linear(16, VOCABULARY)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return logits, of shape (batch, length, vocabulary)."""
        return self.head(self.mix(self.embed(inputs))[0])


def prepare(path: Path) -> None:
    """Write a file of tokens that can be learned: each is the one before, plus a few."""
    steps = np.random.default_rng(0).integers(1, 4, NUM_TOKENS)
    (np.cumsum(steps) % VOCABULARY).astype(np.uint16).tofile(path)


def train(options: argparse.Namespace) -> None:
    """Train the rest of the epochs, or some steps of them."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    path = options.checkpoint.with_name("tokens.bin")
    if rank == 0 and not path.exists():
        prepare(path)
    dist.barrier()
    order = ip.TokenWindows(NUM_TOKENS, LENGTH, seed=1)
    loader = PlanLoader(Windows(path), ip.Plan(order, global_batch_size=12), num_workers=1)
    torch.manual_seed(0)
    model = DistributedDataParallel(Model())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    parts = {"loader": loader, "model": model.module, "optimizer": optimizer}
    times = torch.zeros(EPOCHS, NUM_TOKENS, dtype=torch.int64)  # how often each was a target
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
        for inputs, targets, starts in loader:
            loss = cross_entropy(model(inputs).flatten(0, 1), targets.flatten(), reduction="sum")
            optimizer.zero_grad()
            (loss * world_size / (loader.step_size * LENGTH)).backward()  # the mean over all ranks
            optimizer.step()
            here[epoch, starts[:, None] + order.overlap + torch.arange(LENGTH)] += 1
            done += 1
            if done == options.max_steps:
                break
        if rank == 0:
            print(f"epoch {epoch}: loss {loss.item() / targets.numel():.2f} after {done} steps")
        if done == options.max_steps:
            break

    dist.all_reduce(here)
    times += here
    if rank == 0:
        state = {name: part.state_dict() for name, part in parts.items()}
        torch.save({**state, "times": times}, new := options.checkpoint.with_suffix(".new"))
        new.replace(options.checkpoint)  # whole, even if the run is killed
        for epoch in range(EPOCHS):
            aim, read = order.targets(epoch), times[epoch]
            once = read[aim.start : aim.stop].eq(1).sum()
            rest = read.sum() - once
            print(f"epoch {epoch}: {once} of {len(aim)} targets once; {rest} other reads")


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
