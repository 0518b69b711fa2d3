"""A sampler's iterator over a pass, which a DataLoader draws from ahead of the loop.

A DataLoader draws `num_workers * prefetch_factor` batches before the loop has one, and then one for
each that the loop receives, past the end too. It tells its sampler nothing of that, so the sampler
looks up who is drawing.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import Any

from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from indexplan import IndexPlanError
from indexplan.errors import wrong
from indexplan_torch import callers
from indexplan_torch.feed import Feed, State
from indexplan_torch.layout import check_length
from indexplan_torch.passes import Pass
from indexplan_torch.versions import private


class Drawn(Iterator[Any]):
    """The batches of one pass; nothing happens before the first is asked for.

    It counts what the loop has received, unless a loader does: all that was asked for but the
    batches that a DataLoader draws ahead.
    """

    def __init__(self, feed: Feed, *, seen_end: bool = False) -> None:
        self.feed = feed
        self._seen_end = seen_end  # of the pass that a state to be loaded was saved in
        self._loaded = False
        self.begun: Pass | None = None
        self._then: int | None = None  # the pass that is set, if that of the state is read first
        self._known = True  # how many batches are drawn ahead
        self._num_ahead: int | None = None  # and how many; None if a loader counts
        self._num_asked = self._num_drawn = 0  # in the pass that is begun

    def __next__(self) -> Any:
        """Return the next batch of indices, in the form that the feed asks for."""
        begun = self._draw(self._begin()) if self.begun is None else self.begun
        self._num_asked += 1
        batch = next(self._batches, None)
        if batch is None and self._then is not None:
            number, self._then = self._then, None
            self._num_asked -= self._num_drawn
            begun = self._draw(begin_within(self.feed, number))
            batch = next(self._batches, None)
        self._num_drawn += batch is not None
        if self._num_ahead is not None:
            received = min(max(self._num_asked - self._num_ahead, 0), self._num_drawn)
            begun.step = begun.first + received
            begun.ahead = self._num_drawn - received
        if batch is None:
            raise StopIteration
        return batch

    def _draw(self, begun: Pass) -> Pass:
        """Draw from a pass from now on; return it."""
        begun.counted = self._known
        self.begun, self._num_drawn = begun, 0
        self._batches = self.feed.draw(begun)
        return begun

    def _begin(self) -> Pass:
        """Begin the pass that this draws; or return the one that a loader has begun."""
        feed, drawer = self.feed, find_drawer()
        current = feed.current
        if current is not None and current.handed:
            current.handed = False
            return current
        if feed.recorder is not None:
            raise IndexPlanError(
                "a PlanLoader with a ledger",
                "must hand its batches to the loop itself",
                "another loader around its batch sampler, such as that of skip_first_batches",
                "use load_state_dict(state) instead",
            )
        ahead = num_ahead(drawer, self)
        check_drawer(drawer, feed)
        self._known, self._num_ahead = ahead is not None, ahead or 0
        if self._loaded:
            return self._begin_loaded(drawer)
        if current is not None and current.again and feed.coming > feed.number:
            feed.current = Pass(feed.number, 0, 0)
            return feed.current
        return feed.begin()

    # --- torchdata's StatefulDataLoader

    # It keeps `state_dict` with every batch that is drawn, until the loop receives the batch. It
    # loads such a state when the loop begins; it may then drop some batches, as it does not keep
    # every state; and it begins again if the loop had seen the end of the pass.

    def _begin_loaded(self, drawer: Any) -> Pass:
        """Begin with what is left of the pass of the state, or with the pass that is set."""
        feed, number, first = self.feed, self._coming(), first_after_load(self.feed)
        if feed.start.over(number):
            check_nothing_dropped(feed, _snapshot_interval(drawer))
            stays_set = self._seen_end or number != feed.number  # if torchdata begins again
            return Pass(number, 0, 0) if stays_set else feed.begin()
        if first is not None:
            self._then = feed.number
            return feed.begin(first)
        again = self._seen_end and feed.turn.named and feed.start.saved_in == number
        begun = feed.begin()
        begun.again = again
        return begun

    def _coming(self) -> int:
        """Return the number of the pass that this would begin with now."""
        first = first_after_load(self.feed) if self._loaded else self.feed.coming
        return self.feed.number if first is None else first

    def state_dict(self) -> State:
        """Return where this pass stands, in what was drawn of it."""
        if self.begun is None:
            return self.feed.state_at(self._coming(), None, drawn=True)
        step = self.begun.step + self.begun.ahead
        return self.feed.state_at(self.begun.number, step, drawn=True)

    def load_state_dict(self, state: State) -> None:
        """Continue where a pass stood."""
        load_at_iter(self.feed, state)
        self._loaded = True


def load_at_iter(feed: Feed, state: State) -> None:
    """Load a state when the loop begins, as torchdata does; a pass set before stays set."""
    asked = feed.turn.asked
    feed.load_state_dict(state)
    feed.start = feed.start.read()  # first_after_load says what is read first
    if asked is not None:
        feed.set_epoch(asked)


def begin_within(feed: Feed, number: int) -> Pass:
    """Start a pass in the loop that another was read in; one set meanwhile stays set."""
    meanwhile = feed.number if feed.turn.named else None
    begun = feed.begin(number)
    if meanwhile is not None:
        feed.set_epoch(meanwhile)
    return begun


def first_after_load(feed: Feed) -> int | None:
    """Return the pass that torchdata has to read to its end before the one that is set.

    It may have kept an earlier state and the number of batches since then, and now reads and drops
    that many. A pass that was at its end is then empty, as with torchdata's own samplers.
    """
    start = feed.start
    if start.saved_in != start.number:
        return None if feed.turn.named else start.saved_in
    return start.number if feed.number > start.number else None


def check_nothing_dropped(feed: Feed, snapshot_interval: int | None) -> None:
    """Raise if torchdata may drop batches of the pass it saved in, which is not read now."""
    if snapshot_interval != 1 and feed.start.saved_in == feed.start.number:
        raise IndexPlanError(
            "set_epoch",
            f"must be {feed.start.saved_in}, the pass that the state was saved in, as "
            "torchdata drops batches to get from its last snapshot to where the "
            "loop was",
            feed.number,
            "start the loop with that pass, or use snapshot_every_n_steps=1",
        )


def find_drawer() -> Any:
    """Return the iterator of the DataLoader that is drawing from a sampler; None if there is none.

    Raises
    ------
    IndexPlanError
        If it hands out batches in another order than it draws them.
    """
    private("torch", _BaseDataLoaderIter, "_next_index")  # without it nothing would ever be found
    seen = callers.look(callers.DRAWING)
    drawer = None if seen is None else seen["self"]
    if _num_workers(drawer):
        package, loader = _maker(drawer)
        if "in_order" in inspect.signature(loader).parameters:  # older ones are always in order
            check_in_order(private(package, drawer, "_in_order"))
    return drawer


def check_drawer(drawer: Any, feed: Feed) -> None:
    """Refuse a DataLoader whose dataset has another number of samples than the plan's order."""
    if drawer is not None:
        check_length(private("torch", drawer, "_dataset"), feed.plan.order, again=True)


