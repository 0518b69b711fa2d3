"""How much of each class or source a run reads, compared with the shares that were asked for."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from indexplan.answers import Answer, table
from indexplan.errors import Cure, counted, integer, invalid
from indexplan.keywords import named
from indexplan.ledger.history import resumed
from indexplan.ledger.ledger import Ledger
from indexplan.orders.base import Float64, Int64, Order
from indexplan.orders.groups import Place
from indexplan.plan.cursor import Cursor
from indexplan.plan.plan import Plan, check_plan, layout_of
from indexplan.seeds import EPOCH_STOP

ROWS = 24  # groups that the text lists
PARTS = 2**16  # most epochs or sub-epochs that are counted one by one
LAST = (EPOCH_STOP, 0)  # the place after all others
PAST = "name a place that this plan, or this run, reads"


@dataclass(frozen=True, kw_only=True, eq=False)
class Draws(Answer):
    """How much of each group a run reads between two places, and how much it should.

    `draws` returns it. It counts units instead of samples for a mixture of bins, where each bin
    comes from a single source, and for other orders whose shares count units.

    Parameters
    ----------
    start, stop : (int, int)
        The places between which reads are counted: an epoch, and a position in it.
    counted : {"samples", "units"}
        What is counted: the order's `shares_of`.
    names : tuple of str
        The order's groups: the sources of a mixture, or the classes.
    drawn : numpy.ndarray
        int64, shape (groups,): what all ranks read of each group, without padding.
    aimed : numpy.ndarray
        float64, shape (groups,): what they should have read according to the shares.
    sizes : numpy.ndarray or None
        int64, shape (groups,): how many of what is counted an epoch of each source has; None for
        an order other than a mixture.

    Examples
    --------
    >>> import indexplan as ip
    >>> sources = {"web": ip.Shuffle(700, seed=1), "code": ip.Shuffle(20, seed=2)}
    >>> plan = ip.Plan(ip.Mixture(sources, {"web": 7, "code": 1}), batch_size=32)
    >>> print(ip.draws(plan, stop=1600))
    from the start to epoch 2, position 160: 1,600 samples read
    group      samples        got     wanted  epochs
    web          1,400     87.50%     87.50%    2.00
    code           200     12.50%     12.50%   10.00
    """

    start: Place
    stop: Place
    counted: str
    names: tuple[str, ...]
    drawn: Int64
    aimed: Float64
    sizes: Int64 | None

    @property
    def epochs(self) -> Float64 | None:
        """How many epochs are read of each source; float64, shape (groups,), or None."""
        return None if self.sizes is None else self.drawn / self.sizes

    @property
    def noun(self) -> str:
        """What is counted, in words for readers who do not know units."""
        return "bins" if self.counted == "units" else "samples"

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as JSON types, with an object for each group."""
        columns = {
            "name": self.names,
            self.counted: self.drawn.tolist(),
            "got": (self.drawn / max(self.drawn.sum(), 1)).tolist(),
            "wanted": (self.aimed / (self.aimed.sum() or 1)).tolist(),
        }
        if self.sizes is not None:
            columns |= {"size": self.sizes.tolist(), "epochs": (self.drawn / self.sizes).tolist()}
        rows = zip(*columns.values(), strict=True)
        return {
            "start": list(self.start),
            "stop": list(self.stop),
            "counted": self.counted,
            "groups": [dict(zip(columns, row, strict=True)) for row in rows],
        }

    def __str__(self) -> str:
        total = int(self.drawn.sum())
        got, wanted = self.drawn / max(total, 1), self.aimed / (self.aimed.sum() or 1)
        digits = _digits([*got[:ROWS].tolist(), *wanted[:ROWS].tolist()])
        rows = [["group", self.noun, "got", "wanted"] + ["epochs"] * (self.epochs is not None)]
        for group, name in enumerate(self.names[:ROWS]):
            shares = (f"{each[group]:.{digits}%}" for each in (got, wanted))
            rows.append([name, f"{self.drawn[group]:,}", *shares])
            if self.epochs is not None:
                rows[-1].append(f"{self.epochs[group]:,.2f}")
        lines = table(rows, least=(5, 12, 10, 10, 7)[: len(rows[0])])
        if len(self.names) > ROWS:
            lines.append(f"... {len(self.names) - ROWS:,} more")
        return "\n".join([f"{self._where}: {counted(total, self.noun[:-1])} read", *lines])

    @property
    def _where(self) -> str:
        """Return which reads were counted, in words."""
        (epoch, position), (end, until) = self.start, self.stop
        words = f"epoch {epoch}"
        if position or (end, until) != (epoch + 1, 0):
            start = f"epoch {epoch}, position {position:,}" if position or epoch else "the start"
            words = f"from {start} to epoch {end}, position {until:,}"
        return words


