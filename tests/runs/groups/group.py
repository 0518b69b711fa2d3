"""Groups of a torchft run on this machine, started and killed one by one.

Each is a process, forked from one that has imported torchft, which takes long.

A group writes to its log what it reads in each step, before it sums up gradients with the others,
and then whether the step counts: `["read", quorum, step, world, rank, rows]`, `["counts", quorum,
step]`. Its first line is `["ready"]`, and it begins once the file `go` is there.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch.distributed import TCPStore
from torchft import Manager, Optimizer, ProcessGroupGloo
from torchft.coordination import LighthouseServer

from tests.support.forked import Forked, Forks

STEP_SECONDS = 0.02  # that a forward pass takes, so that kills come in the middle of steps
PATIENCE = 240
"""Seconds without anything new after which a run is given up."""


class Group:
    """A group of one rank, with a model whose weights all groups have to agree on."""

    def __init__(
        self,
        number: int,
        folder: str,
        lighthouse: str,
        log: str,
        samples: int,
        *,
        sync: bool = False,
        min_groups: int = 1,
        dies_in: int | None = None,
    ) -> None:
        self.number, self.folder, self.samples = number, Path(folder), samples
        self.dies_in = dies_in  # the step whose forward pass it does not survive
        self.store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
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
            min_replica_size=min_groups,
            use_async_quorum=not sync,
            replica_id=f"g{number}",
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
        self.log = Path(log).open("a", buffering=1)  # noqa: SIM115 (until it is killed)
        self.write("ready")

    def write(self, *line: Any) -> None:
        """Write a line to the log."""
        self.log.write(f"{json.dumps(line)}\n")

    def loss(self, rows: torch.Tensor) -> Any:
        """Run the forward pass, unless this is the step in which the group dies."""
        time.sleep(STEP_SECONDS)
        if self.manager.current_step() == self.dies_in:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.model(rows[:, None].float()).square().mean()

    def backward(self, loss: Any, rows: torch.Tensor) -> None:
        """Sum gradients up, and write first what was read, if the group has a share in the step.

        torchft's DistributedDataParallel fails where a group has been lost.
        """
        manager = self.manager
        manager.wait_quorum()
        self.now = manager._quorum_id, manager.current_step()
        if manager.is_participating():
            place = manager.num_participants(), manager.participating_rank()
            self.write("read", *self.now, *place, rows.tolist())
        loss.backward()
        for parameter in self.model.parameters():
            manager.allreduce(parameter.grad).wait()

    def counts(self) -> None:
        """Write that the step counts whose gradients were summed up last."""
        self.write("counts", *self.now)

    def train(self, loader: Any) -> Any:
        """Train as torchft's train_ddp does, step by step; yield after each."""
        for rows in loader:
            self.optimizer.zero_grad()
            self.backward(self.loss(rows), rows)
            before = self.manager.current_step()
            self.optimizer.step()
            if self.manager.current_step() > before:
                self.counts()
            yield


def run(loop: str, words: dict[str, Any]) -> None:
    """Be a group with the words of `Group`, until its loop ends, a "module.function"."""
    logging.disable(logging.CRITICAL)
    module, _, function = loop.rpartition(".")
    group = Group(**words)
    while not (group.folder / "go").exists():
        time.sleep(0.01)  # it looks again
    getattr(importlib.import_module(module), function)(group)
    group.write("done")
    os._exit(0)  # no thread of torchft is waited for


def forks_of(*modules: str) -> Forks:
    """Return a process that has imported torchft and some modules, and forks groups."""
    # of these the first as an optimizer would in each group
    return Forks("torch._dynamo", "tests.runs.groups.group", *modules)


class Groups:
    """A lighthouse, and groups that find each other by it."""

    def __init__(
        self, forks: Forks, folder: Path, *, min_groups: int = 1, join_ms: int = 200
    ) -> None:
        self.forks, self.folder, self.min_groups = forks, folder, min_groups
        self.server = LighthouseServer(
            bind="127.0.0.1:0",
            min_replicas=min_groups,
            join_timeout_ms=join_ms,
            quorum_tick_ms=20,
            heartbeat_timeout_ms=1500,
        )
        port = self.server.address().rsplit(":", 1)[1]
        self.address = f"http://127.0.0.1:{port}"
        self.processes: dict[int, Forked] = {}
        self.generation = Counter[int]()

    def start(self, group: int, loop: str, samples: int, **words: Any) -> None:
        """Start a group, as new."""
        self.generation[group] += 1
        words |= {"number": group, "folder": str(self.folder), "lighthouse": self.address}
        words |= {"log": str(self.log(group)), "samples": samples, "min_groups": self.min_groups}
        self.processes[group] = self.forks.start(
            "tests.runs.groups.group:run",
            self.log(group).with_suffix(".out"),
            loop,
            words,
            OTEL_SDK_DISABLED="true",
            TIMEOUT="3600",
        )

    def go(self) -> None:
        """Let groups begin, once all that were started are there."""
        self.wait(lambda: all(self.written(group, "ready") for group in self.processes))
        (self.folder / "go").touch()

    def log(self, group: int) -> Path:
        """Return where the group that runs now writes to."""
        return self.folder / f"g{group}.{self.generation[group]}.log"

    def written(self, group: int, kind: str) -> int:
        """Return how many lines of a kind the running group has written."""
        log = self.log(group)
        return log.read_text().count(f'["{kind}"') if log.exists() else 0

    def lives(self, group: int) -> bool:
        """Return whether a group still runs."""
        return self.processes[group].poll() is None

    def said(self) -> str:
        """Return the last words of all groups."""
        files = sorted(self.folder.glob("*.out"))
        return "\n".join(f"{file.name}: {file.read_text()[-1500:]}" for file in files)

    def wait(self, until: Callable[[], bool]) -> None:
        """Wait for what groups write."""
        end = time.monotonic() + PATIENCE
        while not until():
            if time.monotonic() > end:
                raise TimeoutError(self.said())
            time.sleep(0.05)  # it looks again

    def end(self) -> None:
        """Kill everything but what forks groups."""
        for process in self.processes.values():
            process.kill()
        self.server.shutdown()
