"""Cures of the iterators that Megatron reads, followed where Megatron need not be installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from indexplan_torch.megatron import datasets_provider
from tests.errors.catalogue.megatron import PAIR, iterator


def loaded() -> None:
    """Load what save_state returned."""
    saved = iterator()
    next(saved)
    iterator().load_state(saved.save_state())


CURED: dict[str, Callable[[], Any]] = {
    "a micro-batch of nothing": lambda: next(iterator(2)),
    **dict.fromkeys(
        ("a ledger in a group of other ranks", "a ledger that this rank does not keep"),
        lambda: next(iterator(ledger=False)),  # ledger_ranks takes several processes
    ),
    "a state of something else": loaded,
    "a provider of a dataset without an order": lambda: datasets_provider(PAIR),
}
