"""Train a small net on scikit-learn's digits: the same result on one rank, on two and on three.

    torchrun --nproc-per-node 3 docs/examples/digits.py

A step reads 64 images, split over any number of ranks, and an epoch reads each image once. Each
loss is weighted by the size of its step, so the gradients are the same as those of one process.
"""

import argparse

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from sklearn.metrics import f1_score
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import TensorDataset

import indexplan as ip
from indexplan_torch import PlanLoader

EPOCHS = 5
NUM_TRAIN = 1400  # leaves 397 for evaluation, a prime number


def train(model: nn.Module, dataset: TensorDataset) -> float:
    """Train for some epochs; return the mean loss of the last one."""
    plan = ip.Plan(ip.Shuffle(len(dataset), seed=0), global_batch_size=64, remainder="spread")
    loader = PlanLoader(dataset, plan)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(EPOCHS):
        loader.set_epoch(epoch)
        total = torch.zeros(())
        for images, labels in loader:
            loss = cross_entropy(model(images), labels, reduction="sum")
            # DDP averages gradients over ranks; this makes it the mean over the step's images.
            weight = dist.get_world_size() / loader.step_size
            optimizer.zero_grad()
            (loss * weight).backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
    return total.item() / len(dataset)


@torch.no_grad()
def predict(model: nn.Module, dataset: TensorDataset) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the prediction for every sample, in the dataset's order, and how often it was made."""
    plan = ip.Plan(ip.Sequential(len(dataset)), batch_size=50, remainder="spread")
    predicted, times = (torch.zeros(len(dataset), dtype=torch.int64) for _ in range(2))
    for images, _, indices in PlanLoader(dataset, plan):
        predicted[indices] = model(images).argmax(1)
        times[indices] += 1
    dist.all_reduce(predicted)
    dist.all_reduce(times)
    return predicted, times


def main() -> None:
    """Train, evaluate, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", help="where to write the trained weights")
    options = parser.parse_args()

    dist.init_process_group("gloo")
    torch.set_default_dtype(torch.float64)  # so that the results agree to many digits
    torch.manual_seed(0)
    images, labels = map(torch.tensor, load_digits(return_X_y=True))
    images /= 16
    train_set = TensorDataset(images[:NUM_TRAIN], labels[:NUM_TRAIN])
    images, labels = images[NUM_TRAIN:], labels[NUM_TRAIN:]
    test_set = TensorDataset(images, labels, torch.arange(len(labels)))

    net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    loss = train(DistributedDataParallel(net), train_set)
    predicted, times = predict(net, test_set)
    if dist.get_rank() == 0:
        print(f"ranks: {dist.get_world_size()}")
        print(f"loss: {loss:.9f}")
        print(f"evaluated: {times.sum()} samples, each {times.min()} to {times.max()} times")
        print(f"right: {(predicted == labels).sum()}")
        print(f"F1: {f1_score(labels, predicted, average='macro'):.9f}")
        if options.save:
            torch.save(net.state_dict(), options.save)
    dist.barrier()  # all ranks leave together
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
