"""Errors of the iterators that Megatron reads."""

from __future__ import annotations

from typing import Any

import indexplan as ip
from indexplan_torch.megatron import PlanIterator
from tests.errors.catalogue.made import Case

ORDER = ip.Shuffle(10)


def iterator(micro_batch_size: int = 2, **options: Any) -> PlanIterator:
    """Return the only rank's iterator."""
    given: dict[str, Any] = {"micro_batch_size": micro_batch_size, "consumed_samples": 0}
    return PlanIterator(range(10), ORDER, rank=0, world_size=1, **given, **options)


def other_version() -> None:
    """Load a state of a later version."""
    each = iterator()
    each.load_state({**each.save_state(), "version": 2})


CASES: list[Case] = [
    ("a ledger of an iterator whose state is a count", lambda: iterator(ledger="run.ledger")),
    ("a state of something else", lambda: iterator().load_state({"model": 1})),
    ("a state of another version", other_version),
]
