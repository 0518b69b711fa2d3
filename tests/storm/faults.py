"""Faults that are planted in the ranks of a storm, to show that it finds them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from indexplan import Cursor
from indexplan_torch import PlanLoader

FAULTS: dict[str, Callable[[], None]] = {}


def fault(function: Callable[[], None]) -> Callable[[], None]:
    """Register a fault by its name."""
    FAULTS[function.__name__] = function
    return function


@fault
def resumes_a_step_early() -> None:
    """A resumed loader reads its last step once more."""
    load = PlanLoader.load_state_dict

    def early(self: PlanLoader, state: dict[str, Any]) -> None:
        cursor = Cursor.from_dict(state["cursor"])
        step = max(0, cursor.step - 1)
        position = cursor.position // cursor.step * step if cursor.step else cursor.position
        load(self, {**state, "cursor": replace(cursor, step=step, position=position).to_dict()})

    PlanLoader.load_state_dict = early  # type: ignore[method-assign]
