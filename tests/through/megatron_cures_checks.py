"""Cures of the errors about Megatron that need it, followed; see tests/errors/cured."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from indexplan_torch.megatron import datasets_provider
from tests.errors.catalogue.megatron import CASES, PAIR

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of Megatron, about what is not installed
    from megatron.core import parallel_state

pytestmark = pytest.mark.filterwarnings("ignore")  # Megatron's own, of what is not installed

NUMBERS: dict[str, Any] = {
    **dict.fromkeys(("consumed_valid_samples", "consumed_train_samples", "num_workers"), 0),
    "micro_batch_size": 2,
    "global_batch_size": 4,
}


def provided(*others: Any, **args: Any) -> Any:
    """Read a micro-batch of each that the provider makes on the only rank."""
    given = argparse.Namespace(**NUMBERS | args)
    provider = datasets_provider(PAIR, *others, args=given)
    train, valid, test = provider([10, 0, 0])
    assert 2 == len(next(train))
    for each in (valid, test):
        assert each is None or 2 == len(next(iter(each)))


CURED: dict[str, Callable[[], Any]] = {
    "a provider where Megatron makes the loaders": lambda: provided(dataloader_type="external"),
    "a provider for a whole validation": lambda: [
        provided(PAIR, full_validation=False),
        provided(full_validation=True),
    ],
    "a provider of phases": lambda: provided(consumed_train_samples=100),
    "a provider without Megatron or its numbers": provided,
}


@pytest.mark.parametrize("name", CURED)
def test_the_cured_call_succeeds(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who does what the error says gets micro-batches."""
    assert name in dict(CASES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(parallel_state, "_MPU_DATA_PARALLEL_WORLD_SIZE", 1)
    monkeypatch.setattr(parallel_state, "_MPU_DATA_PARALLEL_RANK", 0)
    CURED[name]()
