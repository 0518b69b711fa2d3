"""The order of the dataset itself."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from indexplan.orders.base import Int64, Order
from indexplan.orders.fields import NUM_SAMPLES
from indexplan.orders.registry import register
from indexplan.orders.units import expand


@register
@dataclass(frozen=True, eq=False)
class Sequential(Order):
    """Every epoch reads samples 0, 1, 2, ... in turn.

    For evaluation, and for datasets that are shuffled already.

    Parameters
    ----------
    num_samples : int
        Samples in the dataset, 1 <= num_samples < 2**63.

    Raises
    ------
    IndexPlanError
        If num_samples is not an integer in that range.

    Examples
    --------
    >>> Sequential(5).take(0, 1, 4)  # positions 1, 2 and 3 of epoch 0
    array([1, 2, 3])
    """

    num_samples: int = field(metadata=NUM_SAMPLES)

    algorithm = "sequential-v1"
    ip_is_permutation = True

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        out[:] = expand(starts, stops)

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        return np.arange(len(indices)), indices.copy()
