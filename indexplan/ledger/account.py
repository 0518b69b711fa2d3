"""A run added up: what became of the units of each epoch that it has begun."""

from __future__ import annotations

from dataclasses import dataclass, fields

from indexplan.answers import Answer
from indexplan.errors import counted
from indexplan.ledger.history import History, Segment
from indexplan.ledger.seen import intervals
from indexplan.orders.extents import extent_of


@dataclass(frozen=True, kw_only=True)
class LedgerAccount(Answer):
    """What became of the units of a run's epochs; all counts are exact.

    `Ledger.account` returns it. Always num_units == num_read + num_dropped + num_finished +
    num_skipped + num_excluded + num_left: steps that are void do not count.

    Parameters
    ----------
    num_units : int
        Units of the epochs, with those that the run leaves out.
    num_read, num_dropped, num_left : int
        Units that steps have read, that the run has passed without a step that reads them, and that
        are left to read.
    num_finished : int
        Units of the first epoch before the place at which the ledger's first step starts. The run
        had read them before it kept the ledger, or had skipped them: no line says which.
    num_skipped, num_excluded : int
        Units between a place where the run stood and a later one where it went on, and units that
        it leaves out by `Without`; of bins, those that were left empty.
    num_left_out : int
        Samples that have left bins which stay.
    num_padded : int
        Padded slots, which read a unit once more.
    num_steps : int
        Steps that count; of one epoch, those that start in it.
    num_void, num_void_steps : int
        Units that were read, and steps, that a return to a checkpoint has undone.

    Examples
    --------
    >>> import indexplan as ip
    >>> plan = ip.Plan(ip.Shuffle(1003), world_size=2, batch_size=50, remainder="drop")
    >>> ledger = ip.Ledger("run.ledger")
    >>> ledger.record(plan, plan.cursor(epoch=1, step=4))
    >>> print(ledger.account())
    2,006 units: 1,400 read, 3 dropped, 603 left; 14 steps
    """

    num_units: int = 0
    num_read: int = 0
    num_dropped: int = 0
    num_left: int = 0
    num_finished: int = 0
    num_skipped: int = 0
    num_excluded: int = 0
    num_left_out: int = 0
    num_padded: int = 0
    num_steps: int = 0
    num_void: int = 0
    num_void_steps: int = 0

    def __str__(self) -> str:
        units = {"read": self.num_read, "dropped": self.num_dropped, "left": self.num_left}
        more = {
            "before the ledger": self.num_finished,
            "skipped": self.num_skipped,
            "excluded": self.num_excluded,
        }
        units |= {word: number for word, number in more.items() if number}
        parts = [counted(self.num_steps, "step")]
        if self.num_padded:
            parts.append(f"{self.num_padded:,} padded")
        if self.num_left_out:
            parts.append(f"{counted(self.num_left_out, 'sample')} left out of bins")
        if self.num_void_steps:
            parts.append(f"void: {self.num_void:,} read in {counted(self.num_void_steps, 'step')}")
        words = ", ".join(f"{number:,} {word}" for word, number in units.items())
        return f"{counted(self.num_units, 'unit')}: {words}; {', '.join(parts)}"


def account_of(history: History, epoch: int | None) -> LedgerAccount:
    """Return what became of an epoch, or of all that the run has begun.

    The epoch is one that the run has begun, or begins with its next step.
    """
    groups: dict[int, list[list[Segment]]] = {} if epoch is None else {epoch: []}
    jumps = _jumps(history)
    for stretch in history.live_stretches:
        if epoch in (None, stretch.epoch):
            groups.setdefault(stretch.epoch, []).append(stretch.segments)
    for each in jumps if epoch is None else ():
        groups.setdefault(each, [])  # perhaps it was skipped as a whole
    counts = [
        _of_epoch(history, each, found, jumps.get(each, [])) for each, found in groups.items()
    ]
    for gone in history.void:
        for stretch in history.stretches(gone):
            if epoch in (None, stretch.epoch):
                num_void, _ = _read(history, stretch.segments, stretch.epoch)
                counts.append(LedgerAccount(num_void=num_void))
        counts.append(LedgerAccount(num_void_steps=_num_steps(history, gone, epoch)))
    counts.append(LedgerAccount(num_steps=_num_steps(history, history.live, epoch)))
    names = [field.name for field in fields(LedgerAccount)]
    return LedgerAccount(**{name: sum(getattr(count, name) for count in counts) for name in names})


def _of_epoch(
    history: History, epoch: int, groups: list[list[Segment]], jumps: list[tuple[int, int | None]]
) -> LedgerAccount:
    named = history.plans[groups[-1][-1].plan if groups else history.newest_plan]
    order, sub_epochs = named.plan.order, named.layout.partition.sub_epochs
    num_units = order.num_units(epoch)
    begun, place = history.begun, history.place
    assert begun is not None and place is not None  # noqa: S101, PT018 (there is a step)
    reached = num_units if place.epoch > epoch else place.position
    finished = begun.position if begun.epoch == epoch else 0
    counts = [_read(history, segments, epoch) for segments in groups]
    read = sum(count[0] for count in counts)
    extent = extent_of(order)
    excluded = extent.missing(epoch, sub_epochs, 0, sub_epochs)
    skipped = sum((num_units if stop is None else stop) - start for start, stop in jumps)
    return LedgerAccount(
        num_units=num_units + excluded,
        num_read=read,
        num_dropped=reached - read - finished - skipped,
        num_finished=finished,
        num_left=num_units - reached,
        num_skipped=skipped,
        num_excluded=excluded,
        num_left_out=extent.num_taken_out(epoch),
        num_padded=sum(count[1] for count in counts),
    )


def _jumps(history: History) -> dict[int, list[tuple[int, int | None]]]:
    """Return the positions [start, stop) of each epoch that a run has skipped; None is its end."""
    found: dict[int, list[tuple[int, int | None]]] = {}
    for at, segment in history.jumps():
        to = segment.start
        for epoch in range(at.epoch, to.epoch + (to.position > 0)):
            start = at.position if epoch == at.epoch else 0
            stop = to.position if epoch == to.epoch else None
            found.setdefault(epoch, []).append((start, stop))
    return found


def _num_steps(history: History, segments: list[Segment], epoch: int | None) -> int:
    """Return how many steps of some segments start in an epoch, or in any."""
    if epoch is None:
        return sum(each.steps for each in segments)
    return sum(
        part.num
        for each in segments
        if each.start.epoch <= epoch <= each.stop.epoch
        for part in history.parts(each, epoch)
    )


def _read(history: History, segments: list[Segment], epoch: int) -> tuple[int, int]:
    """Return how many units of an epoch some segments have read, and how many padded slots."""
    read = padded = 0
    for segment in segments:
        for start, stop, repeats in intervals(history, segment, epoch):
            read += 0 if repeats else stop - start
            padded += stop - start if repeats else 0
    return read, padded
