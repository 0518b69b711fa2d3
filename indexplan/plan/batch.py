"""A batch divided into its units: where each starts, and which part of each sample is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from indexplan.orders.base import Order
from indexplan.partition.phases import Phase
from indexplan.partition.ranks import Runs
from indexplan.partition.steps import Int64, Steps
from indexplan.parts import split
from indexplan.plan.draw import deal_units, stretches, take
from indexplan.plan.layout import Layout


@dataclass(frozen=True, eq=False)
class Batch:
    """A batch divided into its units, as `Plan.units` returns it.

    `len` counts its units: samples, or bins of samples.

    Parameters
    ----------
    samples : numpy.ndarray
        int64, shape (samples,): the indices, unit after unit, as `Plan.batch` returns them.
    offsets : numpy.ndarray
        int64, shape (units + 1,): unit i holds samples[offsets[i]:offsets[i + 1]].
    spans : numpy.ndarray or None
        int64, shape (samples, 2): the tokens [start, stop) of each sample. None if the order does
        not cut samples.
    num_valid : int
        The number of units that are not padding. Padding comes last.
    copies : numpy.ndarray
        int64, shape (units,): which copy of its unit a `Repeat` reads, counted from 0; for other
        orders 0.
    inner_counts : tuple of int
        The number of inner batches at each level: (5,) for a batch size of (5, 3). () if it is not
        nested.
    phase : Phase or None
        The phase of the plan's schedule that applies at the step, whose parameters
        `phase["resolution"]` looks up. None in what a stream draws, which has no steps.

    Examples
    --------
    >>> import indexplan as ip
    >>> order = ip.ClassBatches([0, 0, 1, 1, 2, 2], classes=2, per_class=1, epoch_size=6)
    >>> batch = ip.Plan(order, world_size=1, batch_size=3).units(epoch=0, step=0, rank=0)
    >>> len(batch), len(batch.samples), batch.offsets
    (3, 6, array([0, 2, 4, 6]))
    >>> phases = [ip.Phase(0, 4, {"mask": 0.5}), ip.Phase((1, 0), 2, {"mask": 0.75})]
    >>> plan = ip.Plan(ip.Shuffle(100), world_size=2, batch_size=phases)
    >>> plan.units(epoch=1, step=3, rank=0).phase["mask"]
    0.75
    """

    samples: Int64
    offsets: Int64
    spans: Int64 | None
    num_valid: int
    copies: Int64
    inner_counts: tuple[int, ...] = ()
    phase: Phase | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def bins(self) -> list[Int64]:
        """The units, each an int64 array of its samples.

        Each has shape (samples,). If the order cuts samples, the shape is (samples, 3), and each
        row is a sample with the start and stop of its part.

        Examples
        --------
        >>> import indexplan as ip
        >>> plan = ip.Plan(ip.DocumentWindows([5, 3, 9, 4], 10), world_size=2, batch_size=1)
        >>> plan.units(epoch=0, step=0, rank=1).bins[0].tolist()
        [[2, 5, 9], [1, 0, 3], [3, 0, 4]]
        """
        rows = self.samples
        if self.spans is not None:
            rows = np.column_stack([rows, self.spans])
        return [rows[low:high] for low, high in pairwise(self.offsets.tolist())]

    @property
    def micro_batches(self) -> list[Batch]:
        """The inner batches: for a batch size of (5, 3), 5 batches of 3 units if all are full.

        In a step, every rank has the same number of inner batches, of nearly equal sizes. For (2,
        5, 3) there are 2, each with 5 inner batches inside it. A batch size that is not nested has
        one.

        Examples
        --------
        >>> import indexplan as ip
        >>> plan = ip.Plan(ip.Sequential(30), world_size=2, batch_size=(5, 3))
        >>> [part.samples.tolist() for part in plan.units(0, step=0, rank=1).micro_batches][:2]
        [[15, 16, 17], [18, 19, 20]]
        """
        count, *inner = self.inner_counts or (1,)
        cuts = [split(len(self), count, part) for part in range(count + 1)]
        return [self._cut(low, high, tuple(inner)) for low, high in pairwise(cuts)]

    def _cut(self, low: int, high: int, inner_counts: tuple[int, ...] = ()) -> Batch:
        """Return the units [low, high)."""
        start, stop = int(self.offsets[low]), int(self.offsets[high])
        return Batch(
            samples=self.samples[start:stop],
            offsets=self.offsets[low : high + 1] - start,
            spans=None if self.spans is None else self.spans[start:stop],
            num_valid=min(max(self.num_valid - low, 0), high - low),
            copies=self.copies[low:high],
            inner_counts=inner_counts,
            phase=self.phase,
        )


def units_of(layout: Layout, epoch: int, sub_epoch: int | None, step: int, rank: int) -> Batch:
    """Return what `Plan.units` does."""
    rank, steps = layout.rank(rank), layout.steps(epoch, sub_epoch)
    where = layout.step_runs(steps, rank, layout.step(steps, step))
    return _of_step(walked(layout.order, where), layout, steps, step, rank)


def draw_units(layout: Layout, steps: Steps, rank: int, start: int, stop: int) -> Iterator[Batch]:
    """Yield the batches of the steps [start, stop), drawing many at a time."""
    step = start
    for drawn, ends in stretches(layout, steps, rank, start, stop):
        units, begin = walked(layout.order, drawn), 0
        for end in ends.tolist():
            some = units._cut(begin, end)  # noqa: SLF001 (of a batch, for this)
            yield _of_step(some, layout, steps, step, rank)
            begin, step = end, step + 1


def walked(order: Order, where: Runs) -> Batch:
    """Return the units of some runs as a batch without padding or inner batches."""
    parts = [order.ip_copies(*run) for run in where]
    copies = np.concatenate([np.empty(0, np.int64), *parts])
    if not order.deals_bins:
        samples = take(order, where)
        return Batch(samples, np.arange(len(samples) + 1), None, len(samples), copies)
    units = deal_units(order, where)  # one walk for all three
    return Batch(units.samples, units.offsets, units.spans, len(units.sizes), copies)


def _of_step(units: Batch, layout: Layout, steps: Steps, step: int, rank: int) -> Batch:
    """Return the units of a rank in a step, with what the step says of them."""
    phase, num_valid = layout.phase(steps, step), layout.num_valid(steps, step, rank)
    return replace(units, num_valid=num_valid, inner_counts=phase.inner_counts, phase=phase)
