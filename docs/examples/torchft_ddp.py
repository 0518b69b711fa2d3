"""torchft's train_ddp on made-up data, with two changed lines: groups come and go, samples do not.

Start torchft's lighthouse, and each group with its own command, as often as you like:

    torchft_lighthouse --min_replicas 1 --bind 127.0.0.1:29510
    export TORCHFT_LIGHTHOUSE=http://127.0.0.1:29510
    REPLICA_GROUP_ID=0 torchrun --standalone --nproc-per-node 1 docs/examples/torchft_ddp.py
    REPLICA_GROUP_ID=1 torchrun --standalone --nproc-per-node 1 docs/examples/torchft_ddp.py
"""

import os
from datetime import timedelta
from typing import Any

import torch
from torch import nn, optim
from torchft import DistributedDataParallel, Manager, Optimizer, ProcessGroupGloo

import indexplan as ip
from indexplan_torch.live import LiveLoader


def main() -> None:
    """Train one group, of one process."""
    drawn = torch.Generator().manual_seed(0)
    inputs = torch.randn(2000, 8, generator=drawn)
    trainset = torch.utils.data.TensorDataset(inputs, (inputs.sum(1) > 0).long())

    def load_state_dict(state: dict[str, Any]) -> None:
        m.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optim"])

    def state_dict() -> dict[str, Any]:
        return {"model": m.state_dict(), "optim": optimizer.state_dict()}

    manager = Manager(
        pg=ProcessGroupGloo(timeout=timedelta(seconds=60)),
        min_replica_size=1,
        load_state_dict=load_state_dict,
        state_dict=state_dict,
        replica_id=f"train_ddp_{os.environ.get('REPLICA_GROUP_ID', '0')}",
        timeout=timedelta(seconds=60),
        hostname="127.0.0.1",  # of this machine; leave it out to use its name
    )
    # In place of torchft's DistributedSampler and a StatefulDataLoader:
    plan = ip.Plan(ip.Shuffle(len(trainset), seed=0), global_batch_size=128)
    trainloader = LiveLoader(trainset, plan, manager, num_epochs=3, num_workers=2)

    m = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
    m = DistributedDataParallel(manager, m)
    optimizer = Optimizer(manager, optim.AdamW(m.parameters(), lr=1e-2))
    criterion = nn.CrossEntropyLoss()

    for features, labels in trainloader:
        optimizer.zero_grad()
        loss = criterion(m(features), labels)
        loss.backward()
        optimizer.step()
        if manager.current_step() % 10 == 0:
            print(f"[{manager.current_step()}] epoch {trainloader.epoch}, loss {loss.item():.3f}")
    print(f"read {trainloader.epoch} epochs in {manager.current_step() - 1} steps", flush=True)
    manager.shutdown(wait=False)


if __name__ == "__main__":
    main()
