"""Ranks that keep a ledger: what test_ledger.py runs, each in its own process."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

import indexplan as ip
from indexplan_torch import PlanLoader
from tests.histories.listing import Leg, act

PLAN = ip.Plan(ip.Shuffle(103, seed=4), batch_size=3, sub_epochs=2)


def leg(folder: str, leg: list[Any]) -> list[Any]:
    """Read a part of a run on one rank; return its batches, and None where it saved a state."""
    part = Leg(leg[0], leg[1], tuple(leg[2]))
    dist.init_process_group("gloo")
    loader = PlanLoader(range(103), PLAN, ledger=f"{folder}/run.ledger")
    if part.load:
        loader.load_state_dict(json.loads(Path(folder, f"{part.load}.json").read_text()))
    told: list[Any] = []
    for name, got in act(loader, part.actions):
        if name is None:
            told.append(got.tolist())
            continue
        told.append(None)
        states: list[Any] = [None] * part.ranks
        dist.all_gather_object(states, got)
        assert all(each == got for each in states), states
        if dist.get_rank() == 0:
            Path(folder, f"{name}.json").write_text(json.dumps(got))
    dist.barrier()  # the store is rank 0's
    return told


def same_batches(folder: str, given: str) -> str:
    """Read a pass on one of two ranks each that read the same; return what became of it."""
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    rank, part = dist.get_rank(), mesh["dp"]
    options: dict[str, Any] = {"mesh": part}
    first = rank % 2 == 0
    if given == "ranks":
        options, first = {"rank": part.get_local_rank(), "world_size": 2}, rank == 0
    plan = PLAN.replace(sub_epochs=1)
    loader = PlanLoader(range(103), plan, ledger=f"{folder}/run.ledger", **options)
    if not first:
        dist.barrier()
    try:
        list(loader)
        told = "read"
    except ip.IndexPlanError as error:
        told = str(error)
    if first:
        dist.barrier()
    dist.barrier()  # the store is rank 0's
    return told


def refused(folder: str) -> dict[str, Any]:
    """What both ranks are told of what one of them cannot write, or only one of them reads."""
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    told: dict[str, Any] = {}

    def read(name: str, loader: PlanLoader) -> None:
        try:
            told[name] = sum(1 for _ in loader)
        except ip.IndexPlanError as error:
            told[name] = [type(error).__name__, str(error).replace(folder, "{here}")]

    other = PlanLoader(range(103), PLAN, ledger=f"{folder}/other.ledger")
    read("other", other)
    state = other.state_dict()
    dist.barrier()
    loader = PlanLoader(range(103), PLAN, ledger=f"{folder}/run.ledger")
    loader.load_state_dict(state)
    read("of another run", loader)
    Path(folder, "damaged.ledger").write_text("{}\n")
    dist.barrier()
    read("damaged", PlanLoader(range(103), PLAN, ledger=f"{folder}/damaged.ledger"))
    ours: Any = {"ledger": f"{folder}/one.ledger"} if rank else {}
    read("on one rank", PlanLoader(range(103), PLAN, **ours))
    # where rank 0 alone saves, its state counts
    loader = PlanLoader(range(103), PLAN, ledger=f"{folder}/alone.ledger")
    for step, _ in enumerate(loader):
        if rank == 0 and step == 4:
            Path(folder, "alone.json").write_text(json.dumps(loader.state_dict()))
    dist.barrier()
    loader = PlanLoader(range(103), PLAN, ledger=f"{folder}/alone.ledger")
    loader.load_state_dict(json.loads(Path(folder, "alone.json").read_text()))
    read("saved by rank 0", loader)
    dist.barrier()
    after = str(ip.Ledger(f"{folder}/alone.ledger")).replace(folder, "{here}")
    told["after"] = after.splitlines()[0]
    dist.distributed_c10d._get_default_store().set_timeout(timedelta(seconds=1))
    if rank:
        read("nobody writes", PlanLoader(range(103), PLAN, compare=False, **ours))
    dist.barrier()
    return told
