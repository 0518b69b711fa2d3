"""Orders that deal bins go through partition and plan untouched: a unit may be several samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given

import indexplan as ip
from tests.support import model
from tests.support.bins import Bins, bin_orders
from tests.support.micro import micro_batches, nested_bins
from tests.support.strategies import epochs_of, plans, some_ranks


def bins_of(batch: np.ndarray, offsets: np.ndarray) -> list[list[int]]:
    """Cut the samples of a batch into its bins."""
    return [part.tolist() for part in np.split(batch, offsets[1:-1])][: len(offsets) - 1]


def leaves(nested: Any) -> Any:
    """Return nested arrays as nested lists."""
    return nested.tolist() if isinstance(nested, np.ndarray) else [leaves(part) for part in nested]


def flat(units: Any, depth: int) -> Any:
    """Flatten the innermost lists of bins to samples."""
    if depth:
        return [flat(part, depth - 1) for part in units]
    return [sample for unit in units for sample in unit]


@given(plans(bin_orders()))
def test_every_batch_of_bins_is_the_row_after_the_model(plan: ip.Plan) -> None:
    """Batches hold whole bins, in the model's places; offsets, micro-batches and sizes agree."""
    order = plan.order
    assert isinstance(order, Bins)
    for epoch, sub_epoch, first_step, _, steps in model.walk(model.run_of(plan), epochs_of(plan)):
        pair = epoch, sub_epoch
        assert first_step + len(steps) == plan.steps(*pair).stop
        for rank in some_ranks(plan.world_size):
            units = [
                [list(order.row(slot.epoch)[slot.position]) for slot in step.ranks[rank]]
                for step in steps
            ]
            batches = [batch.tolist() for batch in plan.batches(*pair, rank=rank)]
            assert [flat(batch, 0) for batch in units] == batches
            assert units == [leaves(b.bins) for b in plan.batches(*pair, rank=rank, units=True)]
            assert sum(batches, start=[]) == plan.indices(*pair, rank=rank).tolist()
            assert [len(batch) for batch in units] == plan.batch_sizes(*pair, rank=rank).tolist()
        for step in steps[:1] + steps[-1:]:
            rank = plan.world_size - 1
            where = {"step": step.number, "rank": rank}
            expected = [list(order.row(slot.epoch)[slot.position]) for slot in step.ranks[rank]]
            offsets = plan.units(*pair, **where).offsets
            assert (offsets.dtype, offsets.shape) == (np.int64, (len(expected) + 1,))
            batch = plan.batch(*pair, **where)
            assert expected == bins_of(batch, offsets)
            size = plan.units(*pair, step=step.number, rank=0).phase.size
            counts = size[:-1] if isinstance(size, tuple) else (1,)
            nested = model.nest(expected, counts)
            assert flat(nested, len(counts)) == leaves(micro_batches(plan.units(*pair, **where)))
            stretch = {"rank": rank, "start_step": step.number, "stop_step": step.number + 1}
            assert [nested] == [
                leaves(nested_bins(b)) for b in plan.batches(*pair, **stretch, units=True)
            ]
            valid = sum(not slot.padded for slot in step.ranks[rank])
            assert valid == plan.units(*pair, **where).num_valid


@given(plans(bin_orders()))
def test_bins_are_located_and_accounted_for(plan: ip.Plan) -> None:
    """`locate` goes from sample to bin; -1 for samples of no bin and of bins that are not read."""
    order = plan.order
    assert isinstance(order, Bins)
    expected: dict[tuple[int, int], tuple[int, ...]] = {}  # (epoch, position) -> its place
    epochs = epochs_of(plan)
    for epoch, sub_epoch, _, _, steps in model.walk(model.run_of(plan), epochs):
        for step in steps:
            for rank, slots in enumerate(step.ranks):
                for i, slot in enumerate(slots):
                    if not slot.padded:
                        place = (epoch, sub_epoch, step.number, rank, i)
                        assert expected.setdefault((slot.epoch, slot.position), place) == place
    for epoch in range(epochs):
        found = plan.locate(np.arange(order.num_samples), epoch)
        places = list(zip(*(part.tolist() for part in found), strict=True))
        nowhere = (-1, -1, -1, -1, -1)
        of_bins = [
            (sample, expected.get((epoch, position), nowhere))
            for position, unit in enumerate(order.row(epoch))
            for sample in unit
        ]
        assert [place for _, place in of_bins] == [places[sample] for sample, _ in of_bins]
        outside = set(range(order.num_samples)) - {sample for sample, _ in of_bins}
        assert all(places[sample] == nowhere for sample in outside)
        account = plan.account(epoch)
        read = sum((epoch, i) in expected for i in range(order.num_units(epoch)))
        assert (account.num_read, account.num_units) == (read, order.num_units(epoch))
