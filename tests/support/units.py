"""The units of an epoch as lists, and those of a batch, nested like the batch size."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

import indexplan as ip
from indexplan.plan.plan import layout_of


def units_of(order: ip.Order, epoch: int, positions: Any = None) -> list[list[Any]]:
    """Return the samples of all units, or of some; of parts of samples, [sample, start, stop]."""
    at = np.arange(order.num_units(epoch)) if positions is None else positions
    samples, offsets = order.take(epoch, at), order.offsets(epoch, at).tolist()
    if order.traits.cuts_samples:
        samples = np.column_stack([samples, order.spans(epoch, at)])
    return [samples[low:high].tolist() for low, high in pairwise(offsets)]


def micro_batches(batch: ip.types.Batch) -> list[Any]:
    """The samples of inner batches, nested like the batch size."""
    return [
        micro_batches(each) if each.inner_counts else each.samples for each in batch.micro_batches
    ]


def nested_bins(batch: ip.types.Batch) -> list[Any]:
    """The bins of inner batches, nested like the batch size."""
    return [nested_bins(each) if each.inner_counts else each.bins for each in batch.micro_batches]


def num_valid(plan: ip.Plan, epoch: int, sub_epoch: int | None, *, step: int, rank: int) -> int:
    """How many units of a batch are not padding, also of one that memory cannot hold."""
    layout = layout_of(plan)
    return layout.num_valid(layout.steps(epoch, sub_epoch), step, rank)


def valid_samples(plan: ip.Plan, *pair: int, step: int) -> list[int]:
    """Return the samples that all ranks read in a step, one by one, without padding."""
    batches = [plan.units(*pair, step=step, rank=rank) for rank in range(plan.world_size or 1)]
    parts = [each.samples[: each.offsets[each.num_valid]] for each in batches]
    return list(np.concatenate(parts).tolist())
