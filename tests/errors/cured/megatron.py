"""Cures of the iterators that Megatron reads; tests/through follows those that need Megatron."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.distributed as dist

from indexplan_torch.megatron import datasets_provider
from tests.errors.catalogue.megatron import PAIR, iterator


def loaded() -> None:
    """Load what save_state returned."""
    saved = iterator()
    next(saved)
    iterator().load_state(saved.save_state())


def of_the_group() -> None:
    """Pass the ranks of a process group."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        ranks = dist.get_process_group_ranks(dist.group.WORLD)
        next(iterator(ledger="run.ledger", ledger_ranks=ranks))
    finally:
        dist.destroy_process_group()


CURED: dict[str, Callable[[], Any]] = {
    "a micro-batch of nothing": lambda: next(iterator(2)),
    "a ledger of ranks that are no list": of_the_group,
    **dict.fromkeys(
        ("a ledger in a group of other ranks", "a ledger that this rank does not keep"),
        lambda: (of_the_group(), next(iterator(ledger=False))),
    ),
    "a state of something else": loaded,
    "a provider of a dataset without an order": lambda: datasets_provider(PAIR),
}
