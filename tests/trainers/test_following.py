"""Weights that follow the loss of each source: resumed exactly, and known to the ledger."""

from __future__ import annotations

from pathlib import Path

import pytest

import indexplan as ip
from tests.trainers.following_runs import EPOCHS, EVERY, SAVED
from tests.trainers.ranks import run_ranks
from tests.trainers.test_hf_trainer import ON_CPU

RUNS = "tests.trainers.following_runs"
RUN = f"{RUNS}:run"
STEPS = EPOCHS * 7  # each of 16 samples or fewer, of 111


@pytest.mark.parametrize("by", ["by_a_loop", "by_lightning", "by_hf_trainer"])
def test_weights_follow_the_loss(by: str, tmp_path: Path) -> None:
    """Ranks come to the same weights, and new processes go on as if there had been no stop."""
    whole = run_ranks(RUN, 2, by, str(tmp_path), None, **ON_CPU)
    assert whole[0]["weights"] == whole[1]["weights"]
    shares = [shares for _, shares in whole[0]["weights"]]
    assert 1 + STEPS // EVERY == len(shares) == len(set(map(tuple, shares)))
    check_ledger(tmp_path / "run.ledger", [each["read"] for each in whole])
    for saved in SAVED:
        again = run_ranks(RUN, 2, by, str(tmp_path), saved, **ON_CPU)
        for rest, each in zip(again, whole, strict=True):
            assert each == {**rest, "read": each["read"][:saved] + rest["read"]}
        check_ledger(tmp_path / "run.ledger", [each["read"] for each in whole])


def check_ledger(path: Path, read: list[list[list[int]]]) -> None:
    """Check that a ledger says of each step, rank and sample what was read."""
    ledger = ip.Ledger(path)
    assert ledger.verify().ok
    assert STEPS == ledger.step
    for rank, batches in enumerate(read):
        assert batches == [ledger.batch(step, rank).tolist() for step in range(STEPS)]
    places: dict[int, set[tuple[int, int]]] = {}
    for rank, batches in enumerate(read):
        for step, batch in enumerate(batches):
            for sample in batch:
                places.setdefault(sample, set()).add((step, rank))
    for sample, wanted in places.items():
        assert wanted == {(each.step, each.rank) for each in ledger.reads(sample)}


def test_ranks_that_want_other_weights_are_refused(tmp_path: Path) -> None:
    """Without the sum over ranks, both name the difference at the next step."""
    told = run_ranks(f"{RUNS}:unreduced", 2, str(tmp_path))
    for each in told:
        assert "ranks must read the same plan; got " in each
