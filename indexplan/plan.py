"""The plan: an order after a partition, and every question that can be asked of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from indexplan.accounting import Account, account
from indexplan.cursor import Cursor
from indexplan.errors import IndexPlanError, whole, wrong
from indexplan.locating import find
from indexplan.partition import Int64, Layout, layout, split
from indexplan.schedule import Phase
from indexplan.seeds import check_epoch
from indexplan.shares import runs, share, shares
from indexplan.spec import Spec

DRAW_AHEAD = 2**14  # units per kernel call of `batches`: some 40 microseconds of work

MicroBatches: TypeAlias = "list[Int64] | list[MicroBatches]"


class Location(NamedTuple):
    """Where a sample is read: ints, or int64 arrays of one shape; -1 where no step reads it.

    `slot` is the place of the sample's unit in the rank's batch.
    """

    epoch: Any
    sub_epoch: Any
    step: Any
    rank: Any
    slot: Any


@dataclass(frozen=True)
class Plan(Spec):
    """Which dataset index does rank r read at step t of epoch e?

    A plan is a value: a pure function of its fields, without state, equal to any plan with the
    same fields. Every answer costs as much as it holds, whatever the dataset's size, the world
    size and the step. In all methods `sub_epoch` may be left out where `sub_epochs` is 1, and a
    number out of range is an `IndexPlanError` that names the range.

    Parameters
    ----------
    order : Order
        The row of units that each epoch reads.
    world_size : int, optional
        Ranks of the data-parallel group, 1 <= world_size < 2**31. Open if left out: whatever
        does not depend on it works.
    batch_size : int, tuple of int or list of Phase
        Units per rank and step. A tuple nests: (5, 3) is 5 inner batches of 3. Phases change it
        during the run.
    global_batch_size : int, tuple of int or list of Phase
        Units per step over all ranks, instead of `batch_size`: it holds whatever world_size is.
    sub_epochs : int, default 1
        Intervals of near-equal size that each epoch is cut into.
    remainder : {"spread", "drop", "pad", "carry"}, default "spread"
        What happens to units that do not fill a global batch. "spread": steps shrink, by at most
        one unit against each other. "drop": nobody reads them. "pad": the sub-epoch's first
        units fill the last step. "carry": the next epoch fills it.
    resumed : Resume, optional
        Where the plan starts; `resume` sets it.

    Raises
    ------
    IndexPlanError
        If a field breaks its rule; the message names the value, the rule and the cure.

    Examples
    --------
    >>> import indexplan as ip
    >>> plan = ip.Plan(ip.Shuffle(1_281_167), world_size=8, batch_size=256)
    >>> plan.num_steps(epoch=0)
    626
    >>> plan.batch(epoch=0, step=17, rank=2).shape
    (256,)
    """

    def num_steps(self, epoch: int, sub_epoch: int | None = None) -> int:
        """Return the number of steps of a sub-epoch, the same on all ranks.

        Steps keep their numbers when a plan is resumed, so finished ones count too.
        """
        return self._layout(epoch, sub_epoch).num_steps

    def first_step(self, epoch: int, sub_epoch: int | None = None) -> int:
        """Return the number of the first unfinished step: 0, but in the sub-epoch of a resume."""
        return self._layout(epoch, sub_epoch).first_step

    def batch(self, epoch: int, sub_epoch: int | None = None, *, step: int, rank: int) -> Int64:
        """Return the indices that a rank reads in a step.

        Returns
        -------
        numpy.ndarray
            int64, shape (units,), or (samples,) where the order deals bins. Under "pad" the
            padded slots are the last ones.
        """
        return self._concatenate(self.order.take, self._batch_runs(epoch, sub_epoch, step, rank))

    def offsets(self, epoch: int, sub_epoch: int | None = None, *, step: int, rank: int) -> Int64:
        """Return where each unit of a batch starts among its samples, and the end.

        Returns
        -------
        numpy.ndarray
            int64, shape (units + 1,). Other than 0, 1, 2, ... only where the order deals bins.
        """
        result = np.zeros(1, np.int64)
        for run in self._batch_runs(epoch, sub_epoch, step, rank):
            result = np.concatenate([result, result[-1] + self.order.offsets(*run)[1:]])
        return result

    def micro_batches(
        self, epoch: int, sub_epoch: int | None = None, *, step: int, rank: int
    ) -> MicroBatches:
        """Return a batch cut into its inner batches, nested as the batch size is.

        Every rank has the same number of them in a step, whatever the remainder.

        Returns
        -------
        list
            For (5, 3): 5 int64 arrays of 3 indices, or of near-equal sizes where the batch is
            not full. For (2, 5, 3): 2 lists of such. A batch size that is not nested: one array.

        Examples
        --------
        >>> import indexplan as ip
        >>> plan = ip.Plan(ip.Sequential(30), world_size=2, batch_size=(5, 3))
        >>> plan.micro_batches(epoch=0, step=0, rank=1)[:2]
        [array([15, 16, 17]), array([18, 19, 20])]
        """
        counts = self.phase(epoch, sub_epoch, step=step).inner_counts or (1,)
        batch = self.batch(epoch, sub_epoch, step=step, rank=rank)
        offsets = None
        if self.order.deals_bins:
            offsets = self.offsets(epoch, sub_epoch, step=step, rank=rank)
        return _cut(batch, offsets, 0, len(batch) if offsets is None else len(offsets) - 1, counts)

    def indices(
        self,
        epoch: int,
        sub_epoch: int | None = None,
        *,
        rank: int,
        start_step: int | None = None,
        stop_step: int | None = None,
    ) -> Int64:
        """Return all that a rank reads in the steps [start_step, stop_step): by default, its share.

        Returns
        -------
        numpy.ndarray
            int64, flat: the batches one after another.
        """
        rank, steps, start, stop = self._steps(epoch, sub_epoch, rank, start_step, stop_step)
        return self._concatenate(self.order.take, runs(steps, self._world(), rank, start, stop))

    def batch_sizes(
        self,
        epoch: int,
        sub_epoch: int | None = None,
        *,
        rank: int,
        start_step: int | None = None,
        stop_step: int | None = None,
    ) -> Int64:
        """Return the units of each of a rank's batches, padding included.

        Returns
        -------
        numpy.ndarray
            int64, shape (stop_step - start_step,).
        """
        rank, steps, start, stop = self._steps(epoch, sub_epoch, rank, start_step, stop_step)
        _, starts, stops = shares(steps, self._world(), rank, start, stop)
        return stops - starts

    def batches(
        self,
        epoch: int,
        sub_epoch: int | None = None,
        *,
        rank: int,
        start_step: int | None = None,
        stop_step: int | None = None,
    ) -> Iterator[Int64]:
        """Return an iterator over a rank's batches, which draws many of them at a time.

        Yields
        ------
        numpy.ndarray
            What `batch` returns, for each step.
        """
        rank, steps, start, stop = self._steps(epoch, sub_epoch, rank, start_step, stop_step)
        return self._draw(steps, rank, start, stop)

    def _draw(self, steps: Layout, rank: int, start: int, stop: int) -> Iterator[Int64]:
        world = self._world()
        while start < stop:
            span = steps.span(start)
            each = span.length // span.num_steps // world + 1
            until = min(stop, start + max(1, DRAW_AHEAD // each))
            _, starts, stops = shares(steps, world, rank, start, until)
            drawn = runs(steps, world, rank, start, until)
            indices = self._concatenate(self.order.take, drawn)
            ends = np.cumsum(stops - starts)
            if self.order.deals_bins:
                sizes = [np.diff(self.order.offsets(*run)) for run in drawn]
                ends = np.cumsum(np.concatenate([[0], *sizes]))[ends]
            begin = 0
            for end in ends.tolist():
                yield indices[begin:end]
                begin = end
            start = until

    def num_valid(
        self, epoch: int, sub_epoch: int | None = None, *, step: int, rank: int
    ) -> int:
        """Return the units of a batch that are not padding."""
        rank = self._rank(rank)
        steps = self._layout(epoch, sub_epoch)
        return steps.valid(*share(steps, self._world(), rank, self._step(steps, step)))

    def step_size(self, epoch: int, sub_epoch: int | None = None, *, step: int) -> int:
        """Return the units of a step over all ranks, without padding: what a loss is weighted by."""
        steps = self._layout(epoch, sub_epoch)
        return steps.valid(*steps.interval(self._step(steps, step)))

    def phase(self, epoch: int, sub_epoch: int | None = None, *, step: int) -> Phase:
        """Return the phase of the schedule that is in force at a step."""
        steps = self._layout(epoch, sub_epoch)
        return self.phases[steps.span(self._step(steps, step)).phase]

    def locate(self, index: ArrayLike, epoch: int) -> Location:
        """Return where an epoch's order has a sample read: the inverse of `batch`.

        Parameters
        ----------
        index : int, or array_like of int
            Samples, 0 <= index < num_samples.
        epoch : int
            The order's epoch. Under "carry" the step may belong to the epoch before.

        Returns
        -------
        Location
            Of ints, or of int64 arrays of the shape of `index`. All -1 where no step of this
            plan reads the sample: dropped, or finished before the resume. A padded repeat is
            never named.

        Examples
        --------
        >>> import indexplan as ip
        >>> plan = ip.Plan(ip.Shuffle(1000), world_size=4, batch_size=10)
        >>> where = plan.locate(123, epoch=2)
        >>> int(plan.batch(where.epoch, step=where.step, rank=where.rank)[where.slot])
        123
        """
        epoch = check_epoch(epoch)
        self._world()
        positions = self.order.locate(epoch, index)
        num_units = self.order.num_units(epoch)
        found = find(self._partition, num_units, epoch, positions.ravel())
        if positions.ndim == 0:
            return Location(*(int(part[0]) for part in found))
        return Location(*(part.reshape(positions.shape) for part in found))

    def account(self, epoch: int, sub_epoch: int | None = None) -> Account:
        """Return what becomes of an epoch's units, or of one sub-epoch's: every unit is counted.

        Examples
        --------
        >>> import indexplan as ip
        >>> plan = ip.Plan(ip.Shuffle(1003), world_size=2, batch_size=50, remainder="drop")
        >>> plan.account(epoch=0).num_dropped
        3
        """
        epoch = check_epoch(epoch)
        self._sized()
        chosen = range(self.sub_epochs)
        if sub_epoch is not None:
            sub_epoch = whole("sub_epoch", sub_epoch, 0, self.sub_epochs)
            chosen = range(sub_epoch, sub_epoch + 1)
        return account(self._partition, self.order.num_units(epoch), epoch, chosen)

    def cursor(self, epoch: int, sub_epoch: int | None = None, *, step: int) -> Cursor:
        """Return where a run stands after `step` finished steps of a sub-epoch.

        The end of a sub-epoch is the start of the next one.

        Parameters
        ----------
        step : int
            From first_step to num_steps, inclusive.
        """
        steps = self._layout(epoch, sub_epoch)
        rule = f"{self._what(steps)} has {steps.num_steps} steps"
        step = whole("step", step, steps.first_step, steps.num_steps + 1, rule)
        place = self._partition.resume_after(steps, step)
        return Cursor(**place._asdict(), order=self.order.to_dict(), sub_epochs=self.sub_epochs)

    def resume(self, cursor: Cursor) -> Plan:
        """Return the plan of what is left after a cursor.

        World size, batch size, schedule and remainder may differ from those that the cursor was
        saved under; order and sub_epochs may not. The rest of the cursor's sub-epoch is
        partitioned by the same formulas; its steps keep their numbers. An unchanged plan goes on
        with exactly the steps that an uninterrupted run would have had.

        Raises
        ------
        IndexPlanError
            If the cursor is of another order or other sub_epochs, or past the end.

        Examples
        --------
        >>> import indexplan as ip
        >>> plan = ip.Plan(ip.Shuffle(1000), world_size=8, batch_size=10)
        >>> cursor = plan.cursor(epoch=0, step=5)
        >>> plan.replace(world_size=3).resume(cursor).account(epoch=0).num_read
        600
        """
        if not isinstance(cursor, Cursor):
            raise wrong("cursor", "a Cursor", cursor, "read saved text with Cursor.from_json")
        resumed = self._checked(cursor)
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return Plan(**{**fields, "resumed": resumed})

    def _batch_runs(
        self, epoch: int, sub_epoch: int | None, step: int, rank: int
    ) -> list[tuple[int, Any, Any]]:
        rank = self._rank(rank)
        steps = self._layout(epoch, sub_epoch)
        pieces = steps.pieces(*share(steps, self._world(), rank, self._step(steps, step)))
        if len(pieces) <= 1:
            return list(pieces)
        epochs = dict.fromkeys(piece[0] for piece in pieces)
        bounds = [np.array([p[1:] for p in pieces if p[0] == number]) for number in epochs]
        return [(e, pairs[:, 0], pairs[:, 1]) for e, pairs in zip(epochs, bounds, strict=True)]

    @staticmethod
    def _concatenate(method: Any, pieces: list[tuple[int, Any, Any]]) -> Int64:
        arrays = [method(*piece) for piece in pieces]
        return arrays[0] if len(arrays) == 1 else np.concatenate([np.empty(0, np.int64), *arrays])

    def _world(self) -> int:
        if self.world_size is None:
            cure = "use plan.replace(world_size=...), the number of running ranks"
            raise IndexPlanError(f"world_size must be set for this; the plan leaves it open; {cure}")
        return self.world_size

    def _sized(self) -> None:
        if not self._partition.sizes:
            self._world()

    def _rank(self, rank: int) -> int:
        world = self._world()
        return whole("rank", rank, 0, world, f"the plan's world_size is {world}")

    def _layout(self, epoch: int, sub_epoch: int | None) -> Layout:
        epoch = check_epoch(epoch)
        if sub_epoch is None and self.sub_epochs != 1:
            rule = f"given, from 0 to {self.sub_epochs - 1}, as the plan has sub_epochs"
            raise wrong("sub_epoch", rule, None)
        sub_epoch = whole("sub_epoch", 0 if sub_epoch is None else sub_epoch, 0, self.sub_epochs)
        if self.resumed is not None and (epoch, sub_epoch) < self.resumed[:2]:
            start = f"({self.resumed.epoch}, {self.resumed.sub_epoch}), where the plan was resumed"
            raise wrong("(epoch, sub_epoch)", f"at least {start}", (epoch, sub_epoch))
        self._sized()
        return layout(self._partition, self.order.num_units(epoch), epoch, sub_epoch)

    def _step(self, steps: Layout, step: int) -> int:
        rule = f"the unfinished steps of {self._what(steps)}"
        if steps.first_step == steps.num_steps:
            raise wrong("step", f"one of {rule}, of which there are none", step)
        return whole("step", step, steps.first_step, steps.num_steps, rule)

    def _steps(
        self,
        epoch: int,
        sub_epoch: int | None,
        rank: int,
        start_step: int | None,
        stop_step: int | None,
    ) -> tuple[int, Layout, int, int]:
        rank = self._rank(rank)
        steps = self._layout(epoch, sub_epoch)
        low, high = steps.first_step, steps.num_steps + 1
        rule = f"within the steps of {self._what(steps)}"
        start = low if start_step is None else whole("start_step", start_step, low, high, rule)
        stop = high - 1 if stop_step is None else whole("stop_step", stop_step, start, high, rule)
        return rank, steps, start, stop

    def _what(self, steps: Layout) -> str:
        whole_epoch = f"epoch {steps.epoch}"
        return whole_epoch if self.sub_epochs == 1 else f"{whole_epoch}, sub-epoch {steps.sub_epoch}"


def _cut(
    indices: Int64, offsets: Int64 | None, start: int, stop: int, counts: tuple[int, ...]
) -> MicroBatches:
    """Cut the units [start, stop) of a batch into counts[0] parts, and those into counts[1], ..."""
    cuts = [start + split(stop - start, counts[0], part) for part in range(counts[0] + 1)]
    if len(counts) > 1:
        pairs = zip(cuts, cuts[1:], strict=False)
        return [_cut(indices, offsets, low, high, counts[1:]) for low, high in pairs]
    if offsets is not None:
        cuts = [int(offsets[cut]) for cut in cuts]
    return [indices[low:high] for low, high in zip(cuts, cuts[1:], strict=False)]
