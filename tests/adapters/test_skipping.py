"""A run that is resumed skips what it has read once: by the loader's state, or by a framework."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest
from accelerate import skip_first_batches
from torch.utils.data import DataLoader

import indexplan as ip
from indexplan_torch import PlanBatchSampler, PlanLoader

PLAN = ip.Plan(ip.Shuffle(40, seed=0), world_size=1, batch_size=4)


def of_sampler(kind: Any) -> Callable[[ip.Plan], DataLoader[Any]]:
    """Return what makes torch's loader of a batch sampler."""
    return lambda plan: DataLoader(range(40), batch_sampler=kind(plan))  # type: ignore[arg-type]


MADE = [
    lambda plan: PlanLoader(range(40), plan),
    of_sampler(PlanBatchSampler),
]


@pytest.mark.parametrize("make", MADE)
def test_batches_are_not_skipped_twice(make: Any) -> None:
    """Accelerate skips batches, or the state does; both together are refused, with both cures."""
    whole = [batch.tolist() for batch in make(PLAN)]
    resumed = PLAN.resume(PLAN.cursor(0, step=3))
    message = (
        "a loader that was resumed must be the only one that skips what the run has read; got "
        "accelerate's SkipBatchSampler, which skips 3 once more; leave out skip_first_batches, "
        "or load_state_dict and plan.resume"
    )
    with pytest.raises(ip.IndexPlanError, match=f"^{re.escape(message)}$"):
        list(skip_first_batches(make(resumed), 3))
    for alone in (skip_first_batches(make(PLAN), 3), make(resumed)):
        assert whole[3:] == [batch.tolist() for batch in alone]
    nothing = skip_first_batches(make(resumed), 0)
    assert whole[3:] == [batch.tolist() for batch in nothing]


def test_a_later_pass_of_a_resumed_run_may_be_skipped_into() -> None:
    """Only the pass in which a run is resumed has been skipped into by its state."""
    loader = PlanLoader(range(40), PLAN)
    list(islice(loader, 3))
    resumed = PlanLoader(range(40), PLAN)
    resumed.load_state_dict(loader.state_dict())
    assert 7 == len(list(resumed))
    resumed.set_epoch(1)
    expected = [PLAN.batch(1, step=step, rank=0).tolist() for step in range(2, 10)]
    assert expected == [batch.tolist() for batch in skip_first_batches(resumed, 2)]
