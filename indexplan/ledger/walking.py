"""Steps of a plan from a place of a run on, through sub-epochs and epochs: by arithmetic alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from indexplan.errors import IndexPlanError, wrong
from indexplan.partition.steps import Partition, Resume, Steps, steps_in
from indexplan.plan.layout import Layout
from indexplan.seeds import EPOCH_STOP

MOST_PARTS = 2**20  # sub-epochs of steps without a break, each some 10 us


class Part(NamedTuple):
    """The steps [first, stop) of a sub-epoch, under the plan as it continues from a place."""

    steps: Steps
    first: int
    stop: int

    @property
    def num(self) -> int:
        """How many steps these are."""
        return self.stop - self.first

    @property
    def where(self) -> tuple[int, int]:
        """Their (epoch, sub_epoch)."""
        return self.steps.epoch, self.steps.sub_epoch


def parts(layout: Layout, start: Resume, num_steps: int) -> Iterator[Part]:
    """Yield a plan's next steps from a place on, sub-epoch by sub-epoch."""
    for _, steps in _sub_epochs(layout, start):
        stop = min(steps.num_steps, steps.first_step + num_steps)
        if stop > steps.first_step:
            yield Part(steps, steps.first_step, stop)
            num_steps -= stop - steps.first_step
        if not num_steps:
            return


def place_after(layout: Layout, start: Resume, num_steps: int) -> Resume:
    """Return where a run stands that has read a plan's next steps from a place on."""
    if not num_steps:
        return start
    *_, last = parts(layout, start, num_steps)
    return replace(layout.partition, resume=start).resume_after(last.steps, last.stop)


def steps_to(layout: Layout, start: Resume, stop: Resume) -> tuple[int, Resume]:
    """Return how many steps of a plan lie between two places, and the second one.

    Where a place was found by counting samples, its step has another number than that of a run
    that came there by steps: positions decide, and the place that is returned has the run's number.

    Raises
    ------
    IndexPlanError
        If no step of the plan, as it continues from `start`, ends at `stop`; or they are more than
        2**20 sub-epochs apart.
    """
    total, cure = 0, "pass plan.cursor(...) or loader.cursor of the plan as it was resumed"
    for partition, steps in _sub_epochs(layout, start, stop):
        here = steps.epoch, steps.sub_epoch
        if here >= stop[:2]:
            place, step = None, stop.step  # mostly its number here, too
            if steps.first_step <= step <= steps.num_steps:
                place = partition.resume_after(steps, step)
            if place != stop:
                step = steps.after(stop.position)
                place = partition.resume_after(steps, step)
            if (place[:2], place.position) == (stop[:2], stop.position):
                return total + step - steps.first_step, place
            break
        total += steps.num_steps - steps.first_step
    rule = f"where a step of the plan ends that starts at or past {_named(start)}"
    raise IndexPlanError("cursor", f"must be {rule}", _named(stop), cure)


def _sub_epochs(
    layout: Layout, start: Resume, stop: Resume | None = None
) -> Iterator[tuple[Partition, Steps]]:
    """Yield each sub-epoch from a place on, with the partition that continues there.

    A place that is too far to be reached is refused at once, not after the 10 s of the way to it.
    """
    partition = replace(layout.partition, resume=start)
    epoch, sub_epoch = start[:2]
    far = stop is not None and _apart(partition.sub_epochs, start, stop) >= MOST_PARTS
    for _ in range(0 if far else MOST_PARTS):
        if epoch >= EPOCH_STOP:
            return
        yield partition, steps_in(partition, layout.order.num_units(epoch), epoch, sub_epoch)
        sub_epoch += 1
        if sub_epoch == partition.sub_epochs:
            epoch, sub_epoch = epoch + 1, 0
    rule = f"at most {MOST_PARTS} sub-epochs after the line before"
    raise wrong("steps without a break", rule, "more", "record them in several lines")


def _apart(sub_epochs: int, start: Resume, stop: Resume) -> int:
    """Return how many sub-epochs of a plan lie between the beginnings of those of two places."""
    last = min(stop.sub_epoch, sub_epochs)  # a place of another plan may be in none of this one's
    return (stop.epoch - start.epoch) * sub_epochs + last - start.sub_epoch


def _named(place: Resume) -> str:
    epoch, sub_epoch, step, position = place
    return f"epoch {epoch}, sub-epoch {sub_epoch}, step {step}, position {position}"
