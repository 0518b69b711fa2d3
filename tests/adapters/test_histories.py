"""Histories of loops without workers, each batch held against the model of a loop.

They are the same in each run; `python -m tests.histories PlanLoader` draws others.
"""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.histories.loops import Histories, InADataLoader
from tests.histories.torchdata import TorchdataHistories
from tests.histories.trainers import InStep, TrainerHistories
from tests.support.examples import examples

pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # torchdata calls it

SHORT = settings(examples(120), stateful_step_count=20, derandomize=True, database=None)

TestPlanLoader = Histories.TestCase
TestDataLoader = InADataLoader.TestCase
TestStatefulDataLoader = TorchdataHistories.TestCase
TestTrainers = pytest.mark.slow(TrainerHistories.TestCase)  # each begins with a Trainer
TestInStep = InStep.TestCase
TestPlanLoader.settings = TestDataLoader.settings = TestStatefulDataLoader.settings = SHORT
TestTrainers.settings = TestInStep.settings = SHORT
