"""Which columns of an order belong to epochs that are over, as its dict form tells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from indexplan.orders.columns import is_identity
from indexplan.seeds import EPOCH_STOP

WEIGHTED = "weighted-v1"
SAME_EPOCHS = ("repeat-v1", "subset-v1", "without-v1")  # as the order inside
OTHER_EPOCHS = ("epochs-v1", "mixture-v1")  # which epochs they read inside, only an order can tell


def rows_of(weights: Any) -> list[Any]:
    """Return the arrays of weights in a dict form, each with its epoch; [] if there are none."""
    rows = weights if isinstance(weights, list) else [[0, weights]]
    right = all(
        isinstance(row, list) and len(row) == 2 and type(row[0]) is int and is_identity(row[1])
        for row in rows
    )
    return rows if right else []


def since_epoch(rows: list[Any], epoch: int) -> int:
    """Return the number of the row that applies in an epoch; -1 if none does."""
    return max((i for i, row in enumerate(rows) if row[0] <= epoch), default=-1)


def over(data: Any, epoch: int) -> set[Any]:
    """Return the sha256 of the columns in a dict form that no epoch from this one on needs.

    Inside `Epochs` and `Mixture`, whose inner epochs have other numbers, all weights but the last
    count as over, if the epoch is not the first.
    """
    past, needed = list[Any](), list[Any]()
    left = [(data, epoch)] if epoch else []
    while left:
        value, begun = left.pop()
        if is_identity(value):
            needed.append(value["sha256"])
        elif isinstance(value, list):
            left += [(each, begun) for each in value]
        elif isinstance(value, Mapping):
            kind = value.get("algorithm", "")
            rows = rows_of(value.get("weights")) if kind == WEIGHTED else []
            now = max(0, since_epoch(rows, begun))
            past += [row[1]["sha256"] for row in rows[:now]]
            needed += [row[1]["sha256"] for row in rows[now:]]
            if kind and kind not in SAME_EPOCHS:
                begun = EPOCH_STOP if kind in OTHER_EPOCHS else 0
            left += [(each, begun) for name, each in value.items() if not rows or name != "weights"]
    return {each for each in past if isinstance(each, str)} - {
        each for each in needed if isinstance(each, str)
    }
