"""A sampler's iterator over a pass, which knows what was drawn of it, not what the loop received.

A DataLoader with workers draws ahead of its loop, and tells its sampler nothing of that. So a pass
that a sampler hands out by itself is answered for by nobody but torchdata's StatefulDataLoader,
which keeps this iterator's state with every batch until the loop receives the batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from indexplan import IndexPlanError
from indexplan_torch.counting import UNDER_TRAINER
from indexplan_torch.dealing import refuse_dealing_out
from indexplan_torch.feed import Feed, State
from indexplan_torch.passes import Pass


class Drawn(Iterator[Any]):
    """The batches of one pass; nothing happens before the first is asked for.

    StatefulDataLoader loads a state into it when a loop begins, draws the batches between its last
    snapshot and where the loop was, and drops them; and if the loop had seen the end of its pass,
    it asks for another iterator at once. Only the pass that the state was saved in may come of
    this one, so that nothing else is dropped, and the other takes the next.
    """

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.begun: Pass | None = None  # unless a loader has begun it, and counts
        self._batches = self._draw()

    def __next__(self) -> Any:
        """Return the next batch of indices, in the form that the feed asks for."""
        return next(self._batches)

    def _draw(self) -> Iterator[Any]:
        feed, current = self.feed, self.feed.current
        if self.begun is None:
            if current is not None and not current.drawn and current.unread:
                yield from feed.draw(current)  # the loader that has begun it counts
                return
            self.begun = begin(feed)
        elif feed.turn.named:
            check_named(feed.number, self.begun.number)
        for batch in feed.draw(self.begun):
            yield from self._handed(self.begun, batch)

    def _handed(self, begun: Pass, batch: Any) -> Iterator[Any]:
        begun.step += 1
        yield batch

    def state_dict(self) -> State:
        """Return where this pass stands, in what was drawn of it."""
        feed, begun = self.feed, self.begun
        if begun is not None:
            return feed.state_at(begun.number, begun.step)
        number, start = feed.coming, feed.start
        gone = number < start.number and not start.over(number)  # before torchdata loads a state
        return feed.state_at(start.number if gone else number, None)

    def load_state_dict(self, state: State) -> None:
        """Continue the pass that a state was saved in, and leave it set if it was named.

        Raises
        ------
        IndexPlanError
            If another pass was named.
        """
        feed = self.feed
        named = feed.number if feed.turn.named else None
        feed.load_state_dict(state)
        number = state["pass"]
        if named is not None:
            feed.set_epoch(named)
            check_named(named, number)
        self.begun = Pass(number, 0, 0) if feed.start.over(number) else begin(feed)
        if named is not None:
            feed.set_epoch(named)


class DrawnUnits(Drawn):
    """The units of a pass one by one, for a loader that makes the batches of them."""

    inside = False  # one of the plan's batches

    def _handed(self, begun: Pass, batch: Any) -> Iterator[Any]:
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
            plan, _ = self.feed.running()
            size = plan.account(*self.feed.where).max_batch_size
            raise IndexPlanError(
                "batch_size",
                f"must be {size}, that of the plan, where a state is saved",
                "one that cuts the plan's batches",
                f"use DataLoader(batch_size={size}), or PlanLoader",
            )
        return super().state_dict()


def begin(feed: Feed) -> Pass:
    """Begin a pass that a sampler hands out, of which only that is known.

    Raises
    ------
    IndexPlanError
        If a PlanLoader has a state of its own to keep; if nobody can tell whether the loop has
        read a pass already; or if Accelerate deals out what is handed out.
    """
    refuse_dealing_out()
    if feed.alone:  # the other loader may skip what the state has skipped, and looks ahead
        raise IndexPlanError(
            "a PlanLoader",
            "must hand its batches to the loop itself once it is resumed or prepared, or has a "
            "ledger",
            "another loader around its batch sampler, such as that of skip_first_batches",
            "leave that out, as load_state_dict(state) and plan.resume(cursor) skip what was "
            "read" + UNDER_TRAINER,
        )
    current, turn = feed.current, feed.turn
    again = turn.named and not turn.pinned and turn.number == feed.coming - 1
    if again and current is not None and current.drawn:
        raise IndexPlanError(
            "set_epoch",
            "must name the next pass too, after one that was named when it, or a state of it, had "
            "begun",
            f"none after set_epoch({current.number})",
            "call it before each loop; or, if a state is of a loop that had ended its pass, leave "
            "it out before the first",
        )
    begun = feed.begin()
    begun.drawn = True
    return begun


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
