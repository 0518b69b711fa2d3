"""Errors of indices that JAX computes: of what is known before anything is traced."""

from __future__ import annotations

import numpy as np

import indexplan as ip
from indexplan_jax import steady
from tests.errors.catalogue.made import Case

PLAN = ip.Plan(ip.Shuffle(100), world_size=2, batch_size=3, remainder="drop")
CARRY = steady.steady_of(PLAN.replace(remainder="carry"))
FLOAT = np.dtype(np.float32)
SCHEDULE = [ip.Phase(size=2), ip.Phase(at=(1, 0), size=4)]


def given(plan: object) -> None:
    """Ask for the indices of a plan's steps."""
    steady.steady_of(plan)


def of_a_rank(plan: ip.Plan) -> None:
    """Ask for the indices of a rank."""
    steady.share_of(plan, steady.steady_of(plan))


CASES: list[Case] = [
    ("a shuffle of too many for 32 bits", lambda: steady.size("n", 2**31)),
    ("a shuffle with a negative seed", lambda: steady.seed(-1)),
    ("a shuffle of a late epoch", lambda: steady.epoch(2**32)),
    ("a rank past the last", lambda: steady.rank(2, 2)),
    ("a step past the last of a traced epoch", lambda: steady.step(16, 16)),
    ("a traced epoch for each lane", lambda: steady.check_shape("epoch", (4,))),
    (
        "a traced epoch with a fraction",
        lambda: steady.check_dtype("epoch", "a single integer", FLOAT, "use .astype(int)"),
    ),
    ("a step past the end of the run", lambda: steady.check_end(CARRY, 2**32 - 1, 16, 6)),
    (
        "positions that are no integers",
        lambda: steady.integers("positions", np.zeros(3, FLOAT), np.asarray),
    ),
    (
        "positions in rows of several lengths",
        lambda: steady.integers("positions", [[1], [1, 2]], np.asarray),
    ),
    ("the steps of no plan", lambda: given(range(3))),
    ("the steps of another order", lambda: given(PLAN.replace(order=ip.Weighted([1] * 9)))),
    ("the steps of sub-epochs", lambda: given(PLAN.replace(sub_epochs=2))),
    ("balanced steps", lambda: given(PLAN.replace(balance=ip.Balance([1] * 100)))),
    ("the steps of a resumed plan", lambda: given(PLAN.resume(PLAN.cursor(0, step=3)))),
    ("the steps of phases", lambda: given(PLAN.replace(batch_size=SCHEDULE))),
    (
        "the steps of too large batches",
        lambda: given(PLAN.replace(batch_size=2**30, remainder="pad")),
    ),
    ("the steps of too many samples", lambda: given(PLAN.replace(order=ip.Shuffle(2**31)))),
    ("steps that differ in size", lambda: given(PLAN.replace(remainder="spread"))),
    (
        "a rank of open ranks",
        lambda: of_a_rank(PLAN.replace(world_size=None, global_batch_size=6)),
    ),
    (
        "a rank of ranks that do not divide a step",
        lambda: of_a_rank(PLAN.replace(global_batch_size=5)),
    ),
]
