"""Histories of loops over loaders that trainers wrap, each batch held against the model of a loop.

They are the same in each run; `python -m tests.histories` draws others, and with workers too.
"""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.support.wrapped_histories import InFabric, InTransformers, Prepared

pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # Accelerate's

SHORT = settings(stateful_step_count=20, max_examples=40, derandomize=True, database=None)

TestAccelerate = Prepared.TestCase
TestFabric = InFabric.TestCase
TestTransformers = InTransformers.TestCase
TestAccelerate.settings = TestFabric.settings = TestTransformers.settings = SHORT
