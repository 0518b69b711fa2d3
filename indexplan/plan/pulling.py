"""Streams: draw from an order as a loop needs it, and account for what became of each unit."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any, Literal, NoReturn, overload

from indexplan.canonical import check_fields
from indexplan.errors import IndexPlanError, integer, invalid
from indexplan.keywords import named
from indexplan.partition.ranks import MOST_UNITS, Runs, below, grouped
from indexplan.partition.remainders import REMAINDERS
from indexplan.partition.steps import Int64, through_epochs
from indexplan.plan.batch import Batch, walked
from indexplan.plan.cursor import Cursor, cursor_of
from indexplan.plan.draw import take
from indexplan.plan.plan import Plan, check_plan, layout_of, plan_of_run
from indexplan.seeds import EPOCH_STOP

STATE_VERSION = 1
COUNTS = ("num_drawn", "num_trained", "num_discarded")
IN_ONE = "must be drawn from in the process that made it"
THERE = "load its state_dict into a stream that is made there"
IN_HAND = "pass at most stream.num_in_hand, the units that are drawn and not yet counted"


@named
def stream(plan: Plan, cursor: Cursor | None = None, *, rank: int) -> Stream:
    """Return a stream of a plan's units, for loops that don't know how many a step will need.

    Such loops refill a step until enough samples are useful: DAPO's dynamic sampling, for example,
    or rejection sampling.

    Parameters
    ----------
    plan : Plan
        Its order and world size are used. The loop makes its own steps, so the batch size only
        numbers the steps of cursors. The remainder must be "carry" or "spread", without a balance.
    cursor : Cursor, optional
        Where to start; by default, where the plan does.
    rank : int
        Whose share to draw, 0 <= rank < world_size. If one process hands out all units, such as a
        controller of rollout workers, it is rank 0 of a plan with `world_size=1`.

    Returns
    -------
    indexplan.types.Stream

    Raises
    ------
    IndexPlanError
        If the remainder is "drop" or "pad", the plan has a balance or no world_size, the rank is
        out of range, or the plan cannot be resumed at the cursor.

    Examples
    --------
    >>> import indexplan as ip
    >>> plan = ip.Plan(ip.Sequential(10), world_size=2, global_batch_size=4)
    >>> stream = ip.stream(plan, rank=1)
    >>> stream.draw(6), stream.draw(6)
    (array([3, 4, 5]), array([9, 0, 1]))
    """
    check_plan("plan", plan)
    return Stream(plan, plan.start if cursor is None else cursor, rank)


class Stream:
    """The units of an order, drawn as a loop needs them: what `indexplan.stream` returns.

    A unit that was drawn is *in hand* until you count it as trained or discarded, or give it back.
    Counts are over all ranks, so all ranks must make the same calls with the same numbers:

        num_drawn == num_trained + num_discarded + num_given_back + num_in_hand

    `state_dict` and `cursor` point to where the units in hand begin. A resumed run draws these
    again, so no unit is lost that was drawn but had not reached the optimizer.

    Examples
    --------
    >>> import indexplan as ip
    >>> plan = ip.Plan(ip.Sequential(100), world_size=1, global_batch_size=4)
    >>> stream = ip.stream(plan, rank=0)
    >>> stream.draw(4), stream.draw(4)
    (array([0, 1, 2, 3]), array([4, 5, 6, 7]))
    >>> stream.give_back(2)  # samples 1 and 3 were of no use, so 6 and 7 are not needed
    >>> stream.trained(4)
    >>> stream.discarded(2)
    >>> stream.draw(4)
    array([6, 7, 8, 9])
    >>> stream.cursor.position, stream.num_in_hand
    (6, 4)
    """

    def __init__(self, plan: Plan, cursor: Cursor, rank: int) -> None:
        if not layout_of(plan).partition.policy.exact:
            names = sorted(name for name, policy in REMAINDERS.items() if policy.exact)
            rule = f"{' or '.join(names)}, as a stream reads every place once"
            raise invalid("remainder", rule, plan.remainder, 'use plan.replace(remainder="spread")')
        if plan.balance is not None:
            rule = "None, as the last units of a draw are given back"
            raise invalid("balance", rule, plan.balance, "use plan.replace(balance=None)")
        self._plan = plan_of_run(plan)  # so that a cursor depends on its place alone
        self._rank = layout_of(plan).rank(rank)
        self._extent = layout_of(plan).partition.extent
        self._changing = threading.Lock()  # one thread may draw, while another counts and saves
        self._pid = os.getpid()
        self._stand_at(cursor, (0, 0, 0))

    def _stand_at(self, cursor: Cursor, counts: tuple[int, int, int]) -> None:
        """Stand at a cursor, with nothing in hand."""
        start = self._plan.resume(cursor).start
        place = self._after((start.epoch, start.position), 0)  # an empty sub-epoch is past its end
        with self._changing:
            self._settled = self._next = place
            self._in_hand = 0
            self._drawn, self._trained, self._discarded = counts

    @overload
    def draw(self, k: int, *, units: Literal[False] = False) -> Int64: ...
    @overload
    def draw(self, k: int, *, units: Literal[True]) -> Batch: ...
    def draw(self, k: int, *, units: bool = False) -> Any:
        """Return this rank's share of the next k units of all ranks.

        Concatenating all ranks' shares in rank order gives the k units in the order of reading.
        Shares differ by at most one unit. At the end of an epoch, a draw continues with the next.

        Parameters
        ----------
        k : int
            Units over all ranks, 0 <= k <= 2**27; the same on all ranks.
        units : bool, default False
            Return a batch divided into bins and parts of samples, as `Plan.units` does.

        Returns
        -------
        numpy.ndarray or indexplan.types.Batch
            int64, shape (units,), or (samples,) where units are bins.

        Raises
        ------
        IndexPlanError
            If k is out of range, the draw would pass the end of epoch 2**32 - 1, or this process
            was forked from the one that made the stream. Nothing is drawn then.
        """
        if os.getpid() != self._pid:
            raise IndexPlanError("a stream", IN_ONE, "a fork of that process", THERE)
        count = integer(
            "k", k, 0, MOST_UNITS + 1, "pass how many units to draw, or draw several times"
        )
        with self._changing:
            where, stop = self._share(self._next, count)
            if units:
                drawn: Any = walked(self._plan.order, where)
            else:
                drawn = take(self._plan.order, where)
            self._next = stop
            self._in_hand += count
            self._drawn += count
        return drawn

    def give_back(self, m: int) -> None:
        """Give back the last m units in hand, over all ranks: the next draw begins with them.

        If an order reads units in groups, such as the copies of `Repeat`, give back whole groups.
        """
        with self._changing:
            self._in_hand -= self._checked("m", m)
            self._next = self._after(self._settled, self._in_hand)

    def trained(self, n: int) -> None:
        """Count units, over all ranks, that the optimizer has seen.

        Trained and discarded units are taken from the start of those in hand, in any order. If
        later units are ready before earlier ones, count only those before the first that is not
        ready.
        """
        with self._changing:
            self._trained += self._settle(n)

    def discarded(self, n: int) -> None:
        """Count units, over all ranks, that were drawn but are of no use; see `trained`."""
        with self._changing:
            self._discarded += self._settle(n)

    def _checked(self, name: str, number: Any) -> int:
        """Return a number of units in hand, or raise `IndexPlanError` if there are not as many."""
        return integer(name, number, 0, self._in_hand + 1, IN_HAND)

    def _settle(self, n: Any) -> int:
        """Move the place at which a run resumes past the first n units in hand; return n."""
        count = self._checked("n", n)
        self._settled = self._after(self._settled, count)
        self._in_hand -= count
        return count

    @property
    def cursor(self) -> Cursor:
        """Where the units in hand begin, the same on all ranks; also for `plan.resume`."""
        return self._cursor_at(*self._settled)

    def _cursor_at(self, epoch: int, position: int) -> Cursor:
        place = layout_of(self._plan).resume_from(epoch, position)
        return cursor_of(self._plan.order, place, self._plan.sub_epochs)

    @property
    def epoch(self) -> int:
        """The epoch of the unit that is drawn next."""
        return self._next[0]

    @property
    def num_left(self) -> int:
        """How many units of that epoch are left to draw; a larger draw passes its end."""
        epoch, position = self._next
        return self._plan.order.num_units(epoch) - position

    @property
    def num_drawn(self) -> int:
        """Units drawn since the run began; units drawn again count again."""
        return self._drawn

    @property
    def num_trained(self) -> int:
        """Units counted as trained."""
        return self._trained

    @property
    def num_discarded(self) -> int:
        """Units counted as discarded."""
        return self._discarded

    @property
    def num_in_hand(self) -> int:
        """Units drawn, and neither trained, discarded nor given back."""
        return self._in_hand

    @property
    def num_given_back(self) -> int:
        """Units given back, including those that were in hand when a run resumed."""
        with self._changing:
            return self._drawn - self._trained - self._discarded - self._in_hand

    def state_dict(self) -> dict[str, Any]:
        """Return the cursor and the counts as JSON types: of constant size, equal on all ranks."""
        with self._changing:
            settled, counts = self._settled, (self._drawn, self._trained, self._discarded)
        cursor = self._cursor_at(*settled).to_dict()
        return {
            "version": STATE_VERSION,
            "cursor": cursor,
            **dict(zip(COUNTS, counts, strict=True)),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state; world size and batch size may have changed, but not the order.

        Raises
        ------
        IndexPlanError
            If it is not what `state_dict` returned, or belongs to another order or other
            sub_epochs. The stream stays as it was.
        """
        cure = "load what state_dict returned"
        if not isinstance(state, Mapping):
            raise invalid("a stream's state", "an object", state, cure)
        check_fields("a stream's state", state, ("version", "cursor", *COUNTS), cure)
        if type(state["version"]) is not int or state["version"] != STATE_VERSION:
            cure = "load it with the version of indexplan that saved it"
            rule = f"of version {STATE_VERSION}"
            raise invalid("a stream's state", rule, state["version"], cure)
        drawn, trained, discarded = (
            integer(f"a stream's {name}", state[name], 0, 2**63, cure) for name in COUNTS
        )
        if drawn < trained + discarded:
            rule = f"at least {trained + discarded}, those trained and discarded"
            raise invalid("a stream's num_drawn", rule, drawn, cure)
        self._stand_at(Cursor.from_dict(state["cursor"]), (drawn, trained, discarded))

    def __getstate__(self) -> NoReturn:
        """Refuse to be copied, because a copy would draw the same units again."""
        raise IndexPlanError("a stream", IN_ONE, "one to be copied or pickled", THERE)

    # Places are (epoch, position), and never at an epoch's end.

    def _after(self, place: tuple[int, int], count: int) -> tuple[int, int]:
        """Return the place that many units after another; raise `IndexPlanError` past the end."""
        epoch, position, extent = place[0], place[1] + count, self._extent
        if extent.sums_up:
            epoch, position = extent.holding(extent.before(epoch) + position)
        else:
            while epoch < EPOCH_STOP and position >= (more := extent.units(epoch)):
                epoch, position = epoch + 1, position - more
        if (epoch, position) > (EPOCH_STOP, 0):
            raise IndexPlanError(
                "a draw",
                "must be inside the run, which ends with epoch 2**32 - 1",
                "one that reads on into the next",
                "draw stream.num_left units at most",
            )
        return epoch, position

    def _share(self, place: tuple[int, int], count: int) -> tuple[Runs, tuple[int, int]]:
        """Return the positions of this rank in a draw, and where the draw stops.

        As in a plan's steps, a rank gets as many units as there are places congruent to it modulo
        world_size. Places count from the start of the run, or of the epoch where epochs differ in
        units and nobody can add them up.
        """
        world_size, extent = layout_of(self._plan).world_size, self._extent
        start = place[1] + (extent.before(place[0]) if extent.sums_up else 0)
        low, high = (
            below(start + count, rank, world_size) - below(start, rank, world_size)
            for rank in (self._rank, self._rank + 1)
        )
        stop = self._after(place, count)
        intervals = through_epochs(extent, *self._after(place, low), high - low)
        return grouped(intervals), stop
