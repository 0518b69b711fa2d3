"""One data order for all ranks, and a random stream for augmentation for each rank and worker.

    torchrun --nproc-per-node 2 docs/examples/augmentation_streams.py

The plan decides the order of samples, with any number of workers. In each worker, `random`, NumPy
and torch are seeded with a hash of (seed, pass, rank, worker), not with a sum, so no two streams
are the same. `torch.initial_seed()` returns the seed of a process.
"""

import argparse

import torch
import torch.distributed as dist
from torch.utils.data import Dataset

import indexplan as ip
from indexplan_torch import PlanLoader


class Noisy(Dataset):
    """A dataset whose samples are augmented with noise."""

    def __len__(self) -> int:
        """Return the number of samples."""
        return 24

    def __getitem__(self, index: int) -> tuple[int, float, str]:
        """Return which sample it is, its noise, and the seed that the noise came from."""
        return index, torch.rand(()).item(), str(torch.initial_seed())


def main() -> None:
    """Read two epochs, and print what every rank and worker drew."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--num-workers", type=int, default=2)
    options = parser.parse_args()

    dist.init_process_group("gloo")
    plan = ip.Plan(ip.Shuffle(24, seed=7), batch_size=3)
    # Workers are seeded by default: nothing to pass.
    loader = PlanLoader(Noisy(), plan, num_workers=options.num_workers)
    drawn = []
    for epoch in range(2):
        loader.set_epoch(epoch)
        if not options.num_workers:
            loader.worker_init_fn(0)  # the main process augments, so it is seeded as worker 0
        for step, (indices, noise, streams) in enumerate(loader):
            drawn.append((epoch, step, indices.tolist(), noise.tolist(), streams[0]))

    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, drawn)
    if dist.get_rank() == 0:
        for rank, batches in enumerate(everyone):
            for epoch, step, indices, noise, stream in batches:
                print(f"epoch {epoch} step {step} rank {rank} reads {indices}")
                print(f"    noise {[round(value, 4) for value in noise]} from seed {stream}")
        values = [value for batches in everyone for batch in batches for value in batch[3]]
        print(f"{len(set(values))} different values of noise in {len(values)} samples")
    dist.barrier()  # all ranks leave together
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
