"""Ranks that compare their plans: what test_agreeing.py runs, each in its own process."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

import indexplan as ip
from indexplan_torch import PlanBatchSampler, PlanLoader

RANK = int(os.environ["RANK"])
PLAN = ip.Plan(ip.Shuffle(103, seed=8), batch_size=6)
BALANCED = PLAN.replace(balance=ip.Balance(range(1, 104)))
SEEDS = PLAN.replace(order=ip.Shuffle(103, seed=8 + RANK))


def everything(folder: str) -> dict[str, str]:
    """Read loaders on one rank or both; return what became of it, by name."""
    given = {"rank": RANK, "world_size": 2}
    cases: dict[str, Any] = {
        "seeds": lambda: PlanLoader(range(103), SEEDS),
        "batch sizes": lambda: PlanLoader(range(103), PLAN.replace(batch_size=6 - RANK)),
        "passes": in_pass_of_its_own,
        "seeds, given ranks": lambda: PlanLoader(range(103), SEEDS, **given),
        "seeds, a mesh": lambda: PlanLoader(range(103), SEEDS, mesh=init_device_mesh("cpu", (2,))),
        "seeds, a sampler": lambda: PlanBatchSampler(SEEDS),
        "balance": lambda: PlanLoader(range(103), PLAN if RANK else BALANCED),
        "equal": lambda: PlanLoader(range(103), PLAN),
        "equal, twice": lambda: [*PlanLoader(range(103), PLAN), *PlanBatchSampler(PLAN)],
        "in workers": lambda: PlanLoader(range(103), PLAN, num_workers=1),
        "switched off": lambda: PlanLoader(range(103), PLAN, compare=False),
        "one rank, given": lambda: PlanLoader(range(103), PLAN, rank=0, world_size=1),
        "alone": lambda: PlanLoader(range(103), PLAN),
    }
    told = {}
    for name, make in cases.items():
        dist.init_process_group(
            "gloo",
            init_method=f"file://{folder}/{name}",
            rank=RANK,
            world_size=2,
        )
        dist.barrier()  # all are connected, so that one may leave
        if name == "alone":
            dist.distributed_c10d._get_default_store().set_timeout(timedelta(seconds=1))
        idle = RANK == 1 and name in {"switched off", "one rank, given", "alone"}
        told[name] = "idle" if idle else read(make)
        dist.destroy_process_group()
    return told


def in_pass_of_its_own() -> PlanLoader:
    """Make a loader that was set to another pass on each rank."""
    loader = PlanLoader(range(103), PLAN)
    loader.set_epoch(RANK)
    return loader


def read(make: Any) -> str:
    """Read a pass; return whether that went well, or the error's words."""
    try:
        list(make())
    except ip.IndexPlanError as error:
        return str(error)
    return "read"
