"""Groups of a torchft run, each a process that this one forks on request, as importing takes long.

It reads lines `start NAME QUORUM LIGHTHOUSE LOG SAMPLES` and prints the number of each process. A
group writes to its log what it reads in each step before it sums up gradients with the others, and
then whether the step counts: `["read", quorum, step, world, rank, rows]`, `["counts", quorum,
step]`.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch.distributed import TCPStore
from torchft import Manager, Optimizer, ProcessGroupGloo

import indexplan as ip
from indexplan_torch.live import Live, LiveLoader

BATCH = 60
STEP_SECONDS = 0.02  # that a forward pass takes, so that kills come in the middle of steps


class Group:
    """A group of one rank, with a model whose weights all groups have to agree on."""

    def __init__(self, name: str, quorum: str, lighthouse: str, log: str, samples: int) -> None:
        self.store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        self.plan = ip.Plan(ip.Shuffle(samples, seed=5), global_batch_size=BATCH)
        self.log = Path(log).open("a", buffering=1)  # noqa: SIM115 (until it is killed)
        self.manager = Manager(
            pg=ProcessGroupGloo(timeout=timedelta(seconds=5)),
            load_state_dict=lambda state: (
                self.model.load_state_dict(state["model"]),
                self.optimizer.load_state_dict(state["optimizer"]),
            ),
            state_dict=lambda: {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
            },
            min_replica_size=1,
            use_async_quorum=quorum == "async",
            replica_id=name,
            rank=0,
            world_size=1,
            store_addr="127.0.0.1",
            store_port=self.store.port,
            lighthouse_addr=lighthouse,
            timeout=timedelta(seconds=10),
            quorum_timeout=timedelta(seconds=60),
            connect_timeout=timedelta(seconds=10),
            hostname="127.0.0.1",
        )
        torch.manual_seed(os.getpid())  # so that weights are equal only if they are sent
        self.model = torch.nn.Linear(1, 1)
        parameters = self.model.parameters()
        self.optimizer = Optimizer(self.manager, torch.optim.SGD(parameters, lr=1e-9))

    def write(self, *line: Any) -> None:
        self.log.write(f"{json.dumps(line)}\n")

    def read(self, world: int, rank: int, rows: list[int]) -> None:
        """Write what is read in this step, if it has a share in it."""
        quorum, step = self.manager._quorum_id, self.manager.current_step()
        self.now = quorum, step
        if self.manager.is_participating():
            self.write("read", quorum, step, world, rank, rows)

    def loss(self, rows: torch.Tensor) -> Any:
        time.sleep(STEP_SECONDS)
        return self.model(rows[:, None].float()).square().mean()

    def backward(self, loss: Any) -> None:
        """Sum gradients up; torchft's DistributedDataParallel fails where a group has been lost."""
        loss.backward()
        for parameter in self.model.parameters():
            self.manager.allreduce(parameter.grad).wait()

    def through_loader(self) -> None:
        """Train as torchft's train_ddp does."""
        loader = LiveLoader(torch.arange(self.plan.order.num_samples), self.plan, self.manager)
        for rows in loader:
            self.read(*loader._live.world(), rows.tolist())
            self.optimizer.zero_grad()
            self.backward(self.loss(rows))
            before = self.manager.current_step()
            self.optimizer.step()
            if self.manager.current_step() > before:
                self.write("counts", *self.now)

    def by_hand(self) -> None:
        """Train in a loop of its own, which draws before it knows the quorum."""
        live = Live(self.plan, self.manager)
        while True:
            self.optimizer.zero_grad()
            rows = torch.from_numpy(live.begin())
            loss = self.loss(rows)
            if (instead := live.settled()) is not None:
                rows = torch.from_numpy(instead)
                loss = self.loss(rows)
            self.read(*live.world(), rows.tolist())
            self.backward(loss)
            committed = self.manager.should_commit()
            if committed:
                self.optimizer.optim.step()
                self.write("counts", *self.now)
            live.commit(committed)


def main() -> None:
    """Fork a group for each line."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # those that are killed leave nothing behind
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        _, name, quorum, lighthouse, log, samples = line.split()
        if child := os.fork():
            sys.stdout.write(f"{child}\n")
            sys.stdout.flush()
            continue
        group = Group(name, quorum, lighthouse, log, int(samples))
        group.through_loader() if quorum == "sync" or name.endswith("0") else group.by_hand()


if __name__ == "__main__":
    main()
