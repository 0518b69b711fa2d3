"""Stop and resume one loader, and count: this file, and a loader's, are all it takes.

    pip install torch, and what the loader's file names
    python row.py grain.py             with both files in a folder, from anywhere
    python -m tests.runs.row grain     in a checkout

A loader's file has `ENDLESS`, whether its loop reads on past an epoch's end, and functions that
read on one rank what a Leg asks for: `theirs` as people usually write it, `recommended` as the
documentation says, and `ours` by a plan, which is counted where indexplan is installed
(`pip install .` in a checkout). What stands before such a name is a variant, as `nodes_theirs`.
`write(folder, n)` writes the samples, if they have to be in files. Each way is run once without a
stop, and twice stopped in each of epochs 0 and 1, which are read to their ends.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import pickle
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any

GLOBAL_BATCH = 24
SAMPLES = {"finite": 1000, "endless": 1008}
"""Samples of the epoch; of loops without an end whole batches, as the next epoch is no loss."""
LEGS = {"whole": (4,), "same": (4, 4, 4), "other": (4, 3, 2), "both": (3, 3, 2), "few": (2, 2)}
LEGS |= {"again": LEGS["same"], "later": LEGS["other"]}
"""The ranks of a run's legs: one leg, to see what no stop explains, or two or three.

