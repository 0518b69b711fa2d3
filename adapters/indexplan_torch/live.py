"""Plans under torchft, whose groups of ranks come and go: a loader for its training loops.

torchft is not imported: a manager brings all that is needed of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from indexplan import Cursor, IndexPlanError, Plan
from indexplan.errors import integer, invalid
from indexplan.plan.plan import check_plan, smallest_step
from indexplan_torch.arguments import flag
from indexplan_torch.endless import endless
from indexplan_torch.items import Item
from indexplan_torch.loader import Options, PlanLoader, check_options
from indexplan_torch.run import Received

if TYPE_CHECKING:
    from typing import Unpack

__all__ = ["LiveLoader", "LiveOptions"]

LOAD = "load what state_dict returned"
FIELDS = {"cursor", "plan", "step"}  # of a state; older ones lack the last two
KEY = "indexplan"  # of the state that a manager sends to a group that joins
STATE_VERSION = 3  # of that state
STATE = "a live run's state"


class LiveOptions(Options, total=False):
    """What a `LiveLoader` passes on: the form of batches, and DataLoader's options."""

    nested: bool
    item: Item | None
    as_array: bool
    keep_bins: bool


ALLOWED = frozenset(LiveOptions.__optional_keys__)


class Expected(NamedTuple):
    """At which of torchft's steps a run may be that has missed none, and why."""

    steps: tuple[int, ...]
    why: str
    cure: str


LARGER = "make the plan with a larger global_batch_size, or run fewer ranks"
FOR_EACH = "a number of ranks that every step has a unit for,"
HEAR = "read a batch for each step, by the loop or next(iter(loader))"
AT_START = Expected(
    (0, 1),
    "where a run starts whose state was not loaded",
    "load the state that was saved with the manager's, or pass plan.resume(cursor)",
)
SAVED = "load the loader's state and the manager's, both of one checkpoint"


def _check_options(options: Mapping[str, Any]) -> None:
    """Refuse options that a loader of a world that changes cannot have."""
    a_loader_s = ALLOWED | signature(PlanLoader).parameters.keys()  # refused as such below
    check_options(LiveLoader, {name: options[name] for name in options if name not in a_loader_s})
    for name in options.keys() - ALLOWED:
        rule = "left out of a LiveLoader, whose ranks are the manager's and whose steps the plan's"
        cure = f"use only {', '.join(sorted(ALLOWED))}"
        if name == "ledger":
            cure = "use Ledger.record(plan.replace(world_size=1), loader.cursor) where you save"
        raise invalid(name, rule, options[name], cure)


def _most_ranks(plan: Plan) -> int:
    """Return how many ranks every step of a live plan has a unit for, or refuse the plan."""
    check_plan("plan", plan)
    if plan.global_batch_size is None:
        raise IndexPlanError(
            "a live plan",
            "must have a global_batch_size, so that a step is the same for any number of ranks",
            f"batch_size={plan.batch_size}",
            "use plan.replace(global_batch_size=...)",
        )
    if plan.world_size is not None:
        rule = "left out of a live plan, as it changes while the run goes on"
        raise invalid("world_size", rule, plan.world_size, "use plan.replace(world_size=None)")
    return smallest_step(plan)


def _past_empty(plan: Plan, cursor: Cursor) -> Cursor:
    """Return where the next step starts, past sub-epochs without one."""
    rest = plan.resume(cursor)
    epoch, sub_epoch = cursor.epoch, cursor.sub_epoch
    while not (steps := rest.steps(epoch, sub_epoch)):
        stands = rest.cursor(epoch, sub_epoch, step=steps.stop).position
        sub_epoch += 1
        if sub_epoch == plan.sub_epochs or stands == plan.order.num_units(epoch):
            epoch, sub_epoch = epoch + 1, 0  # of many sub-epochs without units, none is looked at
    return rest.cursor(epoch, sub_epoch, step=steps.start)


