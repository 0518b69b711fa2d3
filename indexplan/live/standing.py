"""Standing: where a run stands whose world changes from one step to the next."""

from __future__ import annotations

from typing import Any, Literal, overload

from indexplan.canonical import canonical_json, check_fields, parse_json_object
from indexplan.errors import IndexPlanError, empty_batches, integer, invalid
from indexplan.keywords import named
from indexplan.ledger.walking import next_part
from indexplan.partition.steps import Int64, Resume, Steps
from indexplan.plan.batch import Batch, step_units
from indexplan.plan.cursor import Cursor, check_place, cursor_of
from indexplan.plan.draw import take
from indexplan.plan.epochs import different_epochs
from indexplan.plan.layout import Layout
from indexplan.plan.plan import Plan, check_plan, layout_of, plan_of_run
from indexplan.seeds import EPOCH_STOP, check_epoch

STATE_VERSION = 2
MOST_EMPTY = 2**14  # sub-epochs without a step that are passed over, each in some 10 us
LOAD = "load what to_json returned"
SMALLER = "use a smaller global_batch_size, or remainder='spread'"
LARGER = "make the plan with a larger global_batch_size, or run fewer ranks"


@named
class Standing:
    """Where a run stands, for processes that divide each step among whoever is there.

    Every process of a run holds one, and all hold the same. `deal` returns what a rank reads in
    the step that comes next, under any number of ranks. Nothing moves before `commit`, which all
    processes call once the step counts, even those that had no share in it. A step that fails is
    divided again, among whoever is there then. Because the plan has a `global_batch_size`, the
    samples of a step don't depend on the ranks, so each sample is read once, whoever comes and
    goes.

    Parameters
    ----------
    plan : Plan
        With `global_batch_size`, and without a world_size.
    cursor : Cursor, optional
        Where the run starts; by default, where the plan does.
    max_world : int, optional
        The most ranks that the run may ever have: a plan with a step too small for them is refused
        here, and not when they come. By default, as many as the smallest step has units.

    Raises
    ------
    IndexPlanError
        If the plan has a world_size or no global_batch_size, has no steps or cannot be resumed at
        the cursor, or a step of it has fewer units than `max_world`.

    Examples
    --------
    Three ranks read a step; then one of them is lost in the middle of the next one, which therefore
    does not count, and the other two read all of it:

    >>> import indexplan as ip
    >>> plan = ip.Plan(ip.Sequential(100), global_batch_size=6)
    >>> standing = ip.live.Standing(plan)
    >>> [standing.deal(world_size=3, rank=rank).tolist() for rank in range(3)]
    [[0, 1], [2, 3], [4, 5]]
    >>> standing.commit()
    >>> [standing.deal(world_size=3, rank=rank).tolist() for rank in range(3)]
    [[6, 7], [8, 9], [10, 11]]
    >>> [standing.deal(world_size=2, rank=rank).tolist() for rank in range(2)]
    [[6, 7, 8], [9, 10, 11]]
    >>> standing.commit()
    >>> standing.cursor.position
    12
    """

    def __init__(
        self,
        plan: Plan,
        cursor: Cursor | None = None,
        *,
        max_world: int | None = None,
    ) -> None:
        check_plan("plan", plan)
        _check_open(plan)
        order = plan.order if cursor is None else plan.resume(cursor).order
        self._plan = plan_of_run(plan, order=order)
        self._fingerprint = self._plan.fingerprint
        self._layouts = dict[int | None, Layout]()  # by world size
        start = plan.start if cursor is None else cursor
        most = _largest_world(self._plan.replace(world_size=1).resume(start))
        self._stand_at(start.checked(order, plan.sub_epochs))
        if max_world is not None:
            kind = "a number of ranks that every step has a unit for,"
            max_world = integer("max_world", max_world, 1, most + 1, LARGER, kind)
        self._max_world = most if max_world is None else max_world
        self._dealt = False  # whether `deal` was asked since the last commit

    def __repr__(self) -> str:
        place = self._place
        parts = f"sub-epoch {place.sub_epoch}, " * (self._plan.sub_epochs > 1)
        where = f"epoch {place.epoch}, {parts}step {place.step}, position {place.position}"
        return f"<Standing of {self._plan}: at {where}>"

    def _stand_at(self, place: Resume) -> None:
        """Stand at a place, or at the start of the first sub-epoch after it that has a step.

        The steps of its sub-epoch are divided as by a resume there.
        """
        part = next_part(self._under(None), place, MOST_EMPTY)
        if part is not None:
            begins = Resume(*part.where, 0, part.steps.start)
            self._place = place if part.where == place[:2] else begins
        elif place.epoch + MOST_EMPTY < EPOCH_STOP:
            rule = f"must have a step among {MOST_EMPTY} sub-epochs that follow each other"
            got = f"none from epoch {place.epoch} on, under remainder={self._plan.remainder!r}"
            raise IndexPlanError("a live plan", rule, got, SMALLER)
        else:
            self._place = Resume(EPOCH_STOP, 0, 0, 0)
        self._part = part  # its steps are the same for any number of ranks

    def _under(self, world_size: int | None) -> Layout:
        """Return the layout for a number of ranks, to divide a step among them."""
        if (layout := self._layouts.get(world_size)) is None:
            layout = layout_of(plan_of_run(self._plan, world_size=world_size))
            self._layouts[world_size] = layout
        return layout

    @overload
    def deal(self, world_size: int, rank: int, *, units: Literal[False] = False) -> Int64: ...
    @overload
    def deal(self, world_size: int, rank: int, *, units: Literal[True]) -> Batch: ...
    def deal(self, world_size: int, rank: int, *, units: bool = False) -> Any:
        """Return what a rank reads in the step that comes next; ask as often as you like.

        Parameters
        ----------
        world_size : int
            Number of ranks that take part in this step, 1 <= world_size <= max_world.
        rank : int
            0 <= rank < world_size. A process that doesn't take part in this step (a spare, or one
            still receiving its state) may pass any rank to run the same code, but its gradients
            must not count.
        units : bool, default False
            Return what `Plan.units` does: bins, and parts of samples, told apart.

        Returns
        -------
        numpy.ndarray or indexplan.types.Batch
            int64, shape (units,), or (samples,) where units are bins.

        Raises
        ------
        IndexPlanError
            If an argument is out of range, or a rank would get an empty batch.
        """
        world_size = self._checked_size(world_size)
        steps, step = self._next_step()
        if world_size > _smallest_step(steps):
            where = steps.epoch, steps.sub_epoch
            raise empty_batches(world_size, self._plan.remainder, *where)
        layout = self._under(world_size)
        rank = _checked_rank(rank, world_size)
        drawn: Any = (
            step_units(layout, steps, rank, step)
            if units
            else take(layout.order, layout.step_runs(steps, rank, step))
        )
        self._dealt = True
        return drawn

    def _checked_size(self, world_size: int) -> int:
        kind = "a number of ranks, at most max_world,"
        return integer("world_size", world_size, 1, self._max_world + 1, LARGER, kind)

    @property
    def step_size(self) -> int:
        """How many units all ranks together read in the step that comes next, without padding.

        Use it to weight losses before you commit the step: if each rank's loss is `world_size /
        step_size` times the sum over its units, then the mean over ranks is the mean over the
        step's units. Ranks have unequal shares where `world_size` doesn't divide the step.

        Raises
        ------
        IndexPlanError
            If the last epoch is read.
        """
        steps, step = self._next_step()
        return steps.valid(*steps.interval(step))

    def num_valid(self, world_size: int, rank: int) -> int:
        """Return how many of the units that `deal` returns, asked the same, are not padding.

        Padded units come last, and only where the plan's remainder is "pad".

        Raises
        ------
        IndexPlanError
            If an argument is out of range, or the last epoch is read.
        """
        world_size = self._checked_size(world_size)
        (steps, step), layout = self._next_step(), self._under(world_size)
        return layout.num_valid(steps, step, _checked_rank(rank, world_size))

    def _next_step(self) -> tuple[Steps, int]:
        """Return the step that comes next; raise `IndexPlanError` where the last epoch is read."""
        check_epoch(self._place.epoch)
        assert self._part is not None  # noqa: S101 (of an epoch that is there)
        return self._part.steps, self._place.step

    def commit(self) -> None:
        """Move on by one step: call it in every process, when all know that the step counts.

        Raises
        ------
        IndexPlanError
            If `deal` wasn't called since the last one; it would skip samples that nobody has read.
            A state that was loaded in between changes nothing about that.
        """
        if not self._dealt or self._part is None:
            raise IndexPlanError(
                "commit",
                "must come once for each step, after deal",
                "no step that was dealt since the last one",
                "call deal in every process that commits, for any rank where it takes no part",
            )
        after = self._part._replace(stop=self._place.step + 1).place
        if after.step:
            self._place = after
        else:
            self._stand_at(after)
        self._dealt = False

    @property
    def max_world(self) -> int:
        """The most ranks that the run may have."""
        return self._max_world

    @property
    def epoch(self) -> int:
        """The epoch of the step that comes next."""
        return self._place.epoch

    @property
    def cursor(self) -> Cursor:
        """Where the run stands, for a checkpoint: `plan.resume` takes it, and a loader does."""
        return cursor_of(self._plan.order, self._place, self._plan.sub_epochs)

    def to_json(self) -> str:
        """Return the state as JSON text: the same in all processes after the same commits."""
        state = {"version": STATE_VERSION, "plan": self._fingerprint, "place": list(self._place)}
        return canonical_json(state)

    def load_json(self, text: str | bytes) -> None:
        """Continue where another process stands, from what its `to_json` returned.

        What `deal` returned here still holds: a process that is given its state in the middle of a
        step commits that step with the others.

        Raises
        ------
        IndexPlanError
            If it is something else, or the other process has another plan; this one then stands
            where it stood.
        """
        what, cure = "a standing's state", LOAD
        state = parse_json_object(what, text)
        check_fields(what, state, ("version", "plan", "place"), cure)
        if type(state["version"]) is not int or state["version"] != STATE_VERSION:
            cure = "run the same version of indexplan in all processes"
            raise invalid(what, f"of version {STATE_VERSION}", state["version"], cure)
        if state["plan"] != self._fingerprint:
            cure = "make the same plan in all processes; another plan may start at a cursor"
            raise invalid(what, f"of the plan {self._fingerprint}", state["plan"], cure)
        place = state["place"]
        if not isinstance(place, list) or len(place) != len(Resume._fields):
            raise invalid("a standing's place", "four integers", place, LOAD)
        self._stand_at(check_place(Resume(*place), self._plan.order, self._plan.sub_epochs))


