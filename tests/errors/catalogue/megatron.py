"""Errors of the iterators that Megatron reads."""

from __future__ import annotations

from collections.abc import Callable
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


# the cures, followed


def loaded() -> None:
    """Load what save_state returned."""
    saved = iterator()
    next(saved)
    iterator().load_state(saved.save_state())


def recorded() -> None:
    """Record the places between two counts."""
    read = iterator()
    next(read)
    ip.Ledger("run.ledger").record(read.plan, read.plan.cursor_at(read.consumed_samples))
    assert ip.Ledger("run.ledger").step == 1


CURED: dict[str, Callable[[], Any]] = {
    "a ledger of an iterator whose state is a count": recorded,
    "a state of something else": loaded,
}
