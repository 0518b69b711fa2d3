"""Train on shards in an object store: each node fetches its own, before the steps that need them.

    indexplan shards "s3://bucket/*.parquet" --json > shards.json
    python docs/examples/s3_shards.py "s3://bucket/*.parquet" --traffic 64
    torchrun --nproc-per-node 2 docs/examples/s3_shards.py "s3://bucket/*.parquet" --max-steps 9
    torchrun --nproc-per-node 3 docs/examples/s3_shards.py "s3://bucket/*.parquet"

The second line only prints what the nodes would download in a run of 64 ranks, 8 on each node.
"""

import argparse
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import indexplan as ip
from indexplan_torch import PlanLoader, ShardedDataset, open_parquet

CACHE_DIR, CACHE_BYTES = "cache", 100 * 2**30  # on a disk of each node
CHECKPOINT = Path("s3.pt")


def train(shards: ip.Shards, plan: ip.Plan, max_steps: int | None) -> None:
    """Train up to a step, from the checkpoint if there is one."""
    dataset = ShardedDataset(shards, open_parquet, cache_dir=CACHE_DIR, cache_bytes=CACHE_BYTES)
    loader = PlanLoader(dataset, plan, num_workers=2)
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(1, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    parts = {"loader": loader, "model": model.module, "optimizer": optimizer}
    saved = torch.load(CHECKPOINT) if CHECKPOINT.exists() else {"done": 0}
    for name, part in parts.items():
        if name in saved:
            part.load_state_dict(saved[name])

    done, num_read = saved["done"], torch.zeros(1)
    for rows in loader:  # a dict of a tensor for each column
        x = rows["x"].float()[:, None]
        loss = nn.functional.mse_loss(model(x), 2 * x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        done += 1
        num_read += len(x)
        if done == max_steps:
            break
    dist.all_reduce(num_read)
    if dist.get_rank() == 0:
        print(f"{dist.get_world_size()} ranks, up to step {done}: {int(num_read)} samples")
        state = {name: part.state_dict() for name, part in parts.items()}
        torch.save({**state, "done": done}, new := CHECKPOINT.with_suffix(".new"))
        new.replace(CHECKPOINT)  # whole, even if the run is killed


def main() -> None:
    """Make the plan, then print what it would download, or train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="where the shards are, as `indexplan shards` was told")
    parser.add_argument("--traffic", type=int, help="only count what this many ranks download")
    parser.add_argument("--max-steps", type=int, help="stop after this many steps")
    options = parser.parse_args()

    shards = ip.Shards.from_json(Path("shards.json").read_text(), path=options.data)
    order = ip.ShardShuffle(shards, lanes=8, stripe=96, seed=7)
    plan = ip.Plan(order, global_batch_size=48, remainder="drop")
    if options.traffic:
        print(ip.traffic(plan.replace(world_size=options.traffic), ranks_per_node=8))
        return
    dist.init_process_group("gloo")
    train(shards, plan, options.max_steps)
    dist.barrier()  # all ranks leave together
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
