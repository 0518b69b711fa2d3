"""How often the steps of a plan draw each class or source, compared with the shares aimed at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from indexplan.answers import Answer, table
from indexplan.errors import Cure, counted, wrong
from indexplan.orders.base import Float64, Int64, Order
from indexplan.partition.steps import Steps
from indexplan.plan.plan import Plan, check_plan, layout_of
from indexplan.seeds import check_epoch

POINTS = 128  # most steps at which counts are taken
NUMBERS = 2**22  # most counts, of all groups at all of these steps
MOST = 2**25  # about how many samples are drawn, in some seconds: the first steps of a longer epoch
BLOCK, BINS = 2**20, 2**12  # units at a time; fewer if they are bins, which hold many samples
SUB_EPOCHS = 2**16
ROWS = 24  # groups that the text lists: half of them those drawn most, half those drawn least


@dataclass(frozen=True, kw_only=True, eq=False)
class Draws(Answer):
    """How many samples of each group the steps of an epoch draw, and how many they should.

    `draws` returns it. It counts units instead for a mixture of bins, where each bin comes from a
    single source, and for other orders whose shares count units.

    Parameters
    ----------
    epoch : int
    num_steps, num_looked_at : int
        Steps that are left in the epoch, and how many of them, from the first on, were drawn.
    counted : {"samples", "units"}
        What is counted: the order's `shares_of`.
    names : tuple of str
        The order's groups: the sources of a mixture, or the classes.
    stops : numpy.ndarray
        int64, shape (points,): how many of the steps each point comes after.
    counts : numpy.ndarray
        int64, shape (points, groups): what all ranks had drawn of each group by then, without
        padding.
    aimed : numpy.ndarray
        float64, the same shape: what they should have drawn according to the shares.

    Examples
    --------
    >>> import indexplan as ip
    >>> labels = [0, 0, 0, 0, 1, 1]
    >>> plan = ip.Plan(ip.ClassBalanced(labels), world_size=1, batch_size=2)
    >>> print(ip.draws(plan))
    epoch 0, 3 steps: 6 samples drawn
    group         drawn     share   aimed at   most apart
    0                 3    50.00%     50.00%          0.0
    1                 3    50.00%     50.00%          0.0
    """

    epoch: int
    num_steps: int
    num_looked_at: int
    counted: str
    names: tuple[str, ...]
    stops: Int64
    counts: Int64
    aimed: Float64

    @property
    def drawn(self) -> Int64:
        """What was drawn of each group in total; int64, shape (groups,)."""
        return self.counts[-1] if len(self.counts) else np.zeros(len(self.names), np.int64)

    @property
    def most_apart(self) -> Float64:
        """The largest difference, over all points, between each group's count and its aim."""
        apart: Float64 = np.abs(self.counts - self.aimed).max(axis=0, initial=0.0)
        return apart

    @property
    def noun(self) -> str:
        """What is counted, in words for readers who do not know units."""
        return "bins" if self.counted == "units" else "samples"

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as JSON types, with arrays as lists."""
        arrays = {name: getattr(self, name).tolist() for name in ("stops", "counts", "aimed")}
        names = ("epoch", "num_steps", "num_looked_at", "counted")
        plain = {name: getattr(self, name) for name in names}
        return {**plain, "names": list(self.names), **arrays}

    def __str__(self) -> str:
        drawn, total = self.drawn, int(self.drawn.sum())
        shares = self.aimed[-1] / max(self.aimed[-1].sum(), 1) if len(self.aimed) else drawn * 0.0
        steps = counted(self.num_steps, "step")
        if self.num_looked_at < self.num_steps:
            steps = f"the first {self.num_looked_at:,} of {steps}"
        lines = [f"epoch {self.epoch}, {steps}: {counted(total, self.noun[:-1])} drawn"]
        shown, left_out = _rows(drawn)
        rows = [("group", "drawn", "share", "aimed at", "most apart")]
        apart = self.most_apart
        for group in shown:
            share, aim = drawn[group] / max(total, 1), float(shares[group])
            cells = f"{drawn[group]:,}", f"{share:.2%}", f"{aim:.2%}", f"{apart[group]:,.1f}"
            rows.append((self.names[group], *cells))
        shown_rows = table(rows, least=(5, 13, 9, 10, 12))
        if left_out:  # after the heading and one half of the groups
            place = 1 + len(shown) // 2
            shown_rows.insert(place, f"... {left_out:,} more between these")
        return "\n".join([*lines, *shown_rows])


def draws(plan: Plan, epoch: int | None = None) -> Draws:
    """Count how many samples of each class or source the steps of an epoch draw, against the aim.

    To check the weights of a mixture or of classes. If the epoch has more than about 2**25 samples,
    only its first steps are drawn; if a single step has more, only a part of it.

    A mixture's weights count units. So if its sources have bins, bins are counted, not the samples
    in them; the shares of samples differ where bins differ in size.

    Parameters
    ----------
    plan : Plan
        Its order must have groups: a `Mixture`, `ClassBalanced`, `ClassBatches`, `Grouped`, or a
        layer around one.
    epoch : int, optional
        By default the first epoch of the plan.

    Raises
    ------
    IndexPlanError
        If the order has no groups, the epoch is out of range, or more than 2**16 sub-epochs of it
        are left.

    Examples
    --------
    >>> import indexplan as ip
    >>> order = ip.ClassBalanced([3, 3, 3, 5], weights=[1, 1])
    >>> counted = ip.draws(ip.Plan(order, world_size=2, batch_size=1))
    >>> dict(zip(counted.names, counted.drawn.tolist()))
    {'3': 2, '5': 2}
    """
    check_plan("plan", plan)
    order = plan.order
    if not order.group_names:
        cure: str = Cure(
            "this plan has no classes or sources to count; plan.account counts its units",
            "this plan has no classes or sources to count; `indexplan show` counts its units",
        )
        raise wrong("an order", "one with groups, such as a Mixture", order.algorithm, cure)
    epoch = plan.start.epoch if epoch is None else check_epoch(epoch)
    first = plan.start.sub_epoch if epoch == plan.start.epoch else 0
    if plan.sub_epochs - first > SUB_EPOCHS:
        rule, cure = f"at most {SUB_EPOCHS}, to be counted one by one", "use fewer sub_epochs"
        raise wrong("sub_epochs that are left", rule, plan.sub_epochs - first, cure)
    parts = [layout_of(plan).steps(epoch, part) for part in range(first, plan.sub_epochs)]
    return _counted(order, epoch, parts)


def _counted(order: Order, epoch: int, parts: list[Steps]) -> Draws:
    names = order.group_names
    num_steps = sum(steps.num_steps - steps.first_step for steps in parts)
    points = max(1, min(POINTS, NUMBERS // len(names)))
    each = max(1, -(-num_steps // points))  # steps from one point to the next
    stops, counts, aimed = [], [], []
    count, aim = np.zeros(len(names), np.int64), np.zeros(len(names))
    block = BINS if order.deals_bins else BLOCK
    most = max(1, MOST // _bin_size(order, epoch))
    done = units = 0
    for steps in parts:
        step = steps.first_step
        while step < steps.num_steps and units < most:
            stop = min(step + each - done % each, steps.num_steps)
            low, high = steps.interval(step)[0], steps.interval(stop - 1)[1]
            if high - low > most - units:  # as many steps as there is room for, or a part of one
                stop = step + max(1, (most - units) * (stop - step) // (high - low))
                high = min(steps.interval(stop - 1)[1], low + most)
            for of_epoch, start, end in steps.positions(low, low + steps.valid(low, high)):
                for begin in range(start, end, block):
                    until = min(begin + block, end)
                    groups = order._groups_read(of_epoch, begin, until)  # noqa: SLF001
                    count += np.bincount(groups[groups >= 0], minlength=len(names))
                    aim += order.group_shares(of_epoch, begin, until) * len(groups)
            done, units, step = done + stop - step, units + high - low, stop
            if done % each == 0 or done == num_steps or units >= most:
                stops.append(done)
                counts.append(count.copy())
                aimed.append(aim.copy())
    shape = (len(stops), len(names))
    return Draws(
        epoch=epoch,
        num_steps=num_steps,
        num_looked_at=done,
        counted=order.shares_of,
        names=names,
        stops=np.array(stops, np.int64),
        counts=np.array(counts, np.int64).reshape(shape),
        aimed=np.array(aimed, np.float64).reshape(shape),
    )


def _bin_size(order: Order, epoch: int) -> int:
    """Estimate the samples in a unit of an epoch, rounded up, from its first units."""
    if not order.deals_bins:
        return 1
    num = min(BINS, order.num_units(epoch))
    return max(1, -(-int(order.offsets(epoch, 0, num)[-1]) // num))


def _rows(drawn: Int64) -> tuple[list[int], int]:
    """Return the groups that the text lists, and how many it leaves out."""
    if len(drawn) <= ROWS:
        return list(range(len(drawn))), 0
    order = np.argsort(-drawn, kind="stable").tolist()
    return [*order[: ROWS // 2], *order[-ROWS // 2 :]], len(drawn) - ROWS
