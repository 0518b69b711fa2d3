"""A run through a trainer's or framework's code and checkpoints, on 4, then 3, then 2 ranks."""

from __future__ import annotations

import gc
import importlib
import os
import pickle
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import indexplan as ip
from benchmarks.measure.fresh import run_fresh
from tests.runs.frameworks import FRAMEWORKS

GLOBAL_BATCH = 24
SAMPLES = {"finite": 1000, "endless": 1008}
"""Samples of the epoch; of loops without an end whole batches, as the next epoch is no loss."""
LEGS = {"whole": (4,), "same": (4, 4, 4), "other": (4, 3, 2), "both": (3, 3, 2), "few": (2, 2, 2)}
"""The ranks of a run's legs: one leg, to see what no stop explains, or three.

The last two are for tests, which have little time: a rank takes seconds to start.
"""
STEPS = (11, 9)
"""After which a run is stopped, once and once more; both inside the epoch."""
PATIENCE = 300
"""Seconds that a leg may take."""
KINDS = {
    "whole": "never stopped",
    "same": "the ranks stay",
    "other": "4, then 3, then 2 ranks",
}
WAYS = ("theirs", "recommended", "ours")
"""How samples are read: as people usually write it, as documentation recommends, by a plan."""


@dataclass(frozen=True)
class Leg:
    """What one rank is asked to train between two stops."""

    rank: int
    world_size: int
    steps: int | None
    """Optimizer steps to take; None: all that are left of the epoch, where a loop has an end."""
    checkpoint: Path | None
    """What to load first; None at the start."""
    save: Path | None
    """Where to save after the steps; None at the end."""
    samples: int
    """They are numbered from 0."""
    global_batch: int = GLOBAL_BATCH


Steps = list[list[int]]
"""The samples that a rank trains on, step by step."""


def run(train: Callable[[Leg], Steps], kind: str, *, endless: bool) -> dict[str, Any]:
    """Train an epoch in one leg or three; return what was read, and what went wrong."""
    read: list[int] = []
    uneven = 0
    samples = SAMPLES["endless" if endless else "finite"]
    stops = STEPS[: len(LEGS[kind]) - 1]
    rest = samples // GLOBAL_BATCH - sum(stops) if endless else None
    with tempfile.TemporaryDirectory() as root:
        checkpoint = None
        for number, world_size in enumerate(LEGS[kind]):
            last = number == len(stops)
            steps = rest if last else stops[number]
            save = None if last else Path(root, f"checkpoint-{number}")
            legs = [
                Leg(rank, world_size, steps, checkpoint, save, samples)
                for rank in range(world_size)
            ]
            try:
                ranks = in_processes(train, legs, Path(root, f"leg-{number}"))
            except RefusedError as error:
                return {"refused": str(error)}
            uneven += len({len(steps) for steps in ranks}) > 1
            read += [sample for steps in ranks for step in steps for sample in step]
            checkpoint = save
    counts = Counter(read)
    return {
        "lost": samples - len(counts),
        "twice": len(read) - len(counts),
        "uneven": uneven,
        "refused": "",
    }


class RefusedError(RuntimeError):
    """What the first rank to fail has said."""


def in_processes(train: Callable[[Leg], Steps], legs: list[Leg], folder: Path) -> list[Steps]:
    """Train on ranks that are forked from this process, which has imported the framework."""
    folder.mkdir()
    fork = get_context("fork")
    gc.freeze()  # ranks look for garbage among their own things, not among all imports
    ranks = [fork.Process(target=_rank, args=(train, leg, folder)) for leg in legs]
    for rank in ranks:
        rank.start()
    until = time.monotonic() + PATIENCE
    try:
        while any(rank.exitcode is None for rank in ranks):
            if any(rank.exitcode for rank in ranks) or time.monotonic() > until:
                break
            time.sleep(0.02)
    finally:
        for rank in ranks:
            rank.kill()
            rank.join()
    said = [file.read_text() for file in sorted(folder.glob("*.txt"))]
    if said or any(rank.exitcode for rank in ranks):
        raise RefusedError(said[0] if said else f"nothing was said within {PATIENCE} s")
    return [pickle.loads((folder / f"{leg.rank}.pickle").read_bytes()) for leg in legs]  # noqa: S301


def _rank(train: Callable[[Leg], Steps], leg: Leg, folder: Path) -> None:
    """Train a leg in a process of its own; leave what was read in a file, or what was raised."""
    import torch.distributed as dist  # when the framework has had its turn to import torch

    # They find each other by a file, as a port could be taken meanwhile.
    os.environ.update(RANK=str(leg.rank), WORLD_SIZE=str(leg.world_size), LOCAL_RANK=str(leg.rank))
    os.environ.update(LOCAL_WORLD_SIZE=str(leg.world_size), NODE_RANK="0", GLOO_SOCKET_IFNAME="lo")
    try:
        store = f"file://{folder / 'store'}"
        dist.init_process_group("gloo", store, rank=leg.rank, world_size=leg.world_size)
        steps = train(leg)
        if dist.is_initialized():  # Ray ends it by itself
            dist.barrier()
        file = folder / f"{leg.rank}.new"
        file.write_bytes(pickle.dumps(steps))
        file.rename(folder / f"{leg.rank}.pickle")
        os._exit(0)  # no thread of gloo is waited for
    except BaseException as error:  # whatever it is, the page shows it
        told = f"{type(error).__name__}: {error}"
        (folder / f"{leg.rank}.log").write_text(traceback.format_exc())
        (folder / f"{leg.rank}.txt").write_text(told)
        os._exit(1)


def both(module: str, theirs: tuple[str, ...], ours: tuple[str, ...]) -> dict[str, Any]:
    """Run a framework's own loader in each way that its module has, and ours."""
    (framework,) = (each for each in FRAMEWORKS if each.module == module)
    record: dict[str, Any] = framework.standing()
    if not record["missing"]:
        code = framework.load()
        importlib.import_module("torch._dynamo")  # as an optimizer's first step would in each rank
        ip.Plan(ip.Shuffle(8), world_size=1, batch_size=2).batch(
            0, step=0, rank=0
        )  # compiled before the forks
        for way in WAYS:
            train = getattr(code, way, None)  # what is usual may be what is recommended
            if train is not None:
                asked = ours if way == "ours" else theirs
                record[way] = {kind: run(train, kind, endless=code.ENDLESS) for kind in asked}
    return record


def through(
    module: str, theirs: tuple[str, ...] = tuple(KINDS), ours: tuple[str, ...] = tuple(KINDS)
) -> dict[str, Any]:
    """Return `both` of a fresh process, from which ranks may be forked."""
    quiet = {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    job = "tests.runs.through.both"
    record: dict[str, Any] = run_fresh(job, module, theirs, ours, seconds=12 * PATIENCE, **quiet)
    return record


def wrong(name: str, record: dict[str, Any]) -> list[str]:
    """Return what has to hold of ours, and does not."""
    exact = {"lost": 0, "twice": 0, "uneven": 0, "refused": ""}
    ours = record.get("ours", {})
    return [f"{name}, {KINDS[kind]}: {ours[kind]}" for kind in ours if ours[kind] != exact]
