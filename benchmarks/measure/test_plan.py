"""Cost of questions to a plan: one batch, a stream of batches, where a sample is read."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from benchmarks.conftest import Effort

BATCH, RANK = 256, 0
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
        lambda: plan.batch(0, step=step, rank=RANK),
        "batch",
        rounds=effort.rounds,
        calls=effort.calls,
        case=row,
        indices=int(plan.batch_sizes(0, rank=RANK, start_step=step, stop_step=step + 1)[0]),
    )
    check_batch(plan, batch, 0, step)


def test_batch_of_new_epochs(timed: Callable[..., Any], effort: Effort) -> None:
    """Time batches that each are the first of their epoch: no cached keys, no cached layout."""
    plan = ip.Plan(ip.Shuffle(10**9), world_size=64, batch_size=BATCH)
    epochs = count()
    batch = timed(
        lambda: plan.batch(next(epochs), step=5, rank=RANK),
        "batch",
        rounds=effort.rounds,
        calls=effort.calls,
        case="first batch of an epoch, another epoch each call",
        indices=BATCH,
    )
    check_batch(plan, batch, next(epochs) - 1, 5)


def check_batch(plan: ip.Plan, batch: Any, epoch: int, step: int) -> None:
    """Assert that a batch is the plan's slice, and that the inverse finds it there."""
    share = plan.indices(epoch, rank=RANK, start_step=step, stop_step=step + 1)
    np.testing.assert_array_equal(batch, share)
    where = plan.locate(batch, epoch)
    np.testing.assert_array_equal(where.step, step)
    np.testing.assert_array_equal(where.slot, np.arange(len(batch)))


@pytest.mark.parametrize("row", ["n = 1e6", "n = 1e9", "n = 1e12"])
def test_stream(row: str, timed: Callable[..., Any], effort: Effort) -> None:
    """Time the iteration over a rank's batches."""
    plan = ip.Plan(ip.Shuffle(int(float(row[4:]))), world_size=64, batch_size=BATCH)
    stop = min(plan.steps(0).stop, effort.num_indices // BATCH)
    share = plan.indices(0, rank=RANK, stop_step=stop)
    batches = timed(
        lambda: list(plan.batches(0, rank=RANK, stop_step=stop)),
        "stream",
        rounds=effort.rounds,
        case=f"{row}, world 64",
        indices=len(share),
        batches=stop,
    )
    np.testing.assert_array_equal(np.concatenate(batches), share)
    np.testing.assert_array_equal(
        [len(batch) for batch in batches], plan.batch_sizes(0, rank=RANK, stop_step=stop)
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
        case="of 1e12, world 64",
        indices=num,
    )
    for i in range(0, num, max(1, num // 10)):
        batch = plan.batch(int(where.epoch[i]), step=int(where.step[i]), rank=int(where.rank[i]))
        assert batch[where.slot[i]] == samples[i]


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
