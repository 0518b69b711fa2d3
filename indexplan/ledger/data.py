"""Which dataset a ledger's lines may name: one and the same, until sources join."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from indexplan.ledger.changes import why
from indexplan.ledger.history import History
from indexplan.shards.dataset import Dataset


def line_of_data(history: History) -> int:
    """Return the line that names the dataset which the run reads where it stands; 0 if none does.

    That is the line of the plan that has read the last step, or else the newest that names one.
    """
    last = history.plans.get(history.last_plan)
    return (
        history.last_plan
        if last is not None and last.line.data is not None
        else history.newest_data
    )


def may_open(history: History, data: Dataset) -> bool:
    """Return whether a run may go on with a dataset, before the plan that reads it is known."""
    number = line_of_data(history)
    if not number:
        return True
    line = history.plans[number].line
    before = Dataset.from_dict(line.data or {})
    larger = data.num_samples > before.num_samples and _may_grow(line.plan["order"])
    return larger or _is_named(history, data)


def may_name(history: History, plan: Mapping[str, Any], data: Dataset) -> bool:
    """Return whether the next line may name a dataset with a plan, in its dict form.

    It is that of the line before. Where sources join it may be a larger one, which may stay after a
    return to a checkpoint before that.
    """
    number = line_of_data(history)
    if not number:
        return True
    line = history.plans[number].line
    before = Dataset.from_dict(line.data or {})
    if data == before:
        return True
    joined = "sources" in why(line.plan, plan) or _is_named(history, data)
    return joined and data.num_samples > before.num_samples


def _is_named(history: History, data: Dataset) -> bool:
    written = data.to_dict()
    return any(each.line.data == written for each in history.plans.values())


def _may_grow(order: Any) -> bool:
    """Return whether an order, in its dict form, is a mixture inside any layers."""
    while isinstance(order, Mapping) and "sources" not in order:
        order = order.get("order")
    return order is not None