def _checked_rank(rank: int, world_size: int) -> int:
    return integer("rank", rank, 0, world_size, "pass a larger world_size, or a rank below it")


def _check_open(plan: Plan) -> None:
    """Raise `IndexPlanError` unless the steps of a plan are the same for any number of ranks."""
    if plan.global_batch_size is None:
        raise IndexPlanError(
            "a live plan",
            "must have a global_batch_size, so that a step is the same for any number of ranks",
            f"batch_size={plan.batch_size}",
            "use plan.replace(global_batch_size=...)",
        )
    if plan.world_size is not None:
        rule = "left out of a live plan, as it changes while the run goes on"
        cure = "use plan.replace(world_size=None)"
        raise invalid("world_size", rule, plan.world_size, cure)


def _smallest_step(steps: Steps) -> int:
    """Return the units of the smallest step of a sub-epoch that has one, padding included."""
    return min(span.length // span.num_steps for span in steps.spans)


def _largest_world(plan: Plan) -> int:
    """Return how many ranks all steps of a plan for one rank suffice for, from its start on.

    Where epochs differ in units, and the order does not name those at which they change, it is that
    of the first two.

    Raises
    ------
    IndexPlanError
        If no step is left: of the last epoch of all, "drop" may leave none.
    """
    accounts = (plan.account(epoch) for epoch in different_epochs(layout_of(plan)))
    sizes = [account.min_batch_size or 0 for account in accounts if account.num_steps]
    if not sizes:
        raise IndexPlanError(
            "a live plan",
            "must have steps",
            f"none in epoch {plan.start.epoch}, under remainder={plan.remainder!r}",
            "use a smaller global_batch_size, or remainder='spread'",
        )
    return min(sizes)
