"""Errors of the iterators that Megatron reads, and of what makes them."""

from __future__ import annotations

import argparse
import sys
from typing import Any
from unittest.mock import patch

import indexplan as ip
from indexplan_torch.megatron import PlanIterator, datasets_provider
from tests.errors.catalogue.made import Case

ORDER = ip.Shuffle(10)
PAIR = (range(10), ORDER)


def iterator(micro_batch_size: int = 2, **options: Any) -> PlanIterator:
    """Return the only rank's iterator."""
    given: dict[str, Any] = {"micro_batch_size": micro_batch_size, "consumed_samples": 0}
    return PlanIterator(range(10), ORDER, rank=0, world_size=1, **given, **options)


def provided(*others: Any, **args: Any) -> None:
    """Call the provider as Megatron does, with some arguments of Megatron's."""
    datasets_provider(PAIR, *others, args=argparse.Namespace(**args))([10, 0, 0])


def without_megatron() -> None:
    """Ask for Megatron's arguments where nobody can import it."""
    with patch.dict(sys.modules, {"megatron.training": None}):
        datasets_provider((range(10), ORDER))([10, 0, 0])


def other_version() -> None:
    """Load a state of a later version."""
    each = iterator()
    each.load_state({**each.save_state(), "version": 2})


CASES: list[Case] = [
    ("a micro-batch of nothing", lambda: iterator(0)),
    ("a ledger of an iterator whose state is a count", lambda: iterator(ledger="run.ledger")),
    ("a state of something else", lambda: iterator().load_state({"model": 1})),
    ("a state of another version", other_version),
    ("a provider of a dataset without an order", lambda: datasets_provider(range(10))),  # type: ignore[arg-type]
    ("a provider where Megatron makes the loaders", lambda: provided(dataloader_type="single")),
    ("a provider for a whole validation", lambda: provided(PAIR, full_validation=True)),
    ("a provider of phases", lambda: provided(phase_transition_iterations=[2])),
    ("a provider without Megatron or its numbers", without_megatron),
]
