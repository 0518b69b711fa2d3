"""A run's ledger under real ranks: written by one, computed by all, through stops and returns."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

import indexplan as ip
from indexplan_torch import PlanLoader
from tests.histories.listing import Leg, Listed, act
from tests.trainers.ranks import run_ranks

PLAN = ip.Plan(ip.Shuffle(103, seed=4), batch_size=3, sub_epochs=2)
# passes of 5 and 4 steps on 4 ranks, 6 on 3, and 9 on 2
LEGS = [
    Leg(4, None, (3, "a", 8, "b", 1)),  # stopped in the middle of epoch 1, past its last state
    Leg(3, "b", (3, "c", 9)),
    Leg(4, "a", (2, "d")),  # a return to an earlier checkpoint
    Leg(2, "c", (20, "e", 3)),  # and to one whose steps are void since
]


# --- what ranks run


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


# --- what they tell


def test_ranks_write_what_they_read(tmp_path: Path) -> None:
    """4, 3, 4 and 2 ranks read one run: states are equal, each sample is where it was read."""
    listed = Listed()
    for leg in LEGS:
        told = run_ranks(
            f"{__name__}:leg", leg.ranks, str(tmp_path), [leg.ranks, leg.load, leg.actions]
        )
        listed.add(leg, told)
        listed.check(ip.Ledger(tmp_path / "run.ledger"))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What two ranks tell of ledgers that cannot be written."""
    return run_ranks(f"{__name__}:refused", 2, str(tmp_path_factory.mktemp("runs")))


def test_all_ranks_say_what_the_first_cannot_write(told: list[Any]) -> None:
    """The error of the rank that writes is that of the others, and nobody waits."""
    for name, start in {
        "of another run": "the checkpoint's ledger, for {here}/run.ledger, must be the hash of one",
        "damaged": "{here}/damaged.ledger, line 1: previous must be the sha256 of the line before",
        "on one rank": "ranks must read the same plan; got ledger False, not True (rank 0, ",
    }.items():
        assert told[0][name][1].startswith(start)
        assert told[0][name] == told[1][name]
    assert told[0]["damaged"][0] == "PlanFileError"


def test_a_state_that_rank_0_saved_alone_counts(told: list[Any]) -> None:
    """Others have written no line there, and go on with what the first rank loads."""
    assert [4, 4] == [each["saved by rank 0"] for each in told]
    expected = (
        "{here}/alone.ledger: 9 steps in 2 segments, 1 plan, 1 return to a checkpoint, 4 void"
    )
    assert [expected, expected] == [each["after"] for each in told]


@pytest.mark.parametrize("given", ["a part of a mesh", "ranks"])
def test_ranks_that_read_the_same_do_not_both_write(given: str, tmp_path: Path) -> None:
    """The first that takes itself for the first rank writes; the next one is refused."""
    told = run_ranks(f"{__name__}:same_batches", 4, str(tmp_path), given)
    expected = "run.ledger must be written by one rank; got rank 1, and rank 0 writes it; pass the"
    untold = "where rank= and world_size= are those of no process group; got rank 1; pass ledger="
    refused = {1, 3} if given == "a part of a mesh" else {1}
    others = set[int]() if given == "a part of a mesh" else {2, 3}  # which nobody tells the end
    assert refused == {rank for rank, words in enumerate(told) if expected in words}
    assert others == {rank for rank, words in enumerate(told) if untold in words}
    assert {"read"} == {told[rank] for rank in {0, 1, 2, 3} - refused - others}
    account = ip.Ledger(tmp_path / "run.ledger").account()
    assert (103, 0) == (account.num_read, account.num_void)


def test_a_rank_that_nobody_tells_says_so(told: list[Any]) -> None:
    """If the rank that writes never begins, the others end after the group's timeout."""
    expected = (
        "a ledger must be begun by rank 0, which writes it, before other ranks read; got nothing "
        "from it before the timeout of the process group; read the loader on all ranks, or pass "
        "ledger= on one that rank reads"
    )
    assert ["IndexPlanError", expected] == told[1]["nobody writes"]
