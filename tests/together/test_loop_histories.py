"""A few histories of loops over loaders with two workers, held against the model of a loop.

They are the same in each run; `python -m tests.histories --workers 2` draws others.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.support.histories import Histories, InADataLoader
from tests.support.torchdata_histories import TorchdataHistories
from tests.support.trainer_histories import TrainerHistories

pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # torchdata calls it

FEW = settings(
    stateful_step_count=10,
    max_examples=3,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize(
    ("kind", "persistent"),
    [
        (Histories, False),
        (InADataLoader, False),
        (TorchdataHistories, True),
        (TrainerHistories, True),
    ],
)
def test_histories_with_workers(kind: Any, persistent: bool) -> None:
    """Workers draw ahead of the loop, and persistent ones stay from pass to pass."""
    machine = kind.with_workers(2)
    machine.workers = {**machine.workers, "persistent_workers": persistent}
    run_state_machine_as_test(machine, settings=FEW)
