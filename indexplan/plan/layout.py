"""The layout: an order divided among steps and ranks, and every question about positions.

It has all numbers of a plan and none of its words. A method checks the arguments that come from a
user; those that take `steps` trust their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import groupby, pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from indexplan.errors import Cure, IndexPlanError, counted, integer, invalid
from indexplan.once import latest
from indexplan.orders.arguments import as_int64
from indexplan.orders.base import Order
from indexplan.partition import ranks
from indexplan.partition.locate import Cells, Location, cells_of, find
from indexplan.partition.phases import PLACE_STOP, Phase
from indexplan.partition.ranks import Runs
from indexplan.partition.remainders import REMAINDERS
from indexplan.partition.steps import Int64, Partition, Resume, Steps, steps_in
from indexplan.plan.balance import SUM_STOP, Balance, Dealt, balanced
from indexplan.seeds import EPOCH_STOP, check_epoch

OTHER_RANKS = Cure(
    "use plan.replace(world_size=...) to change how many ranks there are",
    "change how many ranks there are with --world-size",
)
AT_ONCE = 2**14  # units whose costs are drawn at a time; at least those of one step
MOST_EPOCHS = 2**20  # whose units are added up to find a place, each in some 1 us


@dataclass(frozen=True)
class Layout:
    """An order under a partition, with the phases that set its sizes, and any balance."""

    order: Order
    partition: Partition
    phases: tuple[Phase, ...]
    balance: Balance | None

    def __post_init__(self) -> None:
        self._check_phases()
        self._check_global_batch()
        self._check_balance()

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: the fields, without balanced steps."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def _check_phases(self) -> None:
        """Raise `IndexPlanError` unless the phases rise, and the order's epochs allow them."""
        partition, ats = self.partition, self.partition.ats
        for at in ats:
            if not isinstance(at, int) and at[1] >= partition.sub_epochs:
                cure = f"name one of the plan's {partition.sub_epochs} sub-epochs"
                raise invalid("at's sub_epoch", f"below {partition.sub_epochs}", at[1], cure)
        if partition.by_place and not partition.extent.sums_up:
            crosses = partition.policy.crosses
            user = partition.remainder if crosses else "a phase at a stream place"
            cure = "use another remainder, and phases at (epoch, sub_epoch)"
            rule = "needs an order with the same number of units in every epoch"
            raise IndexPlanError(user, rule, self.order.algorithm, cure)
        for before, after in pairwise(ats):
            if isinstance(before, int) == isinstance(after, int):
                ordered = before < after  # type: ignore[operator]  # both of one kind
            elif not partition.by_place:  # the first one is at 0
                ordered = after > (0, 0)  # type: ignore[operator]
            else:
                ordered = partition.place(before) < partition.place(after)
            if not ordered:
                rule = "rising from phase to phase"
                cure = "sort the phases by their place, and keep one at each"
                raise invalid("at", rule, (before, after), cure)

    def _check_global_batch(self) -> None:
        """Raise `IndexPlanError` unless steps read whole global batches of the order, or parts."""
        whole, partition = self.order.ip_global_batch, self.partition
        if whole == 1 or not partition.sizes:
            return
        user, cure = f"{self.order.algorithm}'s plan", f"pass global_batch_size={whole}"
        size, *others = set(partition.sizes)
        if others or whole % size:
            rule = f"needs a global batch of {whole} units, or of a divisor, in all phases"
            raise IndexPlanError(user, rule, " and ".join(map(str, [size, *others])), cure)
        num, parts = self.order.num_units(0), partition.sub_epochs
        if not partition.policy.crosses and (num % parts or num // parts % size):
            rule = f"needs sub-epochs of whole global batches, of the {num // size} of an epoch"
            cure = 'pass another number of sub_epochs, or remainder="carry"'
            raise IndexPlanError(user, rule, parts, cure)
        if partition.resume is not None and partition.resume.position % size:
            rule = f"needs to be resumed at a multiple of its global batch, {size}"
            cure = "resume with the former batch size, and change it at such a place"
            raise IndexPlanError(user, rule, partition.resume.position, cure)

    def _check_balance(self) -> None:
        """Raise `IndexPlanError` unless balance fits the samples, and their costs add up."""
        balance, num_samples = self.balance, self.order.num_samples
        if balance is None:
            return
        if not isinstance(balance, Balance):
            raise invalid("balance", "a Balance", balance, "pass indexplan.Balance(lengths)")
        if len(balance.lengths) != num_samples:
            rule = f"{num_samples} numbers, one for each sample of the order"
            cure = "pass the length of each sample of the dataset"
            raise invalid("balance's lengths", rule, len(balance.lengths), cure)
        for size in self.partition.sizes:
            if size * (balance.largest + 1) >= SUM_STOP:
                raise _too_costly(size, balance.largest)

    # What a plan has: ranks, sub-epochs, steps.

    @property
    def world_size(self) -> int:
        """The number of ranks; raises `IndexPlanError` if it is open."""
        if self.partition.world_size is None:
            cure = Cure(
                "use plan.replace(world_size=...), with the number of running ranks",
                "give --world-size",
            )
            raise invalid("world_size", "set for this", None, cure)
        return self.partition.world_size

    def check_sized(self) -> None:
        """Raise `IndexPlanError` if steps depend on a world size that is open."""
        if not self.partition.sizes:
            self.world_size  # noqa: B018 (it raises)

    def rank(self, rank: int) -> int:
        """Return `rank`, or raise `IndexPlanError` if there is no such rank."""
        return integer("rank", rank, 0, self.world_size, OTHER_RANKS)

    def steps(self, epoch: int, sub_epoch: int | None) -> Steps:
        """Return the steps of a sub-epoch; `sub_epoch` may be None if epochs have only one."""
        epoch, parts = check_epoch(epoch), self.partition.sub_epochs
        if parts == 1:
            sub_epoch = 0 if sub_epoch is None else sub_epoch
            cure = "leave it out, as the plan has one sub-epoch an epoch"
        else:
            cure = f"name one of the plan's {parts} sub-epochs"
        sub_epoch = integer("sub_epoch", sub_epoch, 0, parts, cure)
        if self.is_finished(epoch, sub_epoch):
            assert self.partition.resume is not None  # noqa: S101 (else nothing is finished)
            rule = f"not before {self.partition.resume[:2]}, where the plan was resumed"
            cure = "begin there, or ask the plan that was not resumed"
            raise invalid("(epoch, sub_epoch)", rule, (epoch, sub_epoch), cure)
        self.check_sized()
        return self.steps_in(epoch, sub_epoch)

    def steps_in(self, epoch: int, sub_epoch: int) -> Steps:
        """Return the steps of an existing sub-epoch, even of a finished one."""
        return steps_in(self.partition, epoch, sub_epoch)

    def is_finished(self, epoch: int, sub_epoch: int) -> bool:
        """Return whether the whole sub-epoch was read before the plan was resumed."""
        resume = self.partition.resume
        return resume is not None and (epoch, sub_epoch) < resume[:2]

    def resume_at(self, place: int) -> Resume:
        """Return where a run stands that has read all units before a stream place."""
        partition = self.partition
        if not partition.policy.exact:
            names = sorted(name for name, policy in REMAINDERS.items() if policy.exact)
            rule = f"{' or '.join(names)}, under which a run reads every place once"
            cure = "use one of these, or plan.cursor(epoch, step=...), which counts steps"
            raise invalid("remainder", rule, partition.remainder, cure)
        self.check_sized()
        return self.resume_from(*self.unit_at(place))

    def resume_from(self, epoch: int, position: int) -> Resume:
        """Return where a run stands that has read all units before a position of an epoch."""
        sub_epoch = self.partition.sub_epoch_of(epoch, position)
        return Resume(epoch, sub_epoch, self.steps_in(epoch, sub_epoch).after(position), position)

    def unit_at(self, place: int, what: str = "place") -> tuple[int, int]:
        """Return the epoch and the position in it of a stream place, or raise `IndexPlanError`."""
        first, begin = self.partition.resume.unit if self.partition.resume else (0, 0)
        cure = "pass the number of units that the run has read"
        extent = self.partition.extent
        if extent.sums_up:  # then the start of each epoch is known without a sum over epochs
            start, stop = extent.before(first) + begin, extent.before(EPOCH_STOP)
            return extent.holding(integer(what, place, start, stop, cure))
        left = place = integer(what, place, 0, PLACE_STOP, cure)
        for epoch in range(MOST_EPOCHS):
            if left < (num_units := self.order.num_units(epoch)):
                if (epoch, left) < (first, begin):
                    rule = f"at or past position {begin} of epoch {first}, where the plan starts"
                    raise invalid(what, rule, f"position {left} of epoch {epoch}", cure)
                return epoch, left
            left -= num_units
        rule = f"in the first {MOST_EPOCHS} epochs, as their numbers of units differ"
        raise invalid(what, rule, place, "use plan.cursor(epoch, step=...)")

    def step(self, steps: Steps, step: int) -> int:
        """Return `step`, or raise `IndexPlanError` unless it is an unfinished step."""
        first, stop = steps.first_step, steps.num_steps
        if type(step) is int and first <= step < stop:  # the fast path, without a message
            return step
        kind = f"an unfinished step of {self._named(steps)}"
        if first == stop:
            cure = Cure(
                "plan.account says why; use smaller batches",
                "`indexplan show` says why; use smaller batches",
            )
            raise invalid("step", f"{kind}, and there is none", step, cure)
        cure = Cure("pass one of plan.steps(...)", "see how many there are with `indexplan show`")
        return integer("step", step, first, stop, cure, kind)

    def edge(self, steps: Steps, name: str, step: int) -> int:
        """Return `step`, or raise `IndexPlanError` unless it is unfinished, or the end of these."""
        cure = f"name one of the unfinished steps of {self._named(steps)}, or their end"
        if steps.first_step == steps.num_steps:
            cure = f"{self._named(steps)} has no unfinished step; plan.account says why"
        return integer(name, step, steps.first_step, steps.num_steps + 1, cure)

    def stretch(
        self, steps: Steps, start_step: int | None, stop_step: int | None
    ) -> tuple[int, int]:
        """Return the steps [start, stop) that a call asks for; by default, all unfinished ones."""
        start, stop = steps.first_step, steps.num_steps
        if start_step is not None:
            start = self.edge(steps, "start_step", start_step)
        if stop_step is not None:
            stop = self.edge(steps, "stop_step", stop_step)
        if start > stop:
            raise invalid("stop_step", f"at least {start}, the start_step", stop, "swap them")
        return start, stop

    def _named(self, steps: Steps) -> str:
        of = f", sub-epoch {steps.sub_epoch}" if self.partition.sub_epochs > 1 else ""
        return f"epoch {steps.epoch}{of}"

    def phase(self, steps: Steps, step: int) -> Phase:
        """Return the phase that applies at a step."""
        return self.phases[steps.span(step).phase]

    def num_valid(self, steps: Steps, step: int, rank: int) -> int:
        """Return how many units of a batch are not padding."""
        return steps.valid(*ranks.share(steps, self.world_size, rank, step))

    # Which positions a rank reads: the partition, then balance.

    def batch_runs(self, epoch: int, sub_epoch: int | None, step: int, rank: int) -> Runs:
        """Return the positions that a rank reads in a step, or raise `IndexPlanError`."""
        rank, steps = self.rank(rank), self.steps(epoch, sub_epoch)
        return self.step_runs(steps, rank, self.step(steps, step))

    def step_runs(self, steps: Steps, rank: int, step: int) -> Runs:
        """Return the positions that a rank reads in a step."""
        if self.balance is None:
            return ranks.batch_runs(steps, self.world_size, rank, step)
        return self.runs(steps, rank, step, step + 1)

    def runs(
        self, steps: Steps, rank: int, start: int, stop: int, stop_rank: int | None = None
    ) -> Runs:
        """Return the positions that a rank reads in the steps [start, stop), in order of reading.

        Or those that the ranks [rank, stop_rank) read, step by step and rank by rank.
        """
        if self.balance is None:
            return ranks.runs(steps, self.world_size, rank, start, stop, stop_rank)
        last = rank if stop_rank is None else stop_rank - 1
        parts: Runs = []
        for step, (_, units) in enumerate(self.dealt(steps, start, stop), start):
            begin, _ = steps.interval(step)
            low = ranks.share(steps, self.world_size, rank, step)[0] - begin
            high = ranks.share(steps, self.world_size, last, step)[1] - begin
            parts += _at(steps, begin, len(units), units[low:high])
            if high > len(units):  # padding, which stays where it is
                intervals = steps.positions(begin + max(low, len(units)), begin + high)
                parts += ranks.grouped(intervals)
        by_epoch = groupby(parts, lambda part: part[0])
        return [_joined(epoch, list(group)) for epoch, group in by_epoch]

    def dealt(self, steps: Steps, start: int, stop: int) -> Iterator[Dealt]:
        """Yield each of the steps [start, stop), balanced."""
        while start < stop:
            low, until = steps.interval(start)[0], start + 1
            while until < stop and steps.interval(until)[1] - low <= AT_ONCE:
                until += 1
            yield from self._dealt_at_once((steps, start, until))
            start = until

    @latest(1)
    def _dealt_at_once(self, asked: tuple[Steps, int, int]) -> list[Dealt]:
        """Return a few balanced steps.

        The latest ones are kept: the samplers of all ranks ask for the same steps in turn, and so
        do callers that need a batch, its offsets and where its samples are.
        """
        steps, start, stop = asked
        answer = []
        for step, costs in enumerate(self.costs(steps, start, stop), start):
            cells = self.cells(steps, step)
            answer.append(Dealt(cells, balanced(costs, cells)))
        return answer

    def costs(self, steps: Steps, start: int, stop: int) -> list[Int64]:
        """Return the costs of the units of each of the steps [start, stop), without padding."""
        assert self.balance is not None  # noqa: S101 (callers have checked)
        bounds = [steps.interval(step)[0] for step in range(start, stop)]
        bounds.append(steps.interval(stop - 1)[1])
        low = bounds[0]
        high = low + steps.valid(low, bounds[-1])
        lengths, cost = self.balance.lengths, self.balance.cost
        with lengths.steady(gone=True):  # 4 us; else ranks might balance by different lengths
            parts = [
                self.order.ip_costs(*run, lengths, cost)
                for run in ranks.grouped(steps.positions(low, high))
            ]
        costs = np.concatenate([np.empty(0, np.int64), *parts])
        most, size = int(costs.max(initial=0)), max(self.partition.sizes)
        if size * (most + 1) >= SUM_STOP:  # of a bin, as there are no such samples
            raise _too_costly(size, most)
        return [costs[first - low : min(last, high) - low] for first, last in pairwise(bounds)]

    def cells(self, steps: Steps, step: int) -> Cells:
        """Return the cells of a step among which its units are balanced."""
        return cells_of(steps, self.world_size, step, self.phase(steps, step).inner_counts)

    # Which rank reads a position.

    def found(self, epoch: int, positions: Int64) -> Location[Int64]:
        """Return where some positions of an epoch are read; int64, -1 where they are not."""
        self.world_size  # noqa: B018 (raises if it is open)
        where = find(self.partition, epoch, positions)
        if self.balance is None:
            return where
        # Balance moves units only inside their step: each step is balanced once, for all that it
        # reads, and a unit is then where its place without balance has gone.
        read = np.flatnonzero(where.step >= 0)
        named = np.stack(where[:3])  # (epoch, sub_epoch, step) of each
        read = read[np.lexsort(named[::-1, read])]
        changes = np.flatnonzero((np.diff(named[:, read]) != 0).any(axis=0)) + 1
        for members in np.split(read, changes):
            if len(members):
                owner, sub_epoch, step = named[:, members[0]].tolist()
                ((cells, units),) = self.dealt(self.steps_in(owner, sub_epoch), step, step + 1)
                places = np.empty_like(units)  # the inverse of `units`
                places[units] = np.arange(len(units))
                firsts = cells.starts[np.searchsorted(cells.ranks, where.rank[members])]
                now = places[firsts + where.slot[members]]
                rank = cells.ranks[np.searchsorted(cells.starts, now, "right") - 1]
                where.rank[members] = rank
                where.slot[members] = now - cells.starts[np.searchsorted(cells.ranks, rank)]
        return where

    def first_read(self, index: ArrayLike, epoch: int) -> Location[Any]:
        """Return what `Plan.locate` does."""
        positions = self.order.locate(epoch, index)
        shape = positions.shape
        where = self.found(epoch, positions.ravel())
        if self.order.traits.reads == "any":  # the first read may be finished, or dropped
            again = np.flatnonzero((where.step < 0) & (positions.ravel() >= 0))
            every, offsets = self.all_reads(as_int64("index", index).ravel()[again], epoch)
            first = np.where(offsets[1:] > offsets[:-1], offsets[:-1], len(every.epoch))
            for part, of_all in zip(where, every, strict=True):
                part[again] = np.append(of_all, -1)[first]
        if not shape:
            return Location(*(int(part[0]) for part in where))
        return Location(*(part.reshape(shape) for part in where))

    def all_reads(self, index: ArrayLike, epoch: int) -> tuple[Location[Int64], Int64]:
        """Return what `Plan.locate_all` does."""
        positions, offsets = self.order.locate_all(epoch, index)
        where = self.found(epoch, positions)
        read = where.step >= 0
        kept = np.concatenate([np.zeros(1, np.int64), np.cumsum(read)])
        return Location(*(part[read] for part in where)), kept[offsets]


def _at(steps: Steps, begin: int, num_valid: int, units: Int64) -> Runs:
    """Return the positions of some units of a step, whose first place is `begin`."""
    intervals = steps.positions(begin, begin + num_valid)
    if len(intervals) == 1:
        epoch, start, _ = intervals[0]
        return [(epoch, start + units, start + units + 1)]
    epochs, starts, stops = np.array(intervals, np.int64).reshape(-1, 3).T
    ends = np.cumsum(stops - starts)
    which = np.searchsorted(ends, units, "right")
    positions = stops[which] - ends[which] + units
    found = epochs[which]
    cuts = [0, *(np.flatnonzero(np.diff(found)) + 1).tolist(), len(units)]
    return [
        (int(found[low]), positions[low:high], positions[low:high] + 1)
        for low, high in pairwise(cuts)
        if low < high
    ]


def _joined(epoch: int, parts: Runs) -> tuple[int, Int64, Int64]:
    starts, stops = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
    return epoch, starts, stops


def _too_costly(size: int, largest: int) -> IndexPlanError:
    rule = f"below 2**63 - {size}, if each cost as much as the costliest"
    cure = "make linear and quadratic smaller, or count lengths in larger units"
    return invalid(f"the costs of a step of {counted(size, 'unit')}", rule, size * largest, cure)
