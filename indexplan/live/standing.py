"""Standing: where a run stands whose world changes from one step to the next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, overload

from indexplan.canonical import canonical_json, check_fields, parse_json_object
from indexplan.errors import IndexPlanError, empty_batches, integer, wrong
from indexplan.live.worlds import largest_world, smallest_step
from indexplan.partition.steps import Int64, Resume, Steps
from indexplan.plan.batch import Batch
from indexplan.plan.cursor import Cursor
from indexplan.plan.plan import Plan, check_plan, layout_of
from indexplan.seeds import EPOCH_STOP

STATE_VERSION = 1
MOST_EMPTY = 2**16  # sub-epochs without a step that are passed over, each in some 10 us
LARGER = "make the plan with a larger global_batch_size, or run fewer ranks"


class Standing:
    """Where a run stands, for processes that deal each step to whoever is there.

    Every process of a run holds one, and all hold the same. `deal` returns what a rank reads in
    the step that comes next, under any number of ranks. Nothing moves before `commit`, which all
    processes call once the step counts, those too that had no share in it. A step that fails is
    dealt again, to whoever is there then. As the plan has a `global_batch_size`, the samples of a
    step do not depend on the ranks, so each sample is read once, whatever comes and goes.

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
        If an argument is not as described above, the plan has no steps or cannot be resumed at the
        cursor, or a step of it has fewer units than `max_world`.

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
        self, plan: Plan, cursor: Cursor | None = None, *, max_world: int | None = None
    ) -> None:
        check_plan("plan", plan)
        _check_open(plan)
        self._plan = replace(plan, _resumed=None)
        self._fingerprint = self._plan.fingerprint
        start = plan.start if cursor is None else cursor
        most = largest_world(plan.replace(world_size=1).resume(start))
        self._stand_at(start)
        if max_world is not None:
            kind = "a number of ranks that every step has a unit for,"
            max_world = integer("max_world", max_world, 1, most + 1, LARGER, kind)
        self._max_world = most if max_world is None else max_world
        self._dealt = False

    def _stand_at(self, cursor: Cursor) -> None:
        """Stand at a cursor, or where it is of another plan, stay and raise `IndexPlanError`."""
        start = self._plan.resume(cursor).start
        self._start, self._plans = start, dict[int, Plan]()
        place = Resume(start.epoch, start.sub_epoch, start.step, start.position)
        self._place = self._with_a_step(place)

    def _under(self, world_size: int) -> Plan:
        """Return the plan from the start on for a number of ranks; steps are the same for all."""
        if (plan := self._plans.get(world_size)) is None:
            plan = self._plan.replace(world_size=world_size).resume(self._start)
            self._plans[world_size] = plan
        return plan

    def _steps(self, place: Resume) -> Steps:
        return layout_of(self._under(1)).steps(place.epoch, place.sub_epoch)

    def _with_a_step(self, place: Resume) -> Resume:
        """Return a place, or the start of the first sub-epoch after it that has a step."""
        for _ in range(MOST_EMPTY):
            if place.epoch == EPOCH_STOP or place.step < self._steps(place).num_steps:
                return place
            epoch, sub_epoch = place.epoch, place.sub_epoch + 1
            if sub_epoch == self._plan.sub_epochs:
                epoch, sub_epoch = epoch + 1, 0
            position = 0
            if epoch < EPOCH_STOP:
                position = self._steps(Resume(epoch, sub_epoch, 0, 0)).start
            place = Resume(epoch, sub_epoch, 0, position)
        rule = f"must have a step among {MOST_EMPTY} sub-epochs that follow each other"
        got = f"none in those before epoch {place.epoch}, sub-epoch {place.sub_epoch}"
        raise IndexPlanError("a live plan", rule, got, "use fewer sub_epochs")

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
            0 <= rank < world_size. A process that takes no part, as it is a spare or still being
            given its state, may ask for any, so that it runs the same code; its gradients must not
            count.
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
        kind = "a number of ranks, at most max_world,"
        world_size = integer("world_size", world_size, 1, self._max_world + 1, LARGER, kind)
        plan, (epoch, sub_epoch, step, _) = self._under(world_size), self._place
        if world_size > smallest_step(layout_of(plan).steps(epoch, sub_epoch)):
            raise empty_batches(world_size, plan.remainder, epoch, sub_epoch)
        if units:
            drawn: Any = plan.units(epoch, sub_epoch, step=step, rank=rank)
        else:
            drawn = plan.batch(epoch, sub_epoch, step=step, rank=rank)
        self._dealt = True
        return drawn

    def commit(self) -> None:
        """Move on by one step: call it in every process, when all know that the step counts.

        Raises
        ------
        IndexPlanError
            If no step was dealt since the last one; it would skip samples that nobody has read.
        """
        if not self._dealt:
            raise IndexPlanError(
                "commit",
                "must come once for each step, after deal",
                "no step that was dealt since the last one",
                "call deal in every process that commits, for any rank where it takes no part",
            )
        steps, step = self._steps(self._place), self._place.step
        after = layout_of(self._under(1)).partition.resume_after(steps, step + 1)
        self._place = self._with_a_step(after)
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
        place, plan = self._place._asdict(), self._plan
        return Cursor(**place, order=plan.order.to_dict(), sub_epochs=plan.sub_epochs)

    def to_json(self) -> str:
        """Return the state as JSON text: the same in all processes after the same commits."""
        state = {"version": STATE_VERSION, "plan": self._fingerprint}
        return canonical_json({**state, "cursor": self.cursor.to_dict()})

    def load_json(self, text: str | bytes) -> None:
        """Stand where another process stands, which has sent what its `to_json` returned.

        A step that was dealt here stays dealt: a process that is given its state in the middle of a
        step commits that step with the others.

        Raises
        ------
        IndexPlanError
            If it is something else, or the other process has another plan; this one then stands
            where it stood.
        """
        what, cure = "a standing's state", "load what to_json returned"
        state = parse_json_object(what, text)
        check_fields(what, state, ("version", "plan", "cursor"), cure)
        if type(state["version"]) is not int or state["version"] != STATE_VERSION:
            cure = "run the same version of indexplan in all processes"
            raise wrong(what, f"of version {STATE_VERSION}", state["version"], cure)
        if state["plan"] != self._fingerprint:
            cure = "make the same plan in all processes; another plan may start at a cursor"
            raise wrong(what, f"of the plan {self._fingerprint}", state["plan"], cure)
        self._stand_at(Cursor.from_dict(state["cursor"]))


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
        raise wrong("world_size", rule, plan.world_size, cure)
