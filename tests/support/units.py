"""The units of an epoch as lists."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

import indexplan as ip


def units_of(order: ip.Order, epoch: int, positions: Any = None) -> list[list[Any]]:
    """Return the samples of all units, or of some; of parts of samples, [sample, start, stop]."""
    at = np.arange(order.num_units(epoch)) if positions is None else positions
    samples, offsets = order.take(epoch, at), order.offsets(epoch, at).tolist()
    if order.traits.cuts_samples:
        samples = np.column_stack([samples, order.spans(epoch, at)])
    return [samples[low:high].tolist() for low, high in pairwise(offsets)]
