"""Weights of samples that change during a run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import indexplan as ip


def reweighted(order: ip.Weighted, epoch: int, weights: Any) -> ip.Weighted:
    """Return an order with other weights from an epoch on, in place of those planned then."""
    given: Any = order.weights
    rows = [(0, given)] if isinstance(given, ip.Column) else [*given]
    return replace(order, weights=[*(row for row in rows if row[0] < epoch), (epoch, weights)])
