"""Cost of the torch samplers, compared with torch's and torchdata's own, at batch size 256."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import indexplan as ip
from benchmarks.conftest import Effort
from benchmarks.contenders.planners import Job, Sized, present
from indexplan_torch import PlanBatchSampler, PlanLoader, PlanSampler

BATCH = 256


class Trivial(Sized):
    """A dataset whose samples cost nothing, so that what is left is the cost of the order."""

    def __getitem__(self, index: int) -> int:
        return index


RIVALS = [rival for rival in present() if hasattr(rival.load(), "loader")]


def job_of(n: int) -> Job:
    """Return the job of one rank, which is all of the dataset."""
    return Job(n, world=1, rank=0, batch=BATCH)


SAMPLERS: dict[str, Callable[[int], Any]] = {
    "indexplan PlanBatchSampler": lambda n: PlanBatchSampler(plan(n)),
    **{
        rival.name: lambda n, rival=rival: rival.load().batch_sampler(job_of(n)) for rival in RIVALS
    },
}


def plan(n: int, remainder: str = "drop") -> ip.Plan:
    """Return a plan of one rank; "drop", so that all samplers deal the same sizes."""
    return ip.Plan(ip.Shuffle(n), world_size=1, batch_size=BATCH, remainder=remainder)


@pytest.mark.parametrize("name", SAMPLERS)
def test_sampler(name: str, benchmark: Any, effort: Effort) -> None:
    """Time the stream of batches as lists, after the first: the rivals' set-up is not in it."""
    n, num_batches = 8 * effort.num_indices, effort.num_indices // BATCH
    benchmark.group = "sampler"
    benchmark.extra_info.update(case="", who=name, indices=effort.num_indices)

    def begun() -> tuple[tuple[Iterator[Any]], dict[str, Any]]:
        batches = iter(SAMPLERS[name](n))
        next(batches)
        return (islice(batches, num_batches),), {}

    def stream(batches: Iterator[Any]) -> None:
        deque(batches, maxlen=0)  # as in training, no batch is kept

    benchmark.pedantic(stream, setup=begun, rounds=min(effort.rounds, 5))
    (batches,), _ = begun()
    drawn = list(batches)
    assert [BATCH] * num_batches == [len(batch) for batch in drawn]
    assert num_batches * BATCH == len(set().union(*drawn))
    assert all(type(index) is int for index in drawn[0])


LOADERS: dict[str, Callable[[int, int], Any]] = {
    "indexplan PlanLoader": lambda n, workers: PlanLoader(Trivial(n), plan(n), num_workers=workers),
    "indexplan PlanBatchSampler": lambda n, workers: DataLoader(
        Trivial(n), batch_sampler=PlanBatchSampler(plan(n)), num_workers=workers
    ),
    "indexplan PlanSampler": lambda n, workers: DataLoader(
        Trivial(n), BATCH, sampler=PlanSampler(plan(n)), num_workers=workers
    ),
    **{
        rival.name: lambda n, workers, rival=rival: rival.load().loader(
            Trivial(n), job_of(n), workers
        )
        for rival in RIVALS
    },
}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", LOADERS)
def test_loader(name: str, workers: int, timed: Callable[..., Any], effort: Effort) -> None:
    """Time a whole pass over a DataLoader, everything included."""
    n = effort.num_indices // 4
    loader = LOADERS[name](n, workers)
    batches = timed(
        lambda: list(loader),
        "loader",
        rounds=min(effort.rounds, 15),
        case=f"{workers} workers",
        who=name,
        indices=n,
    )
    assert list(range(n)) == torch.cat(batches).sort().values.tolist()


@pytest.mark.parametrize("n", [10**8, 10**9, 10**12])
def test_first_batch(n: int, timed: Callable[..., Any], effort: Effort) -> None:
    """Time a new loader's first batch, after a first small plan."""
    next(iter(PlanLoader(Trivial(1000), plan(1000))))
    batch = timed(
        lambda: next(iter(PlanLoader(Trivial(n), plan(n)))),
        "first",
        rounds=effort.rounds,
        case=f"a new PlanLoader's first batch, n = 1e{len(str(n)) - 1}",
        indices=BATCH,
    )
    np.testing.assert_array_equal(plan(n).batch(0, step=0, rank=0), batch)


@pytest.mark.parametrize("where", ["first", "middle", "last"])
def test_resume(where: str, timed: Callable[..., Any], effort: Effort) -> None:
    """Time loading a state and drawing the first batch after it."""
    whole = plan(10**12)
    last = whole.steps(0).stop - 1
    step = {"first": 1, "middle": last // 2, "last": last}[where]
    state = {"version": 1, "cursor": whole.cursor(0, step=step).to_dict(), "pass": 0}
    sampler = PlanBatchSampler(plan(10**12))

    def resume() -> list[int]:
        sampler.load_state_dict(state)
        (batch,) = islice(sampler, 1)
        return batch

    batch = timed(
        resume,
        "first",
        rounds=effort.rounds,
        case=f"resume at the {where} step of 1e12 samples, and its batch",
        indices=BATCH,
    )
    assert whole.batch(0, step=step, rank=0).tolist() == batch