@named
def draws(
    plan: Plan | Ledger,
    epoch: int | None = None,
    *,
    start: Cursor | int | None = None,
    stop: Cursor | int | None = None,
) -> Draws:
    """Count how much of each class or source is read between two places, against the shares.

    To check the weights of a mixture or of classes: how often each was read, how often it should
    be, and how many epochs of it that is. It counts what all steps read, without padding and
    without the units that "drop" leaves out.

    A mixture is counted by a formula, which draws nothing, so a place may be as far as a run can
    get; under "drop" each epoch is counted by itself. Of other orders all units are drawn, some
    ten million samples a second: of a long epoch, name a `stop`.

    A mixture's weights count units. So if its sources have bins, bins are counted, not the samples
    in them; the shares of samples differ where bins differ in size.

    Parameters
    ----------
    plan : Plan or Ledger
        A plan whose order has groups: a `Mixture`, `ClassBalanced`, `ClassBatches`, `Grouped`, or a
        layer around one. Or the ledger of a run of such plans: then all that has been read is
        counted, through resumes and changes of plan.
    epoch : int, optional
        Count what is read of this epoch.
    start, stop : Cursor or int, optional
        Count from the one place to the other: a cursor, or the unit of the run, counted over all
        epochs. By default from where the plan starts, and to the end of the epoch of `start`; of a
        ledger, all.

    Raises
    ------
    IndexPlanError
        If the order has no groups, a place is out of range or before the start of the plan, `epoch`
        is given together with a place, or more than 2**16 epochs or sub-epochs would have to be
        counted one by one. Under "drop", if the steps depend on a world_size that is open.

    Examples
    --------
    >>> import indexplan as ip
    >>> order = ip.ClassBalanced([3, 3, 3, 5], weights=[1, 1])
    >>> counted = ip.draws(ip.Plan(order, world_size=2, batch_size=1))
    >>> dict(zip(counted.names, counted.drawn.tolist()))
    {'3': 2, '5': 2}
    """
    if isinstance(plan, Ledger):
        reads = list(_reads_of(plan))
        named, first, last = plan.plan, reads[0].start, reads[-1].stop
        low, high = _between(named, epoch, start, stop, first, last)
        reads = [each.clipped(low, high) for each in reads]
    else:
        check_plan("plan", plan)
        named = plan
        resume = layout_of(plan).partition.resume  # plan.start would write the order down
        low, high = _between(plan, epoch, start, stop, resume.unit if resume else (0, 0), LAST)
        reads = list(_reads(plan, low, high))
    return _counted(named.order, low, high, reads)


def _counted(order: Order, start: Place, stop: Place, reads: Iterable[_Read]) -> Draws:
    """Return what is read of each group, by name: plans of a run may have had other sources."""
    drawn: Counter[str] = Counter()
    aimed: defaultdict[str, float] = defaultdict(float)
    for read in reads:
        if read.start < read.stop:
            ends = read.start, read.stop
            counts, shares = read.order.ip_counted(*ends) or read.order.ip_drawn(*ends)
            names = read.order.group_names
            drawn.update(dict(zip(names, counts.tolist(), strict=True)))
            for name, share in zip(names, shares.tolist(), strict=True):
                aimed[name] += share
    names = tuple(dict.fromkeys((*order.group_names, *drawn)))
    sizes = order.ip_group_sizes
    return Draws(
        start=start,
        stop=stop,
        counted=order.shares_of,
        names=names,
        drawn=np.array([drawn[name] for name in names], np.int64),
        aimed=np.array([aimed[name] for name in names], np.float64),
        sizes=sizes if sizes is not None and len(sizes) == len(names) else None,
    )


