"""Costs of calls: of orders, of plans, of torch samplers and loaders, and of columns."""

from __future__ import annotations

import hashlib
import statistics
from collections import deque
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import indexplan as ip
from benchmarks.conftest import Effort, named
from benchmarks.contenders.planners import Job, Rival, Sized, present
from benchmarks.measure.columns import Rounded, growth
from benchmarks.render.tables import power
from indexplan_torch import PlanBatchSampler, PlanLoader, PlanSampler

WORLD, BATCH, RANK = 64, 256, 7
WHOLE = (10**3, 10**4, 10**5, 10**6, 10**7, 10**8)

ORDERS = [
    pytest.param(order, id=label, marks=[pytest.mark.nightly] * ("1e12" in label))
    for label, order in {
        "Shuffle, n = 1e6": ip.Shuffle(10**6),
        "Shuffle, n = 1e9": ip.Shuffle(10**9),
        "Shuffle, n = 1e12": ip.Shuffle(10**12),
        "Sequential, n = 1e9": ip.Sequential(10**9),
        **{
            f"BlockShuffle, n = 1e9, block {size}, window {window}": ip.BlockShuffle(
                10**9, block_size=size, window=window
            )
            for size in (1024, 65536)
            for window in (4, 16)
        },
    }.items()
]


def label_of(request: pytest.FixtureRequest) -> str:
    """Return the name of the parameters, which is the row's name in the report."""
    return str(request.node.callspec.id)


@pytest.mark.parametrize("order", ORDERS)
def test_stretch(
    order: ip.Order, timed: Callable[..., Any], effort: Effort, request: pytest.FixtureRequest
) -> None:
    """Time a contiguous interval from the middle of an epoch."""
    count = min(effort.num_indices, order.num_samples)
    start = (order.num_samples - count) // 2
    indices = timed(
        lambda: order.take(0, start, start + count),
        "stretch",
        rounds=effort.rounds,
        case=label_of(request),
        indices=count,
    )
    np.testing.assert_array_equal(order.locate(0, indices), np.arange(start, start + count))


