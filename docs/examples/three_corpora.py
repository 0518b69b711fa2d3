"""Pre-train on three files of tokens, mixed 70/20/10. Stop it any time, and start it again.

    torchrun --nproc-per-node 2 docs/examples/three_corpora.py --max-steps 40
    torchrun --nproc-per-node 3 docs/examples/three_corpora.py

Each file holds the tokens of a corpus one after another, as uint16. Missing files are made up.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import ConcatDataset, Dataset

import indexplan as ip
from indexplan_torch import PlanLoader

WEIGHTS = {"web": 0.7, "code": 0.2, "books": 0.1}
LENGTH, VOCABULARY = 128, 1000
CHECKPOINT = Path("corpora.pt")


class Windows(Dataset):
    """A file of tokens; an index is the first token of a window."""

    def __init__(self, path: str) -> None:
        self.tokens = np.memmap(path, np.uint16, "r")

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self.tokens)

    def __getitem__(self, start: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return a window's inputs and targets."""
        window = torch.from_numpy(self.tokens[start : start + LENGTH + 1].astype(np.int64))
        return window[:-1], window[1:]


def make_up_corpora() -> None:
    """Write files of random tokens; yours take their place."""
    for seed, name in enumerate(WEIGHTS):
        if not Path(f"{name}.bin").exists():
            tokens = np.random.default_rng(seed).integers(0, VOCABULARY, 100_000)
            tokens.astype(np.uint16).tofile(f"{name}.bin")


def train(max_steps: int) -> None:
    """Train up to a step, from the checkpoint if there is one."""
    corpora = {name: Windows(f"{name}.bin") for name in WEIGHTS}
    windows = {
        name: ip.TokenWindows(len(corpus), length=LENGTH, seed=seed)
        for seed, (name, corpus) in enumerate(corpora.items())
    }
    order = ip.Mixture(windows, weights=WEIGHTS)
    plan = ip.Plan(order, global_batch_size=24, remainder="drop")  # full batches only
    loader = PlanLoader(ConcatDataset(corpora.values()), plan, num_workers=1)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Embedding(VOCABULARY, 32), nn.Linear(32, VOCABULARY))
    model = DistributedDataParallel(net)
    parts = {"loader": loader, "model": net, "optimizer": torch.optim.Adam(model.parameters())}
    done, read = 0, torch.zeros(len(WEIGHTS), dtype=torch.int64)
    if CHECKPOINT.exists():
        saved = torch.load(CHECKPOINT)
        done = saved["done"]
        for name, part in parts.items():
            part.load_state_dict(saved[name])

    for inputs, targets in loader:
        loss = cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        parts["optimizer"].zero_grad()
        loss.backward()
        parts["optimizer"].step()
        done += 1
        read += torch.bincount(torch.from_numpy(loader.groups), minlength=len(WEIGHTS))
        if dist.get_rank() == 0 and done % 20 == 0:
            torch.save(
                {k: v.state_dict() for k, v in parts.items()} | {"done": done},
                new := CHECKPOINT.with_suffix(".new"),
            )
            new.replace(CHECKPOINT)  # whole, even if the run is killed
        if done == max_steps:
            break
    dist.all_reduce(read)
    if dist.get_rank() == 0:
        windows = dict(zip(WEIGHTS, read.tolist(), strict=True))
        print(f"{dist.get_world_size()} ranks, up to step {done}: {windows} windows")


def main() -> None:
    """Set up the ranks, and train on all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max-steps", type=int, default=90)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        make_up_corpora()
    dist.barrier()
    train(options.max_steps)
    dist.barrier()  # all ranks leave together
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
