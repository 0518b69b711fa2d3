"""A rank of a run that is restarted when nodes come and go: PlanLoader, and checkpoints.

It saves after every SAVED_EVERY steps, and what it saves holds the samples that all ranks have read
until then: what was read later is thrown away with the weights. `python -m tests.live.elastic
FOLDER` is a rank under torchrun.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import indexplan as ip
from indexplan_torch import PlanLoader

SAMPLES, EPOCHS, SAVED_EVERY = 601, 2, 3
NODES = 3
DIES_AFTER, JOINED_AFTER = 20, 61  # steps; neither is one after which it saves
KILLED = "killed"  # a file that says that the node is dead
PLAN = ip.Plan(ip.Shuffle(SAMPLES, seed=3), global_batch_size=12)


def train(
    folder: Path, node: str, loader: Any, saved: dict[str, Any], save: Callable[[Any], None]
) -> None:
    """Train from what was saved, if anything was, to the end; all ranks call `save`."""
    world = dist.get_world_size()
    model = torch.nn.Linear(1, 1)
    parts: dict[str, Any] = {"model": model, "loader": loader}
    for name, part in parts.items() if saved else ():
        part.load_state_dict(saved[name])
    read: list[tuple[int, list[int]]] = saved.get("read", [])
    dist.barrier()  # no rank saves before all have looked
    parallel = DistributedDataParallel(model)
    with (folder / f"{node}.log").open("a", buffering=1) as log:
        for epoch in range(loader.cursor.epoch, EPOCHS):
            loader.set_epoch(epoch)
            for rows in loader:
                parallel(rows[:, None].float()).mean().backward()
                with torch.no_grad():  # torch.optim takes each start of a rank 3 s of imports
                    for weights in model.parameters():
                        weights.sub_(1e-9 * weights.grad)
                model.zero_grad()
                of_ranks: list[Any] = [None] * world
                dist.all_gather_object(of_ranks, rows.tolist())
                read.append((world, sum(of_ranks, [])))
                last = len(read) == EPOCHS * len(loader)
                if last or len(read) % SAVED_EVERY == 0:
                    states = {name: part.state_dict() for name, part in parts.items()}
                    save({**states, "read": read})
                log.write(f"{json.dumps([os.getpid(), world, len(read)])}\n")
                while held(folder, world, len(read)):
                    time.sleep(0.05)  # until another world begins, or the node is dead


def held(folder: Path, world: int, num_steps: int) -> bool:
    """Return whether ranks wait here for all nodes to join, or for one of them to be killed."""
    if (folder / KILLED).exists():
        return world < NODES and num_steps == JOINED_AFTER
    return world < NODES or num_steps == DIES_AFTER


def lines(log: Path) -> list[list[int]]:
    """Return the lines of a node's ranks: their process, the number of ranks, the step."""
    whole = log.read_text().split("\n")[:-1] if log.exists() else []
    return [json.loads(line) for line in whole]


def last(folder: Path, node: str) -> list[int]:
    """Return the last line that a node's rank has written."""
    return (lines(folder / f"{node}.log") or [[0, 0, 0]])[-1]


def check(read: list[tuple[int, list[int]]]) -> None:
    """Look that what was saved at the end has each sample once in each epoch, on other ranks."""
    stream = [sample for _, samples in read for sample in samples]
    assert EPOCHS * SAMPLES == len(stream)
    for epoch in range(EPOCHS):
        times = Counter(stream[epoch * SAMPLES : (epoch + 1) * SAMPLES])
        assert (SAMPLES, 1) == (len(times), max(times.values()))
    worlds = [world for world, _ in read]
    before, alone = worlds.index(NODES - 1), worlds.count(NODES - 1)
    expected = [NODES] * before + [NODES - 1] * alone + [NODES] * (len(read) - before - alone)
    assert expected == worlds
    assert (0, 0) == (before % SAVED_EVERY, alone % SAVED_EVERY)
    assert before <= DIES_AFTER <= before + alone <= JOINED_AFTER, worlds


def main(folder: Path) -> None:
    """Be a rank under torchrun."""
    dist.init_process_group("gloo")
    file = folder / "run.pt"

    def save(state: dict[str, Any]) -> None:
        if dist.get_rank() == 0:
            torch.save(state, folder / "run.pt.new")
            Path(folder, "run.pt.new").replace(file)

    saved = torch.load(file) if file.exists() else {}
    train(folder, os.environ["NODE"], PlanLoader(torch.arange(SAMPLES), PLAN), saved, save)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
