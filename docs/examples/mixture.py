"""Three datasets mixed 70/20/10; losses are logged by source, and shares change on resuming.

    torchrun --nproc-per-node 2 docs/examples/mixture.py --checkpoint mix.pt --max-steps 40
    torchrun --nproc-per-node 3 docs/examples/mixture.py --checkpoint mix.pt --weights 0.4 0.3 0.3

The second run resumes with other ranks and other shares. Each dataset has its own epochs, and the
change doesn't restart them: no sample is read twice before all samples of its dataset have been
read.
"""

import argparse
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import ConcatDataset, Dataset, TensorDataset

import indexplan as ip
from indexplan_torch import PlanLoader

SIZES = {"web": 700, "code": 300, "books": 61}
STEPS = 100


def datasets() -> Dataset:
    """Return the datasets, one after another; each sample holds its own index."""
    torch.manual_seed(0)
    inputs = torch.randn(sum(SIZES.values()), 4)
    numbers = torch.arange(len(inputs))
    row = zip(*(column.split(list(SIZES.values())) for column in (inputs, numbers)), strict=True)
    return ConcatDataset([TensorDataset(*parts) for parts in row])


def mixture(weights: list[float], saved: dict) -> ip.Mixture:
    """Return the mixture: as it was before, and with these weights from where the run resumes."""
    if not saved:
        sources = {name: ip.Shuffle(size, seed=i) for i, (name, size) in enumerate(SIZES.items())}
        return ip.Mixture(sources, weights=dict(zip(sources, weights, strict=True)))
    order = ip.Plan.from_json(saved["plan"]).order
    cursor = saved["loader"]["cursor"]
    place = cursor["epoch"] * order.epoch_size + cursor["position"]
    return order.with_phase(place, dict(zip(order.names, weights, strict=True)))


def train(options: argparse.Namespace) -> None:
    """Train for some steps, and print what was read of each source, and its loss."""
    saved = torch.load(options.checkpoint) if options.checkpoint.exists() else {}
    plan = ip.Plan(mixture(options.weights, saved), global_batch_size=12)
    loader = PlanLoader(datasets(), plan, num_workers=1)
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    parts = {"loader": loader, "model": model.module, "optimizer": optimizer}
    done = saved.get("done", 0)
    for name, part in parts.items():
        if saved:
            part.load_state_dict(saved[name])
    if dist.get_rank() == 0:
        print(f"{dist.get_world_size()} ranks start after {done} steps")

    for inputs, numbers in loader:
        losses = mse_loss(model(inputs), inputs.sum(1, keepdim=True), reduction="none")[:, 0]
        optimizer.zero_grad()
        (losses.sum() * dist.get_world_size() / loader.step_size).backward()
        optimizer.step()
        done += 1
        log(loader, losses.detach(), numbers, done)
        if done == options.max_steps:
            break
    if dist.get_rank() == 0:
        state = {name: part.state_dict() for name, part in parts.items()}
        torch.save(
            {**state, "plan": plan.to_json(), "done": done},
            new := options.checkpoint.with_suffix(".new"),
        )
        new.replace(options.checkpoint)  # whole, even if the run is killed


def log(loader: PlanLoader, losses: torch.Tensor, numbers: torch.Tensor, done: int) -> None:
    """Print how many samples of each source a step had over all ranks, and their mean loss."""
    groups = torch.from_numpy(loader.groups)
    sums = torch.zeros(len(SIZES), 2)
    sums.index_add_(0, groups, torch.stack([torch.ones_like(losses), losses], 1))
    dist.all_reduce(sums)
    read = [None] * dist.get_world_size()
    dist.all_gather_object(read, numbers.tolist())
    if dist.get_rank() == 0:
        words = ", ".join(
            f"{name} {int(count)} of {share:.0%} at loss {total / max(count, 1):.3f}"
            for (name, share), (count, total) in zip(
                loader.shares.items(), sums.tolist(), strict=True
            )
        )
        print(f"step {done}: {words}; {sorted(each for some in read for each in some)}")


def main() -> None:
    """Set up the ranks, and train on all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--max-steps", type=int, default=STEPS)
    parser.add_argument("--weights", type=float, nargs=3, default=[0.7, 0.2, 0.1])
    dist.init_process_group("gloo")
    train(parser.parse_args())  # its model must be gone before its group
    dist.barrier()  # all ranks leave together
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
