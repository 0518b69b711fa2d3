"""A run that is resumed skips what it has read once: by the loader's state, or by a framework."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from accelerate import Accelerator, skip_first_batches

import indexplan as ip
from indexplan_torch import PlanLoader
from indexplan_torch.accelerate import prepare

PLAN = ip.Plan(ip.Shuffle(40, seed=0), world_size=1, batch_size=4)
RESUMED = PLAN.resume(PLAN.cursor(0, step=3))


def loaded() -> PlanLoader:
    """A loader with the state of another, which has read three steps."""
    saved, loader = (PlanLoader(range(40), PLAN) for _ in range(2))
    list(islice(saved, 3))
    loader.load_state_dict(saved.state_dict())
    return loader


@pytest.mark.parametrize("skip", [0, 3])
@pytest.mark.parametrize(
    "make",
    [
        loaded,
        lambda: PlanLoader(range(40), RESUMED),
        lambda: prepare(Accelerator(cpu=True), PlanLoader(range(40), PLAN)),
        lambda: PlanLoader(range(40), PLAN, ledger="run.ledger"),
    ],
    ids=["a state", "plan.resume", "prepare", "a ledger"],
)
def test_batches_are_not_skipped_twice(
    make: Any, skip: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loader that resumes by itself hands its batches to no other, in any pass."""
    monkeypatch.chdir(tmp_path)
    loader = make()
    for number in (0, 1):
        loader.set_epoch(number)
        with pytest.raises(ip.IndexPlanError, match=r"^a PlanLoader must hand its batches to the "):
            next(iter(skip_first_batches(loader, skip)))
        list(loader)


def test_either_of_the_two_reads_the_rest() -> None:
    """Accelerate skips batches of a loader without a state, or the state does."""
    whole = [batch.tolist() for batch in PLAN.batches(0, rank=0)]
    alone = [skip_first_batches(PlanLoader(range(40), PLAN), 3), loaded()]
    for loader in [*alone, PlanLoader(range(40), RESUMED)]:
        assert whole[3:] == [batch.tolist() for batch in loader]
