"""A batch's inner batches and bins as nested lists, and its padding without its samples."""

from __future__ import annotations

from typing import Any

import indexplan as ip
from indexplan.plan.plan import layout_of


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
