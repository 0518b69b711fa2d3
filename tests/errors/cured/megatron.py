"""Cures of the iterators that Megatron reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import indexplan as ip
from tests.errors.catalogue.megatron import iterator


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
    "a micro-batch of nothing": lambda: next(iterator(2)),
    "a ledger of an iterator whose state is a count": recorded,
    "a state of something else": loaded,
}
