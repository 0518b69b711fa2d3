"""Cures of the adapters where a trainer's own loaders and loops meet them, followed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import indexplan_torch.accelerate
from tests.errors.catalogue.made import OPEN
from tests.errors.catalogue.torches import loader


def prepared() -> None:
    """Prepare a loader as the cure says."""
    from accelerate import Accelerator

    made = indexplan_torch.accelerate.prepare(Accelerator(cpu=True), loader())
    assert len(list(made)) == 5


def resumed() -> None:
    """Skip by a state, or by the plan of a cursor."""
    saved = loader()
    next(iter(saved))
    by_state = loader()
    by_state.load_state_dict(saved.state_dict())
    by_cursor = loader(plan=OPEN.resume(saved.cursor))
    assert len(list(by_state)) == len(list(by_cursor)) == 4


CURED: dict[str, Callable[[], Any]] = {
    **dict.fromkeys(
        (
            "batches that are skipped once more",
            "batches that are skipped after a resume",
            "batches that nobody counts",
        ),
        resumed,
    ),
    "batches that are cut once more": prepared,
}
