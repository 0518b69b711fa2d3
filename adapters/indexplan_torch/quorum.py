"""What a rank of a torchft run reads in each step, which is divided among the step's quorum.

torchft is not imported: a manager brings all that is needed of it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch

from indexplan import Cursor, IndexPlanError, Ledger, Plan
from indexplan.errors import integer, path_text, wrong
from indexplan.ledger import check_begins
from indexplan.live import Standing
from indexplan_torch.arguments import flag
from indexplan_torch.recording import Recorder, a_second, keep, other_keeper, refuse_unkept

LOAD = "load what state_dict returned"
FIELDS = {"cursor", "ledger", "plan", "step"}  # of a state; older ones lack the last two
WHERE = "pass where the file is, or shall be"
KEY = "indexplan"  # of the state that a manager sends to a group that joins


class World(NamedTuple):
    """How many ranks take part in a step, and which of them this one is, or stands in for."""

    world_size: int
    rank: int


class Expected(NamedTuple):
    """At which of torchft's steps a run may be that has missed none, and why."""

    steps: tuple[int, ...]
    why: str
    cure: str


HEAR = "call live.commit(manager.should_commit()) once for each step, or use a LiveLoader"
AT_START = Expected(
    (0, 1),
    "where a run starts whose state was not loaded",
    "load the state that was saved with the manager's, or pass plan.resume(cursor)",
)
SAVED = "load the loader's state and the manager's, both of one checkpoint"


