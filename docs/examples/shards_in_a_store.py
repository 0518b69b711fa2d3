"""Training on shards in an object store: two nodes of two ranks, resumed on one node of three.

On each of two nodes, with --node-rank 0 and 1, and then on one:

    torchrun --nnodes 2 --node-rank 0 --nproc-per-node 2 --master-addr ... --master-port 29500 \
        docs/examples/shards_in_a_store.py --store s3://bucket/data --cache-dir /local/cache \
        --checkpoint store.pt --max-steps 30
    torchrun --nproc-per-node 3 docs/examples/shards_in_a_store.py --store s3://bucket/data \
        --cache-dir /local/cache --checkpoint store.pt

Each node downloads its own part of the dataset, into a folder with room for a fraction of it. The
resumed run uses what is already there. The checkpoint must be on shared storage.
"""

import argparse
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel

import indexplan as ip
from indexplan_torch import PlanLoader, ShardedDataset, open_parquet

GLOBAL_BATCH = 24  # which 4 and 3 ranks divide


def shards_of(store: str) -> ip.Shards:
    """Count the samples of each file, on one rank: the others need not ask the store."""
    found = [ip.shard_sizes(f"{store}/*.parquet", whole_files=True).to_json()]
    found = found if dist.get_rank() == 0 else [""]
    dist.broadcast_object_list(found)
    return ip.Shards.from_json(found[0], path=store)


def train(options: argparse.Namespace) -> None:
    """Train the rest of an epoch, or some steps of it."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    shards = shards_of(options.store)
    order = ip.ShardShuffle(shards, lanes=8, stripe=8 * GLOBAL_BATCH, seed=1)
    plan = ip.Plan(order, global_batch_size=GLOBAL_BATCH)
    room = sum(shards.num_bytes) // options.part
    rows_of = partial(open_parquet, columns=["id", "x", "y"])
    dataset = ShardedDataset(shards, rows_of, cache_dir=options.cache_dir, cache_bytes=room)
    loader = PlanLoader(dataset, plan, num_workers=1)
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    parts = {"loader": loader, "model": model.module, "optimizer": optimizer}
    times = torch.zeros(len(dataset), dtype=torch.int64)  # how often each sample was read
    if options.checkpoint.exists():
        saved = torch.load(options.checkpoint)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
        times = saved["times"]

    here = torch.zeros_like(times)
    for step, batch in enumerate(loader, 1):
        x, y = batch["x"].float(), batch["y"].float()
        loss = mse_loss(model(x[:, None])[:, 0], y, reduction="sum")
        optimizer.zero_grad()
        (loss * world_size / loader.step_size).backward()  # the mean over all ranks
        optimizer.step()
        here[batch["id"]] += 1
        if step == options.max_steps:
            break

    dist.all_reduce(here)
    times += here
    reports = [None] * world_size
    dist.all_gather_object(reports, (options.cache_dir, dataset.report()))
    if rank == 0:
        state = {name: part.state_dict() for name, part in parts.items()}
        torch.save({**state, "times": times}, new := options.checkpoint.with_suffix(".new"))
        new.replace(options.checkpoint)  # whole, even if the run is killed
        for node in sorted({node for node, _ in reports}):
            fetched = [report.num_samples for name, report in reports if name == node]
            print(f"{Path(node).name}: {len(fetched)} ranks downloaded {sum(fetched)} samples")
        print(f"{world_size} ranks have read {times.sum()} of {len(times)} samples")
        print(f"each was read {times.min()} to {times.max()} times")


def main() -> None:
    """Set up the ranks, and train on all of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", required=True, help="folder of Parquet files with id, x and y")
    parser.add_argument("--cache-dir", required=True, help="a folder on a disk of the node")
    parser.add_argument("--part", type=int, default=2, help="of the dataset, the cache has room")
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--max-steps", type=int, help="stop after this many steps")
    dist.init_process_group("gloo")
    train(parser.parse_args())  # its model must be gone before its group
    dist.barrier()  # all ranks leave together
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
