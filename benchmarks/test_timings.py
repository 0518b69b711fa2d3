"""Costs of calls: of orders, of plans, of torch samplers and loaders, and of the C header."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import indexplan as ip
from benchmarks.conftest import Effort, named
from benchmarks.contenders.planners import Job, Rival, Sized, present
from benchmarks.render.tables import power
from indexplan_torch import PlanBatchSampler, PlanLoader, PlanSampler

WORLD, BATCH, RANK = 64, 256, 7
same = np.testing.assert_array_equal


@dataclass
class Work:
    """What is timed, of how many indices, and what its output has to be."""

    job: Callable[[], Any]
    indices: int
    check: Callable[[Any], None]
    calls: int = 1
    facts: dict[str, Any] = field(default_factory=dict)
    """What the row has besides."""


@dataclass(frozen=True)
class Call:
    """A row of the page: its table, its name, and what makes the work."""

    table: str
    case: str
    make: Callable[[Effort], Work]
    nightly: bool = False


def stretch(order: ip.Order, effort: Effort) -> Work:
    """Draw a contiguous interval from the middle of an epoch."""
    num = min(effort.num_indices, order.num_samples)
    start = (order.num_samples - num) // 2
    places = np.arange(start, start + num)
    return Work(
        lambda: order.take(0, start, start + num),
        num,
        lambda out: same(order.locate(0, out), places),
    )


def into_memory(n: int, effort: Effort) -> Work:
    """Draw a stretch without the pages that the system has to zero first, as builds do."""
    order, num = ip.Shuffle(n), effort.num_indices
    runs, out = (np.array([n // 2]), np.array([n // 2 + num])), np.zeros(num, np.int64)
    drawn = order.take(0, n // 2, n // 2 + num)
    return Work(lambda: order.fill(0, *runs, out), num, lambda _: same(drawn, out))


def share(order: ip.Order, effort: Effort) -> Work:
    """Draw one rank's share of 64, of as many steps as make the same number of indices."""
    plan = ip.Plan(order, world_size=WORLD, batch_size=BATCH)
    stop = min(plan.steps(0).stop, effort.num_indices // BATCH)
    sizes = plan.batch_sizes(0, rank=RANK, stop_step=stop)

    def check(indices: Any) -> None:
        where = plan.locate(indices, epoch=0)
        same(where.rank, RANK)
        same(where.step, np.repeat(np.arange(stop), sizes))

    return Work(lambda: plan.indices(0, rank=RANK, stop_step=stop), int(sizes.sum()), check)


def inverse(order: ip.Order, effort: Effort) -> Work:
    """Find the positions of indices that lie next to each other in the epoch."""
    num = min(effort.num_indices, order.num_samples)
    indices = order.take(0, 0, num)
    return Work(lambda: order.locate(0, indices), num, lambda out: same(out, np.arange(num)))


def check_batch(plan: ip.Plan, epoch: int, step: int, batch: Any) -> None:
    """Assert that a batch is the plan's slice, and that the inverse finds it there."""
    same(plan.indices(epoch, rank=0, start_step=step, stop_step=step + 1), batch)
    where = plan.locate(batch, epoch)
    same(where.step, step)
    same(where.slot, np.arange(len(batch)))


def batch(n: int, world: int, where: str, remainder: str, effort: Effort) -> Work:
    """Draw one batch, asked for again and again."""
    plan = ip.Plan(ip.Shuffle(n), world_size=world, batch_size=BATCH, remainder=remainder)
    last = plan.steps(0).stop - 1
    step = {"first": 0, "middle": last // 2, "last": last}[where]
    size = int(plan.batch_sizes(0, rank=0, start_step=step, stop_step=step + 1)[0])
    job = partial(plan.batch, 0, step=step, rank=0)
    return Work(job, size, partial(check_batch, plan, 0, step), effort.calls)


def batch_of_new_epochs(effort: Effort) -> Work:
    """Draw batches of another epoch each: no cached keys, no cached layout."""
    plan, epochs = ip.Plan(ip.Shuffle(10**9), world_size=64, batch_size=BATCH), count()
    return Work(
        lambda: plan.batch(next(epochs), step=5, rank=0),
        BATCH,
        lambda drawn: check_batch(plan, next(epochs) - 1, 5, drawn),
        effort.calls,
    )


def stream(n: int, effort: Effort) -> Work:
    """Iterate over a rank's batches, and keep them."""
    plan = ip.Plan(ip.Shuffle(n), world_size=64, batch_size=BATCH)
    stop = min(plan.steps(0).stop, effort.num_indices // BATCH)
    drawn = plan.indices(0, rank=0, stop_step=stop)
    sizes = plan.batch_sizes(0, rank=0, stop_step=stop)

    def check(batches: list[Any]) -> None:
        same(np.concatenate(batches), drawn)
        same([len(each) for each in batches], sizes)

    job = lambda: list(plan.batches(0, rank=0, stop_step=stop))  # noqa: E731
    return Work(job, len(drawn), check, facts={"batches": stop})


def located(num: int, effort: Effort) -> Work:
    """Ask which step and rank read some samples, wherever they are."""
    plan = ip.Plan(ip.Shuffle(10**12), world_size=64, batch_size=BATCH)
    samples = np.random.default_rng(1).integers(10**12, size=num)

    def check(where: Any) -> None:
        for i in range(0, num, max(1, num // 10)):
            place = {"step": int(where.step[i]), "rank": int(where.rank[i])}
            assert plan.batch(int(where.epoch[i]), **place)[where.slot[i]] == samples[i]

    calls = max(1, effort.calls * 64 // (64 + num))
    return Work(lambda: plan.locate(samples, epoch=0), num, check, calls)


SOURCE = """
#include <indexplan/shuffle_v1.h>
void indices(uint64_t n, uint64_t seed, uint32_t epoch, size_t num, uint64_t *out) {
  const shuffle_v1 s = shuffle_v1_make(n, seed, 0, epoch);
  shuffle_v1_fill(&s, 0, num, out);
}
"""


def in_c(n: int, optimise: str, effort: Effort) -> Work:
    """Draw a stretch by the C header, compiled by gcc for this processor."""
    num, wide = min(n, effort.num_indices), ctypes.c_uint64
    folder = Path(__file__).parents[1] / "build" / "measured"
    folder.mkdir(parents=True, exist_ok=True)
    source, library = folder / "indices.c", folder / f"indices{optimise}.so"
    source.write_text(SOURCE)
    flags = [optimise, "-march=native", "-shared", "-fPIC"]
    flags.append(f"-I{Path(ip.__file__).parent / 'include'}")
    subprocess.run(["gcc", *flags, str(source), "-o", str(library)], check=True)  # noqa: S607
    function, out = ctypes.CDLL(str(library)).indices, np.zeros(num, np.int64)
    asked = wide(n), wide(5), ctypes.c_uint32(9), ctypes.c_size_t(num), wide(out.ctypes.data)
    drawn = ip.Shuffle(n, seed=5).take(9, 0, num)
    return Work(lambda: function(*asked), num, lambda _: same(drawn, out))


ORDERS: dict[str, ip.Order] = {
    **{f"Shuffle, n = 1e{digits}": ip.Shuffle(10**digits) for digits in (6, 9, 12)},
    "Sequential, n = 1e9": ip.Sequential(10**9),
    **{
        f"BlockShuffle, n = 1e9, block {size}, window {window}": ip.BlockShuffle(
            10**9, block_size=size, window=window
        )
        for size in (1024, 65536)
        for window in (4, 16)
    },
}
# One thing at a time differs from n = 1e9, 64 ranks, the middle step. A rank reads 256 each time;
# of a million samples, 64 ranks read 252 or 253 in a step, since "spread" evens the steps out.
BATCHES = {
    "n = 1e9, world 64, middle step": (10**9, 64, "middle", "spread"),
    "n = 1e6": (10**6, 64, "middle", "spread"),
    "n = 1e12": (10**12, 64, "middle", "spread"),
    "world 1": (10**9, 1, "middle", "spread"),
    "world 100,000": (10**9, 100_000, "middle", "spread"),
    "step 0": (10**9, 64, "first", "spread"),
    "last step": (10**9, 64, "last", "spread"),
    'remainder "carry"': (10**9, 64, "middle", "carry"),
}
CALLS = [
    *(
        Call(make.__name__, case, partial(make, order), nightly="1e12" in case)
        for make in (stretch, share, inverse)
        for case, order in ORDERS.items()
    ),
    *(
        Call(
            "stretch",
            f"Shuffle, n = {power(n)}, into memory that is there",
            partial(into_memory, n),
            nightly=n > 10**9,
        )
        for n in (10**9, 10**12)
    ),
    *(Call("batch", case, partial(batch, *fields)) for case, fields in BATCHES.items()),
    Call("batch", "first batch of an epoch, another epoch each call", batch_of_new_epochs),
    *(
        Call("stream", f"n = {power(n)}, world 64", partial(stream, n))
        for n in (10**6, 10**9, 10**12)
    ),
    *(
        Call("locate", f"{num:,} of 1e12, world 64", partial(located, num))
        for num in (1, 256, 2**16)
    ),
    *(
        Call("elsewhere", f"C, gcc {optimise}, n = {power(n)}", partial(in_c, n, optimise))
        for optimise in ("-O2", "-O3")
        for n in (10**6, 10**9)
        if shutil.which("gcc")
    ),
]


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(
            call, id=f"{call.table}, {call.case}", marks=[pytest.mark.nightly] * call.nightly
        )
        for call in CALLS
    ],
)
def test_call(call: Call, timed: Callable[..., Any], effort: Effort) -> None:
    """Time a call, and check what it returned."""
    work = call.make(effort)
    output = timed(
        work.job,
        call.table,
        rounds=effort.rounds,
        calls=work.calls,
        case=call.case,
        indices=work.indices,
        **work.facts,
    )
    work.check(output)


# All of them return n int64 in an array of their own, which is what a sampler keeps for an epoch.
# Sizes are even, as Grain's shuffle leaves out indices at some others; see Quality.
@pytest.mark.parametrize(
    ("rival", "size"),
    [
        pytest.param(
            rival,
            size,
            id=f"{rival.order_name}, n = {power(size)}",
            marks=[pytest.mark.nightly]
            * (size not in {10**6, 10**8} or (rival.package, size) == ("numpy", 10**8)),
        )
        for size in (10**3, 10**4, 10**5, 10**6, 10**7, 10**8)
        for rival in present()
        if rival.order_name and size <= rival.largest_order
    ],
)
def test_whole(rival: Rival, size: int, timed: Callable[..., Any], effort: Effort) -> None:
    """Time whole permutations, the one job that all can do.

    At 1e8, memory that a virtual machine has not touched before costs more than the permutation
    (3.1 s against 0.25 s), so the two arrays that are alive at a time are touched first.
    """
    n = min(size, effort.largest)
    np.full(2 * n, 1)
    order = rival.load().order
    order(1000, 1)
    output = timed(
        lambda: order(n, 1),
        "whole permutation",
        rounds=effort.rounds,
        calls=max(1, min(10**6, rival.largest_order) // n),
        case=power(n),
        who=rival.order_name,
        version=rival.version(),
        indices=n,
    )
    assert (output.dtype, output.shape) == (np.int64, (n,))
    same(np.bincount(output, minlength=n), 1)


class Trivial(Sized):
    """A dataset whose samples cost nothing, so that what is left is the cost of the order."""

    def __getitem__(self, index: int) -> int:
        return index


def plan_of(n: int) -> ip.Plan:
    """Return a plan of one rank; "drop", so that all samplers deal the same sizes."""
    return ip.Plan(ip.Shuffle(n), world_size=1, batch_size=BATCH, remainder="drop")


def job_of(n: int) -> Job:
    """Return the job of one rank, which is all of the dataset."""
    return Job(n, world=1, rank=0, batch=BATCH)


TORCH = {rival.name: rival.load() for rival in present() if hasattr(rival.load(), "loader")}
SAMPLERS: dict[str, Callable[[int], Any]] = {
    "indexplan PlanBatchSampler": lambda n: PlanBatchSampler(plan_of(n)),
    **{
        name: lambda n, rival=rival: rival.batch_sampler(job_of(n)) for name, rival in TORCH.items()
    },
}
LOADERS: dict[str, Callable[[Any, int], Any]] = {
    "indexplan PlanLoader": lambda data, workers: PlanLoader(
        data, plan_of(len(data)), num_workers=workers
    ),
    "indexplan PlanBatchSampler": lambda data, workers: DataLoader(
        data, batch_sampler=PlanBatchSampler(plan_of(len(data))), num_workers=workers
    ),
    "indexplan PlanSampler": lambda data, workers: DataLoader(
        data, BATCH, sampler=PlanSampler(plan_of(len(data))), num_workers=workers
    ),
    **{
        name: lambda data, workers, rival=rival: rival.loader(data, job_of(len(data)), workers)
        for name, rival in TORCH.items()
    },
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_sampler(name: str, benchmark: Any, effort: Effort, request: pytest.FixtureRequest) -> None:
    """Time the stream of batches as lists, after the first: the rivals' set-up is not in it."""
    n, num_batches = 8 * effort.num_indices, effort.num_indices // BATCH
    named(benchmark, request, "sampler", {"who": name, "case": "", "indices": effort.num_indices})

    def begun() -> tuple[tuple[Iterator[Any]], dict[str, Any]]:
        batches = iter(SAMPLERS[name](n))
        next(batches)
        return (islice(batches, num_batches),), {}

    # as in training, no batch is kept
    benchmark.pedantic(partial(deque, maxlen=0), setup=begun, rounds=effort.rounds)
    (batches,), _ = begun()
    drawn = list(batches)
    assert [BATCH] * num_batches == [len(each) for each in drawn]
    assert num_batches * BATCH == len(set().union(*drawn))
    assert all(type(index) is int for index in drawn[0])


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", LOADERS)
def test_loader(name: str, workers: int, timed: Callable[..., Any], effort: Effort) -> None:
    """Time a whole pass over a DataLoader, everything included."""
    n = effort.num_indices // 4
    loader, facts = LOADERS[name](Trivial(n), workers), {"who": name, "indices": n}
    case = f"{workers} workers"
    batches = timed(lambda: list(loader), "loader", rounds=effort.rounds, case=case, **facts)
    assert list(range(n)) == torch.cat(batches).sort().values.tolist()


@pytest.mark.parametrize("n", [10**8, 10**9, 10**12])
def test_first_batch(n: int, timed: Callable[..., Any], effort: Effort) -> None:
    """Time a new loader's first batch, after a first small plan."""
    next(iter(PlanLoader(Trivial(1000), plan_of(1000))))
    drawn = timed(
        lambda: next(iter(PlanLoader(Trivial(n), plan_of(n)))),
        "first",
        rounds=effort.rounds,
        case=f"a new PlanLoader's first batch, n = {power(n)}",
        indices=BATCH,
    )
    same(plan_of(n).batch(0, step=0, rank=0), drawn)


@pytest.mark.parametrize("where", ["first", "middle", "last"])
def test_resume(where: str, timed: Callable[..., Any], effort: Effort) -> None:
    """Time loading a state and drawing the first batch after it."""
    whole = plan_of(10**12)
    last = whole.steps(0).stop - 1
    step = {"first": 1, "middle": last // 2, "last": last}[where]
    state = {"version": 1, "cursor": whole.cursor(0, step=step).to_dict(), "pass": 0}
    sampler = PlanBatchSampler(plan_of(10**12))

    def resume() -> list[Any]:
        sampler.load_state_dict(state)
        return list(islice(sampler, 1))

    case = f"resume at the {where} step of 1e12 samples, and its batch"
    (drawn,) = timed(resume, "first", rounds=effort.rounds, case=case, indices=BATCH)
    assert whole.batch(0, step=step, rank=0).tolist() == drawn