class Live:
    """What a rank reads in each step of a torchft run, for training loops of your own.

    `LiveLoader` does all of it for loops over a loader. The state is registered with the manager,
    which sends it to groups that join. In each step, in this order:

    1. `manager.start_quorum()`
    2. `begin()`: the samples for the groups of the last step, because the quorum may still be open
    3. `settled()`: None if they are right, else the samples to read instead
    4. `commit(manager.should_commit())`

    A step that the manager counts and that `commit` wasn't told of would be read twice, or lost:
    `settled` refuses the next one, by `manager.current_step()`.

    The first `begin` runs torchft's first step without data: only one group's gradients would count
    in it, because that group sends its weights to all others.

    Parameters
    ----------
    plan : Plan
        With `global_batch_size`, and without a world_size; `plan.resume(cursor)` to continue a run.
    manager : torchft.Manager
    inner_rank, inner_size : int, default 0, 1
        This rank in its group, and how many ranks of the group read different samples.
    max_world : int, optional
        As for `indexplan.live.Standing`: the most groups, times inner_size.
    ledger : str, path-like or False, optional
        The file of an `indexplan.Ledger`, on storage that all groups share; `state_dict` writes it.
        False goes on without the ledger of the run whose state is loaded.

    Raises
    ------
    IndexPlanError
        If the plan has no global_batch_size or has a world_size, inner_rank or inner_size is out of
        range, or a step has fewer units than `max_world`.
    """

    def __init__(
        self,
        plan: Plan,
        manager: Any,
        *,
        inner_rank: int = 0,
        inner_size: int = 1,
        max_world: int | None = None,
        ledger: str | os.PathLike[str] | Literal[False] | None = None,
    ) -> None:
        cure = "pass how many ranks of a group read different samples, and which one this is"
        self._inner_size = integer("inner_size", inner_size, 1, 2**31, cure)
        self._inner_rank = integer("inner_rank", inner_rank, 0, self._inner_size, cure)
        self._leaves_ledger = ledger is False
        where = path_text("ledger", ledger, WHERE) if ledger not in (None, False) else None
        self.ledger = None if where is None else Path(where).absolute()
        self._plan, self._max_world = plan, max_world
        self.standing = Standing(plan, max_world=max_world)
        self._manager = manager
        self._start, self._should_commit = manager.start_quorum, manager.should_commit
        self._known: World | None = None  # of the last quorum that this rank has heard of
        self._settled: tuple[int, int] | None = None  # torchft's step, and who reads it
        anew = plan.replace(world_size=None)
        self._fingerprint = anew.fingerprint
        self._expected = AT_START if plan.start == anew.start else None  # None: wherever it is
        self.num_loads = 0  # how often this rank was given its state
        manager.register_state_dict_fn(KEY, self._load, self._state)

    def __repr__(self) -> str:
        """Return who reads, as far as this rank has heard, and where the run stands."""
        known = self._known
        who = "ranks not known yet" if known is None else f"rank {known.rank} of {known.world_size}"
        return f"<Live, {who}: {self.standing!r}>"

    def _state(self) -> str:
        return self.standing.to_json()

    def _load(self, text: str) -> None:
        self.standing.load_json(text)
        self.num_loads += 1
        self._hear()

    def _hear(self) -> None:
        """Expect that torchft's next step is the one that it is at now."""
        step = self._manager.current_step()
        self._expected = Expected((step,), "as this rank heard of no later step that counts", HEAR)

    def _check_heard(self) -> None:
        """Refuse a step if torchft has counted others that this rank has not heard of."""
        expected, step = self._expected, self._manager.current_step()
        if expected is not None and step not in expected.steps:
            steps = " or ".join(map(str, expected.steps))
            what, rule = "manager.current_step()", f"{steps}, {expected.why}"
            raise wrong(what, rule, step, expected.cure)

    def state_dict(self) -> dict[str, Any]:
        """Return where the run stands, for a checkpoint; write the ledger up to there.

        Call it in one group, the one that saves, after a step was committed. In a group of several
        ranks, the first writes.

        Raises
        ------
        IndexPlanError
            If another loader of this process keeps the ledger.
        PlanFileError
            If the ledger cannot be written, or another group writes it at the same time.
        """
        digest = None
        if self.ledger is not None and self._inner_rank == 0:
            if isinstance(other_keeper(self.ledger, self), Recorder):
                raise a_second(self.ledger)
            digest = self.standing.record(Ledger(self.ledger))
            keep(self.ledger, self)
        place = {"cursor": self.cursor.to_dict(), "ledger": digest}
        return {**place, "plan": self._fingerprint, "step": self._manager.current_step()}

    def load_state_dict(self, state: dict[str, Any], *, other_plan: bool = False) -> None:
        """Start where a checkpoint was saved: in every group that starts with it, before the loop.

        A group that joins a run is given its place by the others, with the weights. Load the
        manager's state as well, of the same checkpoint.

        Parameters
        ----------
        state : dict
        other_plan : bool, default False
            Whether the state may be of another plan, such as one with another global_batch_size,
            whose order this plan continues.

        Raises
        ------
        IndexPlanError
            If it is something else than what `state_dict` returned, or of another plan; if it is
            that of a run with a ledger, and this has none; or it is not, and the ledger holds steps
            and begins elsewhere.
        """
        if not isinstance(state, dict) or not {"cursor", "ledger"} <= set(state) <= FIELDS:
            raise wrong("a live run's state", "a dict of a cursor and a ledger's hash", state, LOAD)
        other_plan = flag("other_plan", other_plan)
        saved, step = state.get("plan", self._fingerprint), state.get("step")
        if saved != self._fingerprint and not other_plan:
            cure = "make the same plan, or pass other_plan=True to change it from here on"
            raise wrong("a live run's state", f"of the plan {self._fingerprint}", saved, cure)
        if step is not None:
            step = integer("a live run's step", step, 0, 2**63, LOAD)
        cursor, plan, digest = Cursor.from_dict(state["cursor"]), self._plan, state["ledger"]
        standing = Standing(plan, cursor, hash=digest, max_world=self._max_world)
        if self._leaves_ledger:
            standing = Standing(plan, cursor, max_world=self._max_world)
        elif self.ledger is None:
            refuse_unkept(digest)
        elif digest is None and self._inner_rank == 0:
            check_begins(plan.resume(cursor), Ledger(self.ledger).tail, self.ledger)
        self.standing = standing
        why = "of the state that was loaded, or 0 in a run that counts anew"
        self._expected = None if step is None else Expected((step, 0), why, SAVED)

    def begin(self, *, units: bool = False) -> Any:
        """Return the samples to begin with, as `Standing.deal` does; after `start_quorum`."""
        self._units, self._settled = units, None
        if self._manager.current_step() == 0:
            self._run_first_step()
        return self._draw(self.world() if self._known is None else self._known)

    def settled(self) -> Any:
        """Return None if the samples of `begin` are those to read, else those to read instead.

        It waits for the quorum. Run the forward pass again with what it returns.

        Raises
        ------
        IndexPlanError
            If torchft has counted a step that `commit` wasn't told of, or its count is not the one
            of the state that was loaded. A group without a share in the step isn't asked.
        """
        world = self.world()
        if self._manager.is_participating():
            self._check_heard()
        self._settled = self._manager.current_step(), world.world_size
        return None if self.standing.holds(*world) else self._draw(world)

    def commit(self, committed: bool) -> None:
        """Move on by one step if it counts: pass what `manager.should_commit()` returned.

        Raises
        ------
        IndexPlanError
            If the step counts, and its samples may be those for another quorum; or if the manager
            says otherwise.
        """
        settled, self._settled = self._settled, None
        if settled is None:
            if not committed:
                return
            raise IndexPlanError(
                "commit",
                "must come once for each step, after begin and settled",
                "a step that counts without them",
                "call live.settled(), and run the forward pass again with what it returns",
            )
        (before, world_size), step = settled, self._manager.current_step()
        if step - before != int(committed):
            rule = "must be told what manager.should_commit() returned in this step"
            got = f"{committed}, and torchft went from step {before} to {step}"
            raise IndexPlanError("commit", rule, got, HEAR)
        if committed:
            self.standing.commit(world_size)
            self._hear()

    def world(self) -> World:
        """Wait for the quorum, and return for whom this rank reads.

        A group that doesn't take part in the step (a spare, or one still receiving its state) reads
        what the first group reads: torchft sets its gradients to zero.
        """
        manager = self._manager
        manager.wait_quorum()
        group = manager.participating_rank() if manager.is_participating() else 0
        ranks = manager.num_participants() * self._inner_size
        self._known = World(ranks, group * self._inner_size + self._inner_rank)
        return self._known

    def _draw(self, world: World) -> Any:
        if self._units:
            return self.standing.deal(*world, units=True)
        return self.standing.deal(*world)

    def _run_first_step(self) -> None:
        """Run torchft's step 0 without data, until it counts.

        All groups of a quorum know of its most steps, so either all of them do, or none.
        """
        manager = self._manager
        manager.wait_quorum()
        while manager.current_step() == 0:
            nothing = torch.zeros(1, device=_device())
            manager.allreduce(nothing).wait()  # else the first group goes on before all have read
            self._should_commit()
            self._hear()  # before a quorum in which this group may be given another state
            self._start()
            manager.wait_quorum()

    @property
    def epoch(self) -> int:
        """The epoch of the step that comes next."""
        return self.standing.epoch

    @property
    def cursor(self) -> Cursor:
        """Where the run stands, for a checkpoint; continue with `plan.resume(cursor)`."""
        return self.standing.cursor


def _device() -> torch.device:
    """Return where tensors lie that any process group of this process can sum up."""
    if not torch.accelerator.is_available():
        return torch.device("cpu")
    return torch.accelerator.current_accelerator() or torch.device("cpu")