class LiveLoader:
    """A loader for torchft's training loop that loses no sample when groups come and go.

    Where the run stands is one cursor, and a PlanLoader of the plan from there on reads for the
    ranks of a step. A step that counts moves the cursor; when groups change, and when a step fails,
    another PlanLoader starts at it.

    Each batch is one step: the loader starts its quorum, waits for it, and yields what this rank
    reads in it. So when `zero_grad` of torchft's optimizer calls `start_quorum`, it is started
    already. From `should_commit`, which `step` calls, the loader learns whether the step counts; if
    not, the same samples come again. You may leave a loop with `break`, before or after the step of
    its last batch; the next loop continues from there. Workers fetch ahead for the groups of the
    last step, and what they have fetched is thrown away when the groups change, and when a step
    fails. The manager sends the loader's state to groups that join, with the weights.

    A step that the manager counts and that the loader didn't hear of would be read twice, or lost:
    the next batch is refused, by `manager.current_step()`. The first batch runs torchft's first
    step without data: only one group's gradients would count in it, because that group sends its
    weights to all others.

    Parameters
    ----------
    dataset : torch.utils.data.Dataset
        Map-style, with as many samples as the plan's order.
    plan : Plan
        With `global_batch_size`, and without a world_size; `plan.resume(cursor)` to continue a run.
    manager : torchft.Manager
    inner_rank, inner_size : int, default 0, 1
        This rank in its group, and how many ranks of the group read different samples.
    num_epochs : int, optional
        Stop before this epoch of the run, counted over all groups and restarts. By default the
        loader never ends, and the loop looks at `manager.current_step()`.
    **options
        The form of batches, as for `PlanLoader`: nested, item, as_array and keep_bins; and options
        of DataLoader: num_workers, collate_fn and so on.

    Raises
    ------
    IndexPlanError
        As `PlanLoader` does; if the plan has no global_batch_size or has a world_size, inner_rank,
        inner_size or num_epochs is out of range, or an option is none of these.
    """

    def __init__(
        self,
        dataset: Any,
        plan: Plan,
        manager: Any,
        *,
        num_epochs: int | None = None,
        inner_rank: int = 0,
        inner_size: int = 1,
        **options: Unpack[LiveOptions],
    ) -> None:
        _check_options(options)
        if num_epochs is not None:
            cure = "count from the start of the run, or leave it out to read without end"
            num_epochs = integer("num_epochs", num_epochs, 1, 2**32, cure)
        self.num_epochs = num_epochs
        cure = "pass how many ranks of a group read different samples, and which one this is"
        self._inner_size = integer("inner_size", inner_size, 1, 2**31, cure)
        self._inner_rank = integer("inner_rank", inner_rank, 0, self._inner_size, cure)
        self._dataset, self._options, self._manager = dataset, options, manager
        self._most_ranks = _most_ranks(plan)
        self._plan = plan.replace(world_size=None)  # from its very first unit on
        self._fingerprint = self._plan.fingerprint
        self._expected = AT_START if plan.start == self._plan.start else None  # None: any step
        self._cursor = _past_empty(self._plan, plan.start)  # after the last step that counts
        self._made(0, 1)  # refuses at once what it would refuse in the first step
        # for which rank of how many the last step was read, and what reads for it
        self._reads: tuple[tuple[int, int], PlanLoader, Iterator[Any]] | None = None
        self._running: object | None = None  # the iteration that runs, if one does
        self._open = False  # whether a step's quorum is known, and not yet whether it counts
        self._received: Received | None = None
        manager.register_state_dict_fn(KEY, self._load, self._state)
        self._start, self._should_commit = manager.start_quorum, manager.should_commit
        manager.start_quorum, manager.should_commit = self._quorum_started, self._deciding

    def __repr__(self) -> str:
        """Return who read the last batch, and where the run stands."""
        known, at = self._received, self._cursor
        who = "ranks not known yet"
        if known is not None:
            who = f"rank {known.rank} of {known.plan.world_size}"
        parts = f"sub-epoch {at.sub_epoch}, " * (self._plan.sub_epochs > 1)
        where = f"epoch {at.epoch}, {parts}step {at.step}"
        return f"<LiveLoader of {self._plan}: {who}, at {where}>"

    def _state(self) -> str:
        return json.dumps({"version": STATE_VERSION, **self._place()}, sort_keys=True)

    def _place(self) -> dict[str, Any]:
        return {"cursor": self._cursor.to_dict(), "plan": self._fingerprint}

    def _load(self, text: str) -> None:
        """Take over where the other groups stand; an open step still counts, from there on."""
        state = json.loads(text)
        version = state.pop("version", None) if isinstance(state, dict) else None
        if version != STATE_VERSION:
            cure = "run the same version of indexplan in all groups"
            raise invalid(STATE, f"of version {STATE_VERSION}", version, cure)
        self._stand_at(state)
        self._hear()

    def _stand_at(self, state: Any, *, other_plan: bool = False) -> int | None:
        """Stand where a state says, or refuse it; return the manager's step, if it names one."""
        if not isinstance(state, dict) or not {"cursor"} <= set(state) <= FIELDS:
            raise invalid(STATE, "a dict with a cursor", state, LOAD)
        saved = state.get("plan", self._fingerprint)
        if saved != self._fingerprint and not other_plan:
            cure = "make the same plan, or pass other_plan=True to change it from here on"
            raise invalid(STATE, f"of the plan {self._fingerprint}", saved, cure)
        step = state.get("step")
        if step is not None:
            step = integer("a live run's step", step, 0, 2**63, LOAD)
        self._cursor = _past_empty(self._plan, Cursor.from_dict(state["cursor"]))
        self._drop()
        return step

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
            raise invalid(what, rule, step, expected.cure)

    def state_dict(self) -> dict[str, Any]:
        """Return where the run stands, for a checkpoint.

        Call it in one group, the one that saves, after a step was committed.
        """
        return {**self._place(), "step": self._manager.current_step()}

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
            If it is something else than what `state_dict` returned, or of another plan.
        """
        step = self._stand_at(state, other_plan=flag("other_plan", other_plan))
        why = "of the state that was loaded, or 0 in a run that counts anew"
        self._expected = None if step is None else Expected((step, 0), why, SAVED)
        self._open = False  # a batch that was read before belongs to no step of this run

    def _made(self, rank: int, world_size: int) -> PlanLoader:
        """Return a loader that reads for a rank from the cursor on."""
        ranks: dict[str, Any] = {"rank": rank, "world_size": world_size, "compare": False}
        rest = self._plan.resume(self._cursor)
        return PlanLoader(self._dataset, rest, **ranks, **self._options)

    def _quorum_started(self, *arguments: Any, **options: Any) -> None:
        """Start a quorum, unless the loader has: what the manager's `start_quorum` is now."""
        if self._running is None and not self._open:
            self._start(*arguments, **options)

    def _deciding(self, *arguments: Any, **options: Any) -> bool:
        """Hear whether the step counts: what the manager's `should_commit` is now."""
        committed: bool = self._should_commit(*arguments, **options)
        if self._open:
            self._open = False
            if not committed:
                self._drop()  # the same samples come next, and not those that workers fetch
            else:
                at, rest = self._cursor, self._plan.resume(self._cursor)
                after = rest.cursor(at.epoch, at.sub_epoch, step=at.step + 1)
                self._cursor = _past_empty(self._plan, after)
                self._hear()
        return committed

    def _drop(self) -> None:
        """Throw away what workers have fetched ahead."""
        self._reads = None

    def __iter__(self) -> Iterator[Any]:
        """Yield a batch for each step, whether it will count or not, until the last epoch is read.

        Raises
        ------
        IndexPlanError
            If the loop asks for the next batch without `should_commit`; or if torchft has counted a
            step that the loader didn't hear of, or its count is not the one of the state that was
            loaded. A group without a share in the step isn't asked for its count.
        """
        mine = object()
        self._running = mine
        self._drop()
        try:
            while self.num_epochs is None or self.epoch < self.num_epochs:
                if not self._open:  # else a loop was left at this step
                    self._start()
                if self._manager.current_step() == 0:
                    self._run_first_step()
                ranks = self._settled()
                if self._manager.is_participating():
                    self._check_heard()
                integer("world_size", ranks[1], 1, self._most_ranks + 1, LARGER, FOR_EACH)
                if self._reads is None or self._reads[0] != ranks:
                    loader = self._made(*ranks)
                    self._reads = ranks, loader, endless(loader)
                _, loader, batches = self._reads
                self._open = True
                batch = next(batches)
                self._received = loader.run.received("a batch", HEAR)
                yield batch
                if self._open:
                    raise IndexPlanError(
                        "a batch of a LiveLoader",
                        "must be followed by manager.should_commit(), or optimizer.step()",
                        "none before the next batch",
                        "wrap the optimizer in torchft.Optimizer, and step after each batch",
                    )
        finally:
            if self._running is mine:  # else a later loop reads
                self._running = None
                self._drop()

    def _settled(self) -> tuple[int, int]:
        """Wait for the quorum, and return for which rank this one reads, and how many there are.

        A group that doesn't take part in the step (a spare, or one still receiving its state) reads
        what the first group reads: torchft sets its gradients to zero.
        """
        manager = self._manager
        manager.wait_quorum()
        group = manager.participating_rank() if manager.is_participating() else 0
        ranks = manager.num_participants() * self._inner_size
        return group * self._inner_size + self._inner_rank, ranks

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
    def world_size(self) -> int:
        """How many ranks read the step of the batch that was received last."""
        received = self._last("world_size")
        return received.plan.world_size or 1

    @property
    def step_size(self) -> int:
        """How many units all ranks together read in the step received last, without padding.

        Use it to weight losses: if each rank's loss is `world_size / step_size` times the sum over
        its units, then torchft's mean over ranks is the mean over the step's units, also where the
        groups have unequal shares.

        Raises
        ------
        IndexPlanError
            Before the loop has received a batch.
        """
        received = self._last("step_size")
        return received.plan.step_size(*received.where, step=received.step)

    @property
    def num_valid(self) -> int:
        """How many units of the batch received last are not padding, which comes last in it."""
        plan, rank, where, step = self._last("num_valid")
        return plan.units(*where, step=step, rank=rank).num_valid

    def _last(self, name: str) -> Received:
        if self._received is None:
            rule, got = "must be asked for inside the loop, after a batch", "none before it"
            raise IndexPlanError(
                name, rule, got, "read it in the loop, or after next(iter(loader))"
            )
        return self._received

    @property
    def epoch(self) -> int:
        """The epoch of the step that comes next."""
        return self._cursor.epoch

    @property
    def cursor(self) -> Cursor:
        """Where the run stands, for a checkpoint; continue with `plan.resume(cursor)`."""
        return self._cursor


def _device() -> torch.device:
    """Return where tensors lie that any process group of this process can sum up."""
    if not torch.accelerator.is_available():
        return torch.device("cpu")
    return torch.accelerator.current_accelerator() or torch.device("cpu")
