"""Histories of loops over loaders that trainers wrap, or that have two workers.

Each batch is held against the model of a loop. They are the same in each run; `python -m
tests.histories Accelerate`, and `PlanLoader --workers 2`, draw others.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.histories.loops import Histories, InADataLoader
from tests.histories.torchdata import TorchdataHistories
from tests.histories.trainers import TrainerHistories
from tests.histories.wrapped import InFabric, InTransformers, Prepared

# Accelerate and torchdata call it
pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")

SHORT = settings(stateful_step_count=20, max_examples=150, derandomize=True, database=None)
FEW = settings(SHORT, stateful_step_count=10, max_examples=3, suppress_health_check=[*HealthCheck])

TestAccelerate = Prepared.TestCase
TestFabric = InFabric.TestCase
TestTransformers = InTransformers.TestCase
TestAccelerate.settings = TestFabric.settings = TestTransformers.settings = SHORT


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
