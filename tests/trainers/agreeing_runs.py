"""Ranks that compare their plans: what test_agreeing.py runs, each in its own process."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from typing import Any

import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

import indexplan as ip
from indexplan_torch import PlanBatchSampler, PlanLoader
from indexplan_torch.megatron import PlanIterator

PLAN = ip.Plan(ip.Shuffle(103, seed=8), batch_size=6)
GLOBAL = PLAN.replace(batch_size=None, global_batch_size=6)
BALANCED = PLAN.replace(balance=ip.Balance(range(1, 104)))


class AgainAfterAnError:
    """Batches of an iterator, which fails once on rank 0, that then asks it again."""

    def __init__(self, rank: int) -> None:
        self.failed = rank != 0
        ours: dict[str, Any] = {"micro_batch_size": 6, "rank": rank, "world_size": 2}
        self.iterator = PlanIterator(self, ip.Sequential(103), consumed_samples=0, **ours)

    def __len__(self) -> int:
        return 103

    def __getitem__(self, index: int) -> int:
        if index > 30 and not self.failed:
            self.failed = True
            raise OSError
        return index

    def __iter__(self) -> Any:
        while self.iterator.consumed_samples < 103:
            try:
                yield next(self.iterator)
            except OSError:
                continue


def everything(folder: str) -> dict[str, str]:
    """Read loaders on one rank or both; return what became of it, by name."""
    rank = int(os.environ["RANK"])
    given = {"rank": rank, "world_size": 2}
    seeds = PLAN.replace(order=ip.Shuffle(103, seed=8 + rank))
    cases: dict[str, Any] = {
        "seeds": lambda: PlanLoader(range(103), seeds),
        "batch sizes": lambda: PlanLoader(range(103), PLAN.replace(batch_size=6 - rank)),
        "times": lambda: PlanLoader(range(103), GLOBAL, again=1 + rank),
        "passes": lambda: in_pass(rank),
        "jumps": lambda: moved(PLAN, 1 + rank, PLAN.replace(world_size=2).cursor(0, step=5)),
        "moves": lambda: moved(GLOBAL, 1 + rank, again=3),
        "states": lambda: back(1 + rank, PLAN),
        "repeats": lambda: back(1 + rank, GLOBAL, again=3),
        "one state": lambda: back(2, PLAN),
        "seeds, given ranks": lambda: PlanLoader(range(103), seeds, **given),
        "seeds, a mesh": lambda: PlanLoader(range(103), seeds, mesh=init_device_mesh("cpu", (2,))),
        "seeds, a sampler": lambda: PlanBatchSampler(seeds),
        "seeds, once more": lambda: once_more(PlanLoader(range(103), seeds)),
        "one part": lambda: PlanLoader(range(103), PLAN, rank=0, world_size=2),
        "balance": lambda: PlanLoader(range(103), PLAN if rank else BALANCED),
        "equal": lambda: PlanLoader(range(103), PLAN),
        "equal, twice": lambda: [*PlanLoader(range(103), PLAN), *PlanBatchSampler(PLAN)],
        "in workers": lambda: PlanLoader(range(103), PLAN, num_workers=1),
        "switched off": lambda: PlanLoader(range(103), PLAN, compare=False),
        "one rank, given": lambda: PlanLoader(range(103), PLAN, rank=0, world_size=1),
        "again on one rank": lambda: AgainAfterAnError(rank),
        "alone": lambda: PlanLoader(range(103), PLAN),
    }
    told = {}
    for name, make in cases.items():
        dist.init_process_group(
            "gloo",
            init_method=f"file://{folder}/{name}",
            rank=rank,
            world_size=2,
        )
        dist.barrier()  # all are connected, so that one may leave
        if name in {"alone", "again on one rank"}:  # the latter waits for nobody, if it is right
            seconds = 1 if name == "alone" else 20
            dist.distributed_c10d._get_default_store().set_timeout(timedelta(seconds=seconds))
        idle = rank == 1 and name in {"switched off", "one rank, given", "alone"}
        told[name] = "idle" if idle else read(make)
        dist.destroy_process_group()
    return told


def once_more(loader: PlanLoader) -> PlanLoader:
    """Return a loader whose ranks were told that they differ, to be read all the same."""
    assert "must read the same plan" in read(lambda: loader)
    return loader


def in_pass(number: int) -> PlanLoader:
    """Make a loader that is set to a pass."""
    loader = PlanLoader(range(103), PLAN)
    loader.set_epoch(number)
    return loader


def moved(plan: ip.Plan, after: int, to: ip.Cursor | None = None, **options: Any) -> Any:
    """Read a loader, which moves to another remainder, or to a later cursor, after some steps."""
    loader = PlanLoader(range(103), plan, **options)
    for number, batch in enumerate(loader, 1):
        if number == after:
            loader.move(plan.replace(remainder="drop") if to is None else plan.resume(to))
        yield batch


def back(step: int, plan: ip.Plan, **options: Any) -> PlanLoader:
    """Make a loader that has read a pass, and goes back to a state of one of its steps."""
    loader = PlanLoader(range(103), plan, **options)
    states = [loader.state_dict() for _ in loader]
    loader.load_state_dict(states[step - 1])
    return loader


def read(make: Any) -> str:
    """Read a pass; return whether that went well, or the error's words."""
    try:
        list(make())
    except ip.IndexPlanError as error:
        return str(error)
    return "read"


class Slow:
    """A store whose `wait` is late by a second, or until the process that has the store ends."""

    def __init__(self, store: Any, process: int) -> None:
        self.store, self.process = store, process

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def wait(self, keys: list[str]) -> None:
        """Wait for keys, and then for a process that ends too early to do so."""
        self.store.wait(keys)
        late = time.monotonic() + 1
        try:
            while time.monotonic() < late:
                os.kill(self.process, 0)
                time.sleep(0.01)  # it looks again
        except ProcessLookupError:
            return


def rank_0_ends(folder: str, name: str) -> str:
    """Read a loader on both ranks, of which rank 0, with the store, is fast, and then ends."""
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    processes: list[Any] = [None, None]
    dist.all_gather_object(processes, os.getpid())
    if rank == 1:
        slow = Slow(dist.distributed_c10d._get_default_store(), processes[0])
        dist.distributed_c10d._get_default_store = lambda: slow
    plan = PLAN.replace(order=ip.Shuffle(103, seed=8 + (rank if name == "seeds" else 0)))
    kept: dict[str, Any] = {"ledger": f"{folder}/{name}"}
    cases: dict[str, Any] = {
        "new.ledger": lambda: PlanLoader(range(103), plan, **kept),
        "damaged.ledger": lambda: PlanLoader(range(103), plan, **kept),
        "loaded.ledger": lambda: loaded(PlanLoader(range(103), plan, **kept)),
    }
    return read(cases.get(name, lambda: PlanLoader(range(103), plan)))


def loaded(loader: PlanLoader) -> PlanLoader:
    """Read a step, and load its state, so that the run begins once more."""
    next(iter(loader))
    loader.load_state_dict(loader.state_dict())
    return loader