def check_starting(feed: Feed) -> None:
    """Check a DataLoader that begins to iterate: the order of its batches, its dataset's length.

    Its workers have not started yet; ending workers that never had work is not always clean.
    """
    seen = callers.look(callers.STARTING)
    if seen is not None:
        drawer, loader = seen["self"], seen["loader"]
        try:
            check_in_order(getattr(loader, "in_order", True))  # else find_drawer looks
            check_length(loader.dataset, feed.plan.order, again=True)
        except IndexPlanError:
            drawer._shutdown = True  # noqa: SLF001 (else __del__ misses its workers)
            raise


def load_before_workers_start(sampler: Any) -> bool:
    """Load the state that a StatefulDataLoader is going to load, so that workers know the pass.

    It loads it itself only after its workers have started and been seeded. Return whether the loop
    that was saved had seen the end of its pass: StatefulDataLoader then begins once more.

    Raises
    ------
    IndexPlanError
        If the state is of another number of workers, which torchdata does not load.
    """
    seen = callers.look(callers.STARTING)
    if seen is None:
        return False
    drawer, loader = seen["self"], seen["loader"]
    if loader.batch_sampler is not sampler or _maker(drawer)[0] != "torchdata":
        return False
    state = private("torchdata", loader, "next_iter_state")
    if not isinstance(state, dict):
        return False
    snapshot = state.get("_snapshot", {})
    saved = snapshot.get("_main_snapshot", {}) if "_snapshot" in state else state
    num_workers = saved.get("_num_workers", 0)
    if num_workers != loader.num_workers:
        drawer._shutdown = True  # noqa: SLF001 (else __del__ misses its workers)
        raise IndexPlanError(
            "num_workers",
            f"must be {num_workers}, that of the state that StatefulDataLoader is to load",
            loader.num_workers,
            f"use num_workers={num_workers}, or PlanLoader, whose state can be loaded "
            "under any number",
        )
    if num_workers and saved.get("_sampler_iter_state") is not None:
        load_at_iter(sampler.feed, saved["_sampler_iter_state"])
    return state.get("_iterator_finished") is True


def num_ahead(drawer: Any, drawn: Drawn) -> int | None:
    """Return how many batches a DataLoader draws before the loop has one; None if unknown.

    It is unknown if another sampler stands between: that one may ask for more than it hands on.
    """
    if not _num_workers(drawer):
        return 0
    if private("torch", drawer, "_sampler_iter") is not drawn:
        return None
    return _num_workers(drawer) * int(private("torch", drawer, "_prefetch_factor"))


def _num_workers(drawer: Any) -> int:
    """Return the number of workers that a DataLoader's iterator draws for."""
    return 0 if drawer is None else int(private("torch", drawer, "_num_workers"))


def _snapshot_interval(drawer: Any) -> int | None:
    """Return after how many batches torchdata keeps a state; None if it keeps only the first.

    Without workers it keeps every state.
    """
    return private("torchdata", drawer, "_snapshot_interval") if _num_workers(drawer) else 1


def _maker(drawer: Any) -> tuple[str, Any]:
    """Return the package that a DataLoader's iterator is from, and that package's DataLoader."""
    modules = [each.__module__ for each in type(drawer).__mro__]
    name = next(each for each in modules if each.startswith(("torch.", "torchdata.")))
    loader = getattr(sys.modules[name], "StatefulDataLoader", DataLoader)
    return name.partition(".")[0], loader


def check_in_order(in_order: Any) -> None:
    """Raise if a DataLoader hands out batches as its workers finish them."""
    if in_order is not True:
        raise wrong(
            "in_order",
            "True, as a state counts batches, and cannot tell which of them a slow "
            "worker still has",
            in_order,
            "leave it out",
        )
