"""Plans that are drawn, where "drop" would leave some epoch without a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import reject

import indexplan as ip
from indexplan.plan.plan import layout_of

Made = TypeVar("Made")

READS_NOTHING = "must have a full step, as remainder='drop' reads no other"


def planned(order: ip.Order, **fields: Any) -> ip.Plan:
    """Return a plan; with padding where, under "drop", an epoch would be read by no step."""
    try:
        return ip.Plan(order, **fields)
    except ip.IndexPlanError as error:
        if error.rule != READS_NOTHING:
            raise
        return ip.Plan(order, **{**fields, "remainder": "pad"})


def replaced(plan: ip.Plan, **changes: Any) -> ip.Plan:
    """Return a changed plan; with padding where, under "drop", an epoch would have no step."""
    try:
        changed = plan.replace(**changes)
        layout_of(changed)  # it is checked when it is first asked
        return changed
    except ip.IndexPlanError as error:
        if error.rule != READS_NOTHING:
            raise
        return plan.replace(**{**changes, "remainder": "pad"})


def reading(make: Callable[[], Made]) -> Made:
    """Return what is made of a drawn plan; draw again if an epoch would have no step."""
    try:
        return make()
    except ip.IndexPlanError as error:
        if error.rule != READS_NOTHING:
            raise
        reject()


def phase_at(plan: ip.Plan, epoch: int, sub_epoch: int, step: int) -> ip.Phase:
    """Return the phase of a step, of which no batch is drawn."""
    layout = layout_of(plan)
    return layout.phase(layout.steps(epoch, sub_epoch), step)
