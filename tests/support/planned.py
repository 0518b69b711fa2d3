"""Plans that are drawn, where "drop" would leave some epoch without a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import indexplan as ip
from indexplan.plan.plan import layout_of

READS_NOTHING = "must have a full step, as remainder='drop' reads no other"


def planned(order: ip.Order, **fields: Any) -> ip.Plan:
    """Return a plan; with padding where, under "drop", an epoch would be read by no step."""
    return _padded(lambda **rest: ip.Plan(order, **{**fields, **rest}))


def replaced(plan: ip.Plan, **changes: Any) -> ip.Plan:
    """Return a changed plan; with padding where, under "drop", an epoch would have no step."""

    def make(**rest: Any) -> ip.Plan:
        changed = plan.replace(**{**changes, **rest})
        layout_of(changed)  # it is checked when it is first asked
        return changed

    return _padded(make)


def _padded(make: Callable[..., ip.Plan]) -> ip.Plan:
    try:
        return make()
    except ip.IndexPlanError as error:
        if error.rule != READS_NOTHING:
            raise
        return make(remainder="pad")


def phase_at(plan: ip.Plan, epoch: int, sub_epoch: int, step: int) -> ip.Phase:
    """Return the phase of a step, of which no batch is drawn."""
    layout = layout_of(plan)
    return layout.phase(layout.steps(epoch, sub_epoch), step)