@pytest.mark.parametrize("n", [10**9, pytest.param(10**12, marks=pytest.mark.nightly)])
def test_stretch_into_memory_that_is_there(
    n: int, timed: Callable[..., Any], effort: Effort
) -> None:
    """Time the same without the pages that the system has to zero first, as builds fill them."""
    order, count = ip.Shuffle(n), effort.num_indices
    runs = np.array([n // 2]), np.array([n // 2 + count])
    out = np.zeros(count, np.int64)
    timed(
        lambda: order.fill(0, *runs, out),
        "stretch",
        rounds=effort.rounds,
        case=f"Shuffle, n = 1e{len(str(n)) - 1}, into memory that is there",
        indices=count,
    )
    np.testing.assert_array_equal(order.take(0, n // 2, n // 2 + count), out)


@pytest.mark.parametrize("order", ORDERS)
def test_share(
    order: ip.Order, timed: Callable[..., Any], effort: Effort, request: pytest.FixtureRequest
) -> None:
    """Time one rank's share of 64, of as many steps as make the same number of indices."""
    plan = ip.Plan(order, world_size=WORLD, batch_size=BATCH)
    stop = min(plan.steps(0).stop, effort.num_indices // BATCH)
    sizes = plan.batch_sizes(0, rank=RANK, stop_step=stop)
    indices = timed(
        lambda: plan.indices(0, rank=RANK, stop_step=stop),
        "share",
        rounds=effort.rounds,
        case=label_of(request),
        indices=int(sizes.sum()),
    )
    where = plan.locate(indices, epoch=0)
    np.testing.assert_array_equal(where.rank, RANK)
    np.testing.assert_array_equal(where.step, np.repeat(np.arange(stop), sizes))


@pytest.mark.parametrize("order", ORDERS)
def test_inverse(
    order: ip.Order, timed: Callable[..., Any], effort: Effort, request: pytest.FixtureRequest
) -> None:
    """Time the positions of indices that lie next to each other in the epoch."""
    count = min(effort.num_indices, order.num_samples)
    indices = order.take(0, 0, count)
    positions = timed(
        lambda: order.locate(0, indices),
        "inverse",
        rounds=effort.rounds,
        case=label_of(request),
        indices=count,
    )
    np.testing.assert_array_equal(positions, np.arange(count))


def check_permutation(order: Any, n: int) -> None:
    """Assert that `order` is int64 and holds every integer below n once."""
    assert (order.dtype, order.shape) == (np.int64, (n,))
    assert (order.min(), order.max()) == (0, n - 1)
    seen = np.zeros(n, np.bool_)
    seen[order] = True
    assert seen.all()


# All of them return n int64 in an array of their own, which is what a sampler keeps for an epoch.
# Sizes are even, as Grain's shuffle leaves out indices at some others; see Quality.
@pytest.mark.parametrize(
    ("rival", "size"),
    [
        pytest.param(
            rival,
            size,
            id=f"{rival.order_name}, n = {power(size)}",
            marks=[pytest.mark.nightly] * (size == 10**7),
        )
        for size in WHOLE
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
        rounds=min(effort.rounds, 5 if n > 10**7 else 9),
        calls=max(1, min(10**6, rival.largest_order) // n),
        case=power(n),
        who=rival.order_name,
        version=rival.version(),
        indices=n,
    )
    check_permutation(output, n)


FIRST = 0
MIDDLE = "middle"

# One thing at a time differs from n = 1e9, 64 ranks, the middle step. A rank reads 256 each time;
# of a million samples, 64 ranks read 252 or 253 in a step, since "spread" evens the steps out.
BATCHES = {
    "n = 1e9, world 64, middle step": (10**9, 64, MIDDLE, "spread"),
    "n = 1e6": (10**6, 64, MIDDLE, "spread"),
    "n = 1e12": (10**12, 64, MIDDLE, "spread"),
    "n = 1e15": (10**15, 64, MIDDLE, "spread"),
    "world 1": (10**9, 1, MIDDLE, "spread"),
    "world 100,000": (10**9, 100_000, MIDDLE, "spread"),
    "step 0": (10**9, 64, "first", "spread"),
    "last step": (10**9, 64, "last", "spread"),
    'remainder "drop"': (10**9, 64, MIDDLE, "drop"),
    'remainder "pad"': (10**9, 64, MIDDLE, "pad"),
    'remainder "carry"': (10**9, 64, MIDDLE, "carry"),
}


def step_of(plan: ip.Plan, where: str) -> int:
    """Return the number of the first, middle or last step."""
    last = plan.steps(0).stop - 1
    return {"first": 0, MIDDLE: last // 2, "last": last}[where]


@pytest.mark.parametrize("row", BATCHES)
def test_batch(row: str, timed: Callable[..., Any], effort: Effort) -> None:
    """Time one batch, asked for again and again."""
    n, world_size, where, remainder = BATCHES[row]
    plan = ip.Plan(ip.Shuffle(n), world_size=world_size, batch_size=BATCH, remainder=remainder)
    step = step_of(plan, where)
    batch = timed(
        lambda: plan.batch(0, step=step, rank=FIRST),
        "batch",
        rounds=effort.rounds,
        calls=effort.calls,
        case=row,
        indices=int(plan.batch_sizes(0, rank=FIRST, start_step=step, stop_step=step + 1)[0]),
    )
    check_batch(plan, batch, 0, step)


def test_batch_of_new_epochs(timed: Callable[..., Any], effort: Effort) -> None:
    """Time batches that each are the first of their epoch: no cached keys, no cached layout."""
    plan = ip.Plan(ip.Shuffle(10**9), world_size=64, batch_size=BATCH)
    epochs = count()
    batch = timed(
        lambda: plan.batch(next(epochs), step=5, rank=FIRST),
        "batch",
        rounds=effort.rounds,
        calls=effort.calls,
        case="first batch of an epoch, another epoch each call",
        indices=BATCH,
    )
    check_batch(plan, batch, next(epochs) - 1, 5)


def check_batch(plan: ip.Plan, batch: Any, epoch: int, step: int) -> None:
    """Assert that a batch is the plan's slice, and that the inverse finds it there."""
    share = plan.indices(epoch, rank=FIRST, start_step=step, stop_step=step + 1)
    np.testing.assert_array_equal(batch, share)
    where = plan.locate(batch, epoch)
    np.testing.assert_array_equal(where.step, step)
    np.testing.assert_array_equal(where.slot, np.arange(len(batch)))


@pytest.mark.parametrize("row", ["n = 1e6", "n = 1e9", "n = 1e12"])
def test_stream(row: str, timed: Callable[..., Any], effort: Effort) -> None:
    """Time the iteration over a rank's batches."""
    plan = ip.Plan(ip.Shuffle(int(float(row[4:]))), world_size=64, batch_size=BATCH)
    stop = min(plan.steps(0).stop, effort.num_indices // BATCH)
    share = plan.indices(0, rank=FIRST, stop_step=stop)
    batches = timed(
        lambda: list(plan.batches(0, rank=FIRST, stop_step=stop)),
        "stream",
        rounds=effort.rounds,
        case=f"{row}, world 64",
        indices=len(share),
        batches=stop,
    )
    np.testing.assert_array_equal(np.concatenate(batches), share)
    np.testing.assert_array_equal(
        [len(batch) for batch in batches], plan.batch_sizes(0, rank=FIRST, stop_step=stop)
    )


@pytest.mark.parametrize("num", [1, 256, 2**16])
def test_locate(num: int, timed: Callable[..., Any], effort: Effort) -> None:
    """Time the question which step and rank read some samples, wherever they are."""
    plan = ip.Plan(ip.Shuffle(10**12), world_size=64, batch_size=BATCH)
    samples = np.random.default_rng(1).integers(10**12, size=num)
    where = timed(
        lambda: plan.locate(samples, epoch=0),
        "locate",
        rounds=effort.rounds,
        calls=max(1, effort.calls * 64 // (64 + num)),
        case=f"{num:,} of 1e12, world 64",
        indices=num,
    )
    for i in range(0, num, max(1, num // 10)):
        batch = plan.batch(int(where.epoch[i]), step=int(where.step[i]), rank=int(where.rank[i]))
        assert batch[where.slot[i]] == samples[i]


@pytest.mark.nightly
def test_verify(timed: Callable[..., Any], effort: Effort) -> None:
    """Time the proof that a plan of 1e12 samples keeps the laws."""
    plan = ip.Plan(ip.Shuffle(10**12), world_size=64, batch_size=BATCH, sub_epochs=40)
    rounds, epochs = (3, 3) if effort.num_indices >= 2**20 else (1, 1)
    report = timed(
        lambda: ip.verify(plan, epochs=range(epochs)),
        "verify",
        rounds=rounds,
        warmup=0,
        case=f"{epochs} epochs of 1e12, 40 sub-epochs",
        indices=epochs * 10**12,
    )
    assert report.ok


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
def test_sampler(name: str, benchmark: Any, effort: Effort, request: pytest.FixtureRequest) -> None:
    """Time the stream of batches as lists, after the first: the rivals' set-up is not in it."""
    n, num_batches = 8 * effort.num_indices, effort.num_indices // BATCH
    named(benchmark, request, "sampler", {"who": name, "case": "", "indices": effort.num_indices})

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


BLOCK = 2**22


def plain(path: Path, dtype: str, length: int) -> str:
    """Return the sha256 that a column has, by one call of hashlib over the mapped numbers."""
    digest = hashlib.sha256(f"{dtype} {length}\n".encode())
    digest.update(np.load(path, mmap_mode="r").data)
    return digest.hexdigest()


@pytest.mark.parametrize(
    "dtype", ["<f8", *(pytest.param(each, marks=pytest.mark.nightly) for each in ("<i8", "<u4"))]
)
def test_hash(dtype: str, timed: Callable[..., Any], effort: Effort, tmp_path: Path) -> None:
    """Hash the numbers of a warm file, in turns with hashlib alone, by the time of the CPU."""
    n = min(10**8, effort.largest)
    path = tmp_path / "a.npy"
    numbers = np.lib.format.open_memmap(path, "w+", dtype, (n,))
    for start in range(0, n, BLOCK):
        block = np.arange(start, min(n, start + BLOCK))
        numbers[start : start + BLOCK] = -block if dtype == "<i8" else block
    numbers.flush()
    column = ip.Column(path)
    if dtype == "<f8":
        batch, grown = growth(Rounded(column, n))
        assert list(range(n // 2, n // 2 + BATCH)) == batch
    seconds: dict[str, list[float]] = {"ours": [], "plain": []}
    for _ in range(min(effort.rounds, 5)):
        for name, job in {
            "plain": lambda: plain(path, dtype, n),
            "ours": lambda: ip.Column(path).to_dict()["sha256"],
        }.items():
            begin = process_time()
            digest = job()
            seconds[name].append(process_time() - begin)
            assert column.identity["sha256"] == digest
    pairs = zip(seconds["plain"], seconds["ours"], strict=True)
    bytes_of = n * int(dtype[-1])
    identity = timed(
        lambda: ip.Column(path).to_dict(),
        "columns",
        rounds=min(effort.rounds, 5),
        case=f"{dtype}, n = 1e{len(str(n)) - 1}",
        indices=n,
        num_bytes=bytes_of,
        bytes_per_cpu_second=bytes_of / statistics.median(seconds["ours"]),
        plain_per_cpu_second=bytes_of / statistics.median(seconds["plain"]),
        ratio=statistics.median(theirs / ours for theirs, ours in pairs),
        **({"grown_bytes": grown} if dtype == "<f8" else {}),
    )
    assert {"dtype": dtype, "length": n, "sha256": digest} == identity
