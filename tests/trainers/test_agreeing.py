"""Ranks that should read the same plan: compared once, by two real ranks."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from datetime import timedelta
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

import indexplan as ip
from indexplan_torch import PlanBatchSampler, PlanLoader
from indexplan_torch.megatron import PlanIterator
from tests.trainers.ranks import run_ranks

PLAN = ip.Plan(ip.Shuffle(103, seed=8), batch_size=6)
GLOBAL = PLAN.replace(batch_size=None, global_batch_size=6)
ONE = ip.Plan(ip.Sequential(1), batch_size=1)
BALANCED = PLAN.replace(balance=ip.Balance(range(1, 104)))


def megatrons(dataset: Any, rank: int, world_size: int) -> PlanIterator:
    """Make an iterator of Megatron's data-parallel ranks."""
    ours: dict[str, Any] = {"micro_batch_size": 6, "rank": rank, "world_size": world_size}
    return PlanIterator(dataset, ip.Sequential(103), consumed_samples=0, **ours)


def stages(num: int) -> Iterator[Any]:
    """Read a few batches on each virtual stage of a rank that has peers, and no others' data."""
    return chain.from_iterable(islice(megatrons(range(103), 0, 1), 20) for _ in range(num))


class AgainAfterAnError:
    """Batches of an iterator, which fails once on rank 0, that then asks it again."""

    def __init__(self, rank: int) -> None:
        self.failed = rank != 0
        self.iterator = megatrons(self, rank, 2)

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
        "an evaluation of rank 0": lambda: PlanLoader(range(1), ONE, evaluation=True),
        "switched off": lambda: PlanLoader(range(103), PLAN, compare=False),
        "one rank, given": lambda: PlanLoader(range(103), PLAN, rank=0, world_size=1),
        "peers in a group": lambda: stages(2 - rank),
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
        # those that would wait for the other rank if they were wrong
        if name in {"alone", "again on one rank", "peers in a group", "an evaluation of rank 0"}:
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
    ledger = f"{folder}/{name}" if name.endswith(".ledger") else None
    loader = PlanLoader(range(103), plan, ledger=ledger)
    return read(lambda: loaded(loader) if name == "loaded.ledger" else loader)


def loaded(loader: PlanLoader) -> PlanLoader:
    """Read a step, and load its state, so that the run begins once more."""
    next(iter(loader))
    loader.load_state_dict(loader.state_dict())
    return loader


# --- what ranks tell


SWITCH = "pass compare=False to a loader that not all ranks read"
CURE = "make the plan from the same arguments on every rank, move to it at the same step, or "
CURE += SWITCH


WORDS = f"{BALANCED.balance.to_dict()!r:.60}..."

ENDS = {
    "equal": "read",
    "seeds": f"ranks must read the same plan; .*; {re.escape(CURE)}",
    "new.ledger": "read",
    "loaded.ledger": "read",
    "damaged.ledger": ".*damaged.ledger, line 1: .*",
}

# what the first to come says of itself and of the other, in either order
DIFFER = {
    "seeds": ("order.seed", "8", "9"),
    "batch sizes": ("batch_size", "6", "5"),
    "times": ("again", "1", "2"),
    "passes": ("pass", "[0, 0]", "[1, 0]"),
    "jumps": ("moved at", "[0, 12, 0]", "[0, 24, 0]"),
    "states": ("resumed.position", "12", "24", "resumed.step", "1", "2"),
    "repeats": ("dealt", "1", "2"),
    "moves": ("dealt", "1", "2", "moved at", "[0, 0, 1]", "[0, 0, 2]"),
    "seeds, given ranks": ("order.seed", "8", "9"),
    "seeds, a mesh": ("order.seed", "8", "9"),
    "seeds, once more": ("order.seed", "8", "9"),
    "seeds, a sampler": ("order.seed", "8", "9"),
    "balance": ("balance", WORDS, "none"),
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What two ranks read, or the words of their errors, by name."""
    folder = tmp_path_factory.mktemp("stores")
    return run_ranks(f"{__name__}:everything", 2, str(folder))


@pytest.mark.parametrize("name", DIFFER)
def test_ranks_that_differ_all_say_how(told: list[Any], name: str) -> None:
    """Another seed, size, `again`, pass, balance, state or step of a move: one error on both."""
    each = [DIFFER[name][place : place + 3] for place in range(0, len(DIFFER[name]), 3)]
    words = "; ".join(f"{what} {here}, not {there}" for what, here, there in each)
    expected = f"ranks must read the same plan; got {words} (rank 0, not rank 1); {CURE}"
    assert [expected, expected] == [told[0][name], told[1][name]]


ALONE = (
    "ranks must begin their first pass together, to compare plans; got 1 of 2 before the "
    f"timeout of the process group; {SWITCH}"
)
TOLD = {
    **dict.fromkeys(["equal", "equal, twice", "one state", "in workers"], ("read", "read")),
    # a rank whose batches are all empty compares plans like the others
    "an evaluation of rank 0": ("read", "read"),
    # what only one rank reads waits for nobody
    **dict.fromkeys(["switched off", "one rank, given"], ("read", "idle")),
    # ranks of one of Megatron's pipeline groups read the same, one of them on two virtual stages
    "peers in a group": ("read", "read"),
    # the others have no error, and do not compare once more
    "again on one rank": ("read", "read"),
    # if the others never begin, it is an error after the group's timeout, and no hang
    "alone": (ALONE, "idle"),
}


@pytest.mark.parametrize("name", TOLD)
def test_ranks_that_agree_or_are_alone(told: list[Any], name: str) -> None:
    """Equal plans are read as ever, each loader compared on its own."""
    assert TOLD[name] == tuple(each[name] for each in told)


def test_ranks_that_would_read_the_same_part_are_refused(told: list[Any]) -> None:
    """Such as those that take LOCAL_RANK for the rank: one part twice, and another never."""
    expected = (
        "ranks must read different parts of a plan, unless a mesh makes them peers; got rank=0, "
        "world_size=2 on several processes; leave rank= and world_size= out, or pass mesh= if they "
        "share samples"
    )
    assert [expected, expected] == [each["one part"] for each in told]


@pytest.mark.parametrize("name", ENDS)
def test_rank_0_takes_the_store_along_only_when_all_have_read_it(name: str, tmp_path: Path) -> None:
    """Whether it ends well or by an error, a slower rank ends like it, not by a lost connection."""
    Path(tmp_path, "damaged.ledger").write_text("{}\n")
    told = run_ranks(f"{__name__}:rank_0_ends", 2, str(tmp_path), name)
    assert told[0] == told[1]
    assert re.fullmatch(ENDS[name], told[0])