class _Read(NamedTuple):
    """Everything that an order has between two places was read."""

    order: Order
    start: Place
    stop: Place

    def clipped(self, low: Place, high: Place) -> _Read:
        """Return what was read of it between two places."""
        return self._replace(start=max(self.start, low), stop=min(self.stop, high))


def _reads(plan: Plan, low: Place, high: Place) -> Iterator[_Read]:
    """Yield what the steps of a plan read between two places: all, except under "drop"."""
    layout, order = layout_of(plan), plan.order
    _check_groups(order)
    one_by_one = layout.partition.policy.leaves
    num_parts = (high[0] - low[0] + 1) * (plan.sub_epochs if one_by_one else 1)
    if (one_by_one or order.ip_counted(low, low) is None) and num_parts > PARTS:
        rule = f"at most {PARTS} epochs or sub-epochs apart, to be counted one by one"
        raise invalid("start and stop", rule, num_parts, "count fewer at a time")
    if not one_by_one:
        yield _Read(order, low, high)
        return
    layout.check_sized()
    for epoch in range(low[0], high[0] + (high[1] > 0)):
        for part in range(plan.sub_epochs):
            if not layout.is_finished(epoch, part):
                steps = layout.steps_in(epoch, part)
                read = _Read(order, (epoch, steps.start), (epoch, steps.end))
                yield read.clipped(low, high)


def _reads_of(ledger: Ledger) -> Iterator[_Read]:
    """Yield what a run has read, from change to change."""
    history = ledger.history
    ledger.cursor  # noqa: B018 (raises if it holds no step)
    for segment in history.live:
        plan = resumed(history.plans[segment.plan].plan, segment.start)
        low, high = ((each.epoch, each.position) for each in (segment.start, segment.stop))
        yield from _reads(plan, low, high)


def _between(
    plan: Plan,
    epoch: int | None,
    start: Cursor | int | None,
    stop: Cursor | int | None,
    first: Place,
    last: Place,
) -> tuple[Place, Place]:
    """Return the places between which a call asks for reads, of all that is or may be read."""
    if epoch is not None:
        if start is not None or stop is not None:
            raise invalid("epoch", "left out if start or stop is given", epoch, "leave one out")
        epoch = integer("epoch", epoch, first[0], max(last[0] + (last[1] > 0), first[0] + 1), PAST)
        return max(first, (epoch, 0)), min(last, (epoch + 1, 0))
    low = first if start is None else _place(plan, "start", start)
    high = (low[0] + 1, 0) if last == LAST else last
    high = high if stop is None else _place(plan, "stop", stop)
    for name, place in (("start", low), ("stop", high)):
        if not first <= place <= last:
            ends = f"from epoch {first[0]}, position {first[1]}"
            ends += "" if last == LAST else f" to epoch {last[0]}, position {last[1]}"
            raise invalid(name, f"{ends}, as that is what is read", place, PAST)
    if low > high:
        raise invalid("stop", f"at or after start, {low}", high, "swap them")
    return low, high


def _place(plan: Plan, name: str, value: Any) -> Place:
    """Return the epoch and position of a cursor, or of a unit of the run."""
    layout, order = layout_of(plan), plan.order
    if isinstance(value, Cursor):
        epoch, position = value.checked(order, plan.sub_epochs).unit
    else:
        epoch, position = layout.unit_at(value, name)
    return (epoch + 1, 0) if position and position == order.num_units(epoch) else (epoch, position)


def _check_groups(order: Order) -> None:
    """Raise `IndexPlanError` unless an order has groups."""
    if not order.group_names:
        cure = Cure(
            "this plan has no classes or sources to count; plan.account counts its units",
            "this plan has no classes or sources to count; `indexplan show` counts its units",
        )
        raise invalid("an order", "one with groups, such as a Mixture", order.algorithm, cure)


def _digits(shares: list[float]) -> int:
    """Return with how many decimals, from 2 to 8, the least of some percentages can be read."""
    least = min((share for share in shares if share > 0), default=1.0)
    return min(8, max(2, 1 - math.floor(math.log10(100 * least))))