`both` and `few` are for tests, which have little time: a rank takes seconds to start.
"""
STEPS = (11, 9)
"""After which a run is stopped, once and once more; both inside the epoch."""
WAYS = ("theirs", "recommended", "ours")
"""How samples are read: as people usually write it, as documentation recommends, by a plan."""
EXACT = {"lost": 0, "twice": 0, "uneven": 0, "refused": ""}
"""What a run comes to that reads each sample once, in as many steps on every rank."""
PATIENCE = 300
"""Seconds that a leg may take."""
KINDS = {
    "whole": "never stopped",
    "same": "the ranks stay",
    "other": "4, then 3, then 2 ranks",
    "again": "in epoch 1, the ranks stay",
    "later": "in epoch 1, 4, then 3, then 2",
}


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
    epoch: int = 0
    """The one that is stopped and counted; the first leg reads those before it, uncounted."""
    data: Path = Path()
    """A folder that the legs of a run share, for those who need the samples in files."""

    @property
    def epochs(self) -> range:
        """The epochs that are read: a run's first leg begins with epoch 0."""
        return range(self.epoch if self.checkpoint else 0, self.epoch + 1)

    def limit(self, epoch: int) -> int | None:
        """Return how many steps to take of an epoch: those before the counted one are whole."""
        return self.steps if epoch == self.epoch else None

    @property
    def before(self) -> int:
        """Steps that this leg takes before the counted epoch."""
        return len(self.epochs[:-1]) * -(-self.samples // self.global_batch)


Steps = list[list[int]]
"""The samples that a rank trains on, step by step."""


def run(
    train: Callable[[Leg], Steps],
    kind: str,
    *,
    endless: bool,
    write: Callable[[Path, int], None] | None = None,
) -> dict[str, Any]:
    """Train an epoch in one leg or three; return what was read, and what went wrong."""
    read: list[int] = []
    uneven = 0
    samples = SAMPLES["endless" if endless else "finite"]
    stops = STEPS[: len(LEGS[kind]) - 1]
    rest = samples // GLOBAL_BATCH - sum(stops) if endless else None
    with tempfile.TemporaryDirectory() as root:
        checkpoint, data = None, Path(root, "data")
        data.mkdir()
        if write:
            write(data, samples)
        for number, world_size in enumerate(LEGS[kind]):
            last = number == len(stops)
            steps = rest if last else stops[number]
            save = None if last else Path(root, f"checkpoint-{number}")
            epoch = int(kind in {"again", "later"})
            leg = Leg(0, 1, steps, checkpoint, save, samples, epoch=epoch, data=data)
            legs = [replace(leg, rank=rank, world_size=world_size) for rank in range(world_size)]
            try:
                ranks = in_processes(train, legs, Path(root, f"leg-{number}"))
            except RefusedError as error:
                return {"refused": str(error)}
            uneven += len({len(steps) for steps in ranks}) > 1
            read += [sample for steps in ranks for step in steps for sample in step]
            checkpoint = save
    lost, twice = lost_and_twice(read, samples)
    return {**EXACT, "lost": lost, "twice": twice, "uneven": uneven}


def lost_and_twice(samples: list[int], num_samples: int) -> tuple[int, int]:
    """Return how many of all samples were not read, and how many reads were one too many."""
    once = len({*range(num_samples)} & {*samples})
    return num_samples - once, len(samples) - once


class RefusedError(RuntimeError):
    """What the first rank to fail has said."""


def in_processes(
    train: Callable[[Any], Any], legs: list[Any], folder: Path, patience: int = PATIENCE
) -> list[Any]:
    """Train on ranks that are forked from this process, which has imported the framework.

    A leg has a `rank` and a `world_size`. Returned is what each rank has.
    """
    folder.mkdir()
    fork = get_context("fork")
    gc.freeze()  # ranks look for garbage among their own things, not among all imports
    ranks = [fork.Process(target=_rank, args=(train, leg, folder)) for leg in legs]
    for rank in ranks:
        rank.start()
    until = time.monotonic() + patience
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
        raise RefusedError(said[0] if said else f"TimeoutError: hung for {patience} s")
    return [pickle.loads((folder / f"{leg.rank}.pickle").read_bytes()) for leg in legs]  # noqa: S301


def _rank(train: Callable[[Any], Any], leg: Any, folder: Path) -> None:
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


def counted(code: Any, way: str, kinds: Iterable[str]) -> dict[str, Any]:
    """Return what came of a way to read, in some kinds of runs."""
    train, write = getattr(code, way), getattr(code, "write", None)
    importlib.import_module("torch._dynamo")  # as an optimizer's first step would in each rank
    if way.endswith("ours"):  # before the forks, as each rank would import and compile it
        indexplan = importlib.import_module("indexplan")
        importlib.import_module("indexplan_torch")
        indexplan.Plan(indexplan.Shuffle(8), world_size=1, batch_size=2).batch(0, step=0, rank=0)
    return {kind: run(train, kind, endless=code.ENDLESS, write=write) for kind in kinds}


# --- what loaders' files have in common: samples that are numbers, and steps


class Numbered:
    """A dataset whose samples are their numbers, or what is made of them."""

    def __init__(self, samples: int, make: Callable[[int], Any] = int) -> None:
        self.samples, self.make = samples, make

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> Any:
        return self.make(index)


def plan_of(leg: Leg) -> Any:
    """Return the plan that trainers read."""
    import indexplan as ip

    return ip.Plan(ip.Shuffle(leg.samples, seed=1), global_batch_size=leg.global_batch)


def by_plan(
    leg: Leg, dataset: Any, numbers: Callable[[Any], list[int]] = lambda x: x.tolist(), **more: Any
) -> Steps:
    """Read a PlanLoader in a loop that does nothing else."""
    from indexplan_torch import PlanLoader

    return by_state(leg, PlanLoader(dataset, plan_of(leg), **more), numbers)


def by_state(
    leg: Leg, loader: Any, numbers: Callable[[Any], list[int]] = lambda x: x.tolist()
) -> Steps:
    """Read a loader in a loop that does nothing else; its state on the first rank is for all."""
    import torch

    if leg.checkpoint:
        loader.load_state_dict(torch.load(leg.checkpoint))
    for epoch in leg.epochs:
        steps = [numbers(batch) for batch in islice(loader, leg.limit(epoch))]
    if leg.save and leg.rank == 0:
        torch.save(loader.state_dict(), leg.save)
    return steps


def line() -> tuple[Any, Any]:
    """Return the smallest model there is, and its optimizer."""
    import torch

    torch.manual_seed(0)
    model = torch.nn.Linear(1, 1)
    return model, torch.optim.SGD(model.parameters(), lr=1e-6)


def train(
    batches: Iterable[Any],
    model: Any,
    optimizer: Any,
    steps: int | None,
    backward: Callable[[Any], None] = lambda loss: loss.backward(),
) -> Steps:
    """Take as many steps, or all; return the samples of each. The next batch is not asked for."""
    read: Steps = []
    for batch in islice(batches, steps):
        backward(model(batch[:, None].float()).mean())
        optimizer.step()
        optimizer.zero_grad()
        read.append(batch.tolist())
    return read


def name_packages(*names: str) -> None:
    """Let modules below packages be imported without running the packages' `__init__.py`."""
    for name in names:
        if name not in sys.modules:
            found = importlib.util.find_spec(name)
            if found is None or found.submodule_search_locations is None:
                raise ModuleNotFoundError(f"No module named {name!r}")
            sys.modules[name] = ModuleType(name)
            sys.modules[name].__path__ = list(found.submodule_search_locations)


def main(name: str) -> None:
    """Count each way that a loader's file has to read, and print it."""
    here = Path(__file__).resolve().parent
    sys.modules.setdefault("tests.runs.row", sys.modules["__main__"])  # as loaders' files call this
    if sys.path and Path(sys.path[0]).resolve() == here:
        del sys.path[0]  # their names are often those of what they read through: grain.py
    file = Path(name) if name.endswith(".py") else here / "frameworks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"row_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    code = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(code)
    for way in [each for each in vars(code) if each.rpartition("_")[2] in WAYS]:
        if way.endswith("ours") and not importlib.util.find_spec("indexplan_torch"):
            print(f"{way}: indexplan is not installed")
            continue
        for kind, words in KINDS.items():
            print(f"{way}, {words}: {counted(code, way, [kind])[kind]}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
