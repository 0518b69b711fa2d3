"""40 sub-epochs an epoch, each validated and checkpointed; stopped on two ranks, resumed on three.

    torchrun --nproc-per-node 2 docs/examples/sub_epochs.py --checkpoint sub.pt --max-steps 70
    torchrun --nproc-per-node 3 docs/examples/sub_epochs.py --checkpoint sub.pt

The first run stops in the middle of a sub-epoch. The second resumes there on other ranks, and
at the end of the epoch every sample has been read exactly once.
"""

import argparse
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import TensorDataset

import indexplan as ip
from indexplan_torch import PlanLoader

NUM_SAMPLES = 1009  # a prime: neither ranks nor sub-epochs nor batches divide it
SUB_EPOCHS = 40


class Run:
    """A model in training, and how often each sample was read."""

    stateful = ("net", "optimizer", "loader")  # the loader's state is the same on every rank

    def __init__(self, checkpoint: Path) -> None:
        torch.manual_seed(0)
        inputs = torch.randn(NUM_SAMPLES + 101, 4)
        data = inputs, inputs.sum(1, keepdim=True), torch.arange(len(inputs))
        train, test = zip(*(column.split(NUM_SAMPLES) for column in data), strict=True)
        plan = ip.Plan(ip.Shuffle(NUM_SAMPLES, seed=1), batch_size=4, sub_epochs=SUB_EPOCHS)
        # Persistent workers are forked once, before the backward pass starts threads.
        workers = {"num_workers": 1, "persistent_workers": True}
        self.loader = PlanLoader(TensorDataset(*train), plan, **workers)
        plan = ip.Plan(ip.Sequential(101), batch_size=20)
        self.test_loader = PlanLoader(TensorDataset(*test), plan)
        self.net = nn.Linear(4, 1)
        self.model = DistributedDataParallel(self.net)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.times_read = torch.zeros(NUM_SAMPLES, dtype=torch.int64)
        self.read_here = torch.zeros_like(self.times_read)  # by this rank, since the last save
        self.checkpoint = checkpoint
        if checkpoint.exists():
            saved = torch.load(checkpoint)
            self.times_read = saved["times_read"]
            for name in self.stateful:
                getattr(self, name).load_state_dict(saved[name])

    def step(self, inputs: torch.Tensor, targets: torch.Tensor, indices: torch.Tensor) -> None:
        """Train on a batch."""
        self.optimizer.zero_grad()
        mse_loss(self.model(inputs), targets).backward()
        self.optimizer.step()
        self.read_here[indices] += 1

    def save(self) -> None:
        """Write a checkpoint that any number of ranks can resume from."""
        dist.all_reduce(self.read_here)
        self.times_read += self.read_here
        self.read_here.zero_()
        if dist.get_rank() == 0:
            saved = {name: getattr(self, name).state_dict() for name in self.stateful}
            saved["times_read"] = self.times_read
            torch.save(saved, new := self.checkpoint.with_suffix(".new"))
            new.replace(self.checkpoint)  # whenever the run is killed, one of the two is whole

    @torch.no_grad()
    def validate(self) -> tuple[float, int]:
        """Return the exact loss over the test set, and the number of samples it is of."""
        sums = torch.zeros(2)
        for inputs, targets, _ in self.test_loader:
            loss = mse_loss(self.net(inputs), targets, reduction="sum")
            sums += torch.tensor([loss, len(inputs)])
        dist.all_reduce(sums)
        return (sums[0] / sums[1]).item(), int(sums[1])


def train(options: argparse.Namespace) -> None:
    """Train the rest of the epoch, or some steps of it."""

    def say(text: str) -> None:
        if dist.get_rank() == 0:
            print(text)

    run = Run(options.checkpoint)
    where = run.loader.cursor
    say(f"{dist.get_world_size()} ranks start at sub-epoch {where.sub_epoch}, step {where.step}")
    steps = 0
    for sub_epoch in range(where.sub_epoch, SUB_EPOCHS):
        run.loader.set_epoch(sub_epoch)  # of epoch 0
        for batch in run.loader:
            run.step(*batch)
            steps += 1
            if steps == options.max_steps:
                break
        run.save()
        if steps == options.max_steps:
            say(f"stopped in sub-epoch {sub_epoch}, with {run.times_read.sum()} samples read")
            break
        loss, count = run.validate()
        read = f"{len(run.loader)} steps, {run.times_read.sum()} samples read so far"
        say(f"sub-epoch {sub_epoch}: {read}, loss {loss:.3f} over {count} test samples")
    say(f"each sample was read {run.times_read.min()} to {run.times_read.max()} times")


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
