"""A sampler's iterator over a pass, which knows what was drawn of it, not what the loop received.

A DataLoader with workers draws ahead of its loop without telling its sampler. So only torchdata's
StatefulDataLoader can save the right state of a sampler's own pass: it keeps this iterator's state
with each batch until the loop receives that batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, compress, islice, repeat
from typing import Any

from indexplan import IndexPlanError
from indexplan_torch.counting import refuse_under
from indexplan_torch.items import Form
from indexplan_torch.run import Reading, Run, State


class Drawn(Iterator[Any]):
    """The batches of one pass; nothing happens before the first is asked for.

    StatefulDataLoader loads a state into it when a loop begins, draws the batches between its last
    snapshot and where the loop was, and drops them; and if the loop had seen the end of its pass,
    it asks for another iterator at once. Only the pass that the state was saved in may come of
    this one, so that nothing else is dropped, and the other takes the next.
    """

    def __init__(self, run: Run) -> None:
        refuse_under("accelerate.data_loader", "refuse_dealing_out", run)
        self.run = run
        self.begun: Reading | None = None  # unless a loader has begun it, and counts
        self._batches = self._draw()

    def __next__(self) -> Any:
        """Return the next batch of indices, in the form that the run asks for."""
        return next(self._batches)

    def _draw(self) -> Iterator[Any]:
        run, reading, form = self.run, self.run.reading, self.run.given.form
        if self.begun is None:
            if reading is not None and not reading.handed and reading.unread:
                yield from requests(run, reading.number, form)
                return  # the loader that has begun it counts
            if reading is None:
                refuse_under("torchdata.nodes.adapters", "refuse_counting_draws")
                refuse_under("accelerate.data_loader", "refuse_shards", run)
            self.begun = begin(run)
        elif run.named:
            check_named(run.number, self.begun.number)
        if not self.begun.finished:
            for batch in requests(run, self.begun.number, form):
                yield from self._handed(self.begun, batch)

    def _handed(self, begun: Reading, batch: Any) -> Iterator[Any]:
        self.run.goes_on(begun)
        begun.step += 1
        yield batch

    def state_dict(self) -> State:
        """Return where this pass stands, in what was drawn of it."""
        run, begun = self.run, self.begun
        if begun is not None:
            return run.state_at(begun.number, begun.step)
        number = run.coming
        gone = number < run.first and number not in run.over  # before torchdata loads a state
        return run.state_at(run.first if gone else number, None)

    def load_state_dict(self, state: State) -> None:
        """Continue the pass that a state was saved in, and leave it set if it was named.

        Raises
        ------
        IndexPlanError
            If another pass was named.
        """
        run, number = self.run, state["pass"]
        named = run.number if run.named else None
        run.load_state_dict(state)
        if named is not None:
            run.set_epoch(named)
            check_named(named, number)
        self.begun = Reading(number, range(0)) if number in run.over else begin(run)
        if named is not None:
            run.set_epoch(named)


class DrawnUnits(Drawn):
    """The units of a pass one by one, for a loader that makes the batches of them."""

    inside = False  # one of the plan's batches

    def _handed(self, begun: Reading, batch: Any) -> Iterator[Any]:
        self.inside = True
        yield from batch[:-1]
        self.inside = False
        begun.step += 1  # before the last: a loader that has its batch doesn't ask for more
        yield batch[-1]

    def state_dict(self) -> State:
        """Return where this pass stands.

        Raises
        ------
        IndexPlanError
            If that is inside one of the plan's batches.
        """
        if self.inside:
            plan, _ = self.run.running()
            size = plan.account(*self.run.where).max_batch_size
            raise IndexPlanError(
                "batch_size",
                f"must be {size}, that of the plan, where a state is saved",
                "one that cuts the plan's batches",
                f"use DataLoader(batch_size={size}), or PlanLoader",
            )
        return super().state_dict()


def requests(run: Run, number: int, form: Form) -> Iterator[Any]:
    """Yield what to request from the dataset, batch by batch, in the remaining steps of a pass."""
    plan, rank = run.running()
    again = run.given.again
    where = divmod(number, plan.sub_epochs)
    once = form.requests(plan, *where, rank)
    if run.given.evaluation:
        once = compress(once, plan.batch_sizes(*where, rank=rank))
    times = chain.from_iterable(repeat(each, again) for each in once)
    return islice(times, run.steps(number).start % again, None)


def begin(run: Run) -> Reading:
    """Begin a pass that a sampler hands out, of which only that is known.

    Raises
    ------
    IndexPlanError
        If a PlanLoader has a state of its own to keep; or if nobody can tell whether the loop has
        read a pass already.
    """
    if run.alone:  # the other loader may skip what the state has skipped, and looks ahead
        raise IndexPlanError(
            "a PlanLoader",
            "must hand its batches to the loop itself once it is resumed or prepared, or has a "
            "ledger",
            "another loader around its batch sampler, such as that of skip_first_batches",
            "leave that out, as load_state_dict(state) and plan.resume(cursor) skip what was read",
        )
    reading = run.reading
    again = run.named and not run.given.pinned and run.number == run.coming - 1
    if again and reading is not None and reading.handed:
        raise IndexPlanError(
            "set_epoch",
            "must name the next pass too, after one that was named when it, or a state of it, had "
            "begun",
            f"none after set_epoch({reading.number})",
            "call it before each loop; or, if a state is of a loop that had ended its pass, leave "
            "it out before the first",
        )
    return run.begin(handed=True)


def check_named(named: int, number: int) -> None:
    """Refuse a pass that was named where StatefulDataLoader reads, and drops, that of a state."""
    if named != number:
        raise IndexPlanError(
            "set_epoch",
            f"must name pass {number}, which the state was saved in, or none, before the first "
            "batch after StatefulDataLoader's load_state_dict",
            named,
            f"begin with set_epoch({number}), whose rest may be empty",
        )
