"""A run's ledger as a loader keeps it: all ranks compute the same lines, and one of them writes.

When the other ranks begin their first pass after a start or a load, they learn where the ledger
ends through the process group's store, not by a collective. From then on, each rank computes the
next line itself, and therefore its hash, which states keep.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import warnings
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakSet, WeakValueDictionary

import torch.distributed
from torch.utils.data import get_worker_info

from indexplan import IndexPlanError, Ledger, PlanFileError
from indexplan.errors import invalid, path_text
from indexplan.ledger import Tail, check_begins, resume_of
from indexplan_torch.agreeing import leave, meeting
from indexplan_torch.ranks import process_group_runs
from indexplan_torch.versions import private

if TYPE_CHECKING:
    from indexplan import Cursor, Plan
    from indexplan.ledger import Resume

ONE_LOADER = "must be kept by one loader, the one that reads the training's data"
IN_SEQUENCE = "read each pass once and in sequence, or load a state to go back"


class Recorder:
    """Writes a loader's run to its ledger; nothing happens until a pass begins.

    Parameters
    ----------
    ledger : str, path-like or Ledger
        As it was given to the loader.
    """

    def __init__(self, ledger: Any) -> None:
        self._given = ledger if isinstance(ledger, Ledger) else None
        cure = "pass where the file is, or shall be, or an indexplan.Ledger"
        # absolute, as a trainer may change the folder before it begins
        self.path = Path(path_text("ledger", getattr(self._given, "path", ledger), cure)).absolute()
        self._ledger: Ledger | None = None  # only on the rank that writes
        # where the ledger ends, as far as this rank knows; None as a run starts, or loads a state
        self._tail: Tail | None = None
        self._plan: Plan | None = None  # as the run continues it
        # the hash in the state that was loaded last; None if it has none, False if none was loaded
        self._loaded: str | Literal[False] | None = False
        self._to: Resume | None = None  # where the run goes on, if it skips steps
        self.followed = False  # whether another loader of this process has continued the run
        self._pid = 0  # of the process that has begun

    def __reduce__(self) -> Any:
        return Recorder, (str(self.path),)  # for a process that starts afresh

    def __deepcopy__(self, _: Any) -> Recorder:
        return self

    @property
    def begins(self) -> bool:
        """Whether the run begins with the next pass, as it starts or a state was loaded."""
        return self._tail is None

    @property
    def hash(self) -> str | None:
        """The hash that a state keeps; None before the run has begun."""
        return (self._loaded or None) if self._tail is None else self._tail.hash

    @property
    def skips_to(self) -> Resume | None:
        """Where the run goes on, if it has skipped steps and read none since."""
        return self._to if self._tail is None else self._tail.ahead

    def load(self, saved: Any, to: Cursor | None = None) -> None:
        """Continue, at the next pass, from a saved state, which kept this hash (or None).

        `to` is where the run goes on, if it skips what lies before it.
        """
        if saved is not None and not (isinstance(saved, str) and len(saved) == 64):
            cure = "pass what state_dict returned"
            raise invalid("a state's ledger", "the hash of a line", saved, cure)
        self._loaded, self._tail = saved, None
        self._to = None if to is None else resume_of(to)

    def change(self, to: Cursor | None = None) -> None:
        """Continue where the run stands, or skip up to a cursor, with another plan."""
        place = self.skips_to if to is None else resume_of(to)
        if not self.begins:
            self.load(self.hash)
        self._to = place

    def begin(
        self, plan: Plan, rank: int, together: tuple[int, ...], *, all_begin: bool = True
    ) -> None:
        """Begin a pass where a plan starts, before any of it is read.

        Parameters
        ----------
        plan : Plan
            With its world_size.
        rank : int
            The rank of this process.
        together : tuple of int
            The ranks of the process group that read the plan; the first of them writes. Empty
            without a process group.
        all_begin : bool
            Whether all of them surely begin the pass, so that they leave the store together.

        Raises
        ------
        IndexPlanError
            On all ranks, if that is not where the run stands.
        """
        if get_worker_info() is not None or self._pid not in (0, os.getpid()):
            raise _of_another_process()
        if self.begins:
            self._tail = self._begun(plan, rank, together, all_begin=all_begin)
            self._plan, self._pid = plan, os.getpid()
            if self._ledger is not None and self._loaded is False:
                self._warn_of_start()
        self.refuse_followed()
        if not self._known().stands(plan):
            raise IndexPlanError(
                "a pass",
                f"must begin where the run in {self.path} stands, at {_shown(self._known().place)}",
                _shown(plan.start),
                IN_SEQUENCE,
            )

    def _warn_of_start(self) -> None:
        """Warn if no state was loaded, and so none of the steps that a ledger has counts."""
        if self._known().line and not self._known().step:
            warnings.warn(
                f"{self.path}: none of the steps in it count any longer, as a loader without a "
                "state starts the run over; load the state of a checkpoint first, or pass another "
                "file as ledger= if this is another run",
                stacklevel=7,  # the loop that begins a pass
            )

    def _known(self) -> Tail:
        assert self._tail is not None  # noqa: S101 (a pass has begun)
        return self._tail

    def _begun(self, plan: Plan, rank: int, together: tuple[int, ...], *, all_begin: bool) -> Tail:
        """Return where the ledger ends when the run continues with a plan."""
        if not together:
            if rank == 0:
                return self._written(plan)
            raise IndexPlanError(
                "ledger",
                "must be kept by rank 0 alone, where rank= and world_size= are those of no "
                "process group",
                f"rank {rank}",
                "pass ledger=False on other ranks, and load the state of rank 0 on all; or leave "
                "rank= out, under torch.distributed",
            )
        store, key = meeting("ledger", together)
        if torch.distributed.get_rank() != together[0]:
            heard = _heard(store, key, together[0])
            if all_begin:
                leave(store, key, together)
            if "tail" in heard:
                return Tail.from_dict(heard["tail"])
            raise (PlanFileError if heard["file"] else IndexPlanError)(*heard["parts"])
        told: dict[str, Any] = {}
        try:
            tail = self._written(plan)
            told = {"tail": tail.to_dict()}
        except IndexPlanError as error:
            parts = error.what, error.rule, error.got, error.cure
            told = {"parts": parts, "file": isinstance(error, PlanFileError)}
            raise
        finally:  # after Ctrl-C nothing is sent, and others wait for the timeout
            if told:
                store.set(key, json.dumps(told))
                if all_begin:
                    leave(store, key, together)
        return tail

    def _written(self, plan: Plan) -> Tail:
        key = os.getpid(), os.path.realpath(self.path)
        if _KEEPERS.get(key, self) is not self:
            gc.collect()  # it may be left in a cycle
        keeper = _KEEPERS.get(key, self)
        if keeper is not self:
            if not self._loaded:
                raise IndexPlanError(
                    f"{self.path}",
                    ONE_LOADER,
                    "a second one, while the first is still there",
                    "leave ledger= out of the loader for validation; to go on with the run, load "
                    "the state of the first, or delete it",
                )
            keeper.catch_up()  # its loop may be left open, and what it has read comes first
        refuse_a_second_rank(self.path)
        ledger = self._given or Ledger(self.path)
        if self._loaded is None:
            check_begins(plan, ledger.tail, self.path)
        skip = self._to is not None and Tail(place=self._to).stands(plan)
        ledger.begin(plan, self._loaded or None, skip=skip)
        _KEEPERS[key], keeper.followed = self, True
        self._ledger, self.followed = ledger, False
        return ledger.tail

    def catch_up(self) -> None:
        """Record what a loop that was left open has received."""
        for run in list(RECORDED):
            if run.recorder is self:
                run.record()

    def refuse_followed(self) -> None:
        """Refuse to read on where another loader of this process has continued the run."""
        if self.followed:
            raise IndexPlanError(
                f"{self.path}",
                ONE_LOADER,
                "batches of an earlier one, whose run another loader has continued from a state",
                "read the loader that has loaded the state",
            )

    def record(self, where: tuple[int, int], step: int) -> None:
        """Write what the run has read up to a step of a pass; a forked process writes nothing.

        Raises
        ------
        PlanFileError
            If the file cannot be written, or another process has written to it.
        """
        if self._idle:
            return
        assert self._plan is not None  # noqa: S101 (a pass has begun)
        cursor = self._plan.cursor(*where, step=step)
        if self.followed:
            if self._known().stands(self._plan_at(cursor)):
                return
            self.refuse_followed()
        if self._ledger is None:
            self._tail = self._known().record(self._plan, cursor, {})[1]
        else:
            self._ledger.record(self._plan, cursor)
            self._tail = self._ledger.tail

    @property
    def _idle(self) -> bool:
        """Whether nothing is read by this process: no pass has begun, or it is a fork."""
        return self.begins or self._pid != os.getpid()

    def check_at(self, cursor: Cursor) -> None:
        """Raise unless a cursor that is being saved is where the ledger ends."""
        if self.begins:
            return
        if self._idle:
            raise _of_another_process()
        if not self._known().stands(self._plan_at(cursor)):
            raise IndexPlanError(
                "a state",
                f"must be saved where the run in {self.path} stands, at "
                f"{_shown(self._known().place)}",
                _shown(cursor),
                IN_SEQUENCE,
            )

    def _plan_at(self, cursor: Any) -> Plan:
        assert self._plan is not None  # noqa: S101 (a pass has begun)
        return self._plan.replace(world_size=self._plan.world_size).resume(cursor)


def _of_another_process() -> IndexPlanError:
    return IndexPlanError(
        "a loader with a ledger",
        "must be read in the process that began to read it, which writes it",
        "another one",
        "make the loader in the process that reads it",
    )


def refuse_a_second_rank(path: Path) -> None:
    """Refuse to write a ledger that another rank of the process group writes.

    Ranks that read the same batches, such as those of tensor parallelism, may each take themselves
    for the first of those that read the plan, where they were given a part of the mesh or explicit
    ranks.

    Raises
    ------
    IndexPlanError
        On all such ranks but the one that came first.
    """
    if not process_group_runs():
        return
    store = private("torch", torch.distributed.distributed_c10d, "_get_default_store")()
    key = f"indexplan/writer/{zlib.crc32(os.path.realpath(path).encode()):08x}"
    me = torch.distributed.get_rank()
    if store.add(f"{key}/came", 1) == 1:
        store.set(key, str(me))
    first = int(store.get(key))
    if first != me:
        raise IndexPlanError(
            f"{path}",
            "must be written by one rank",
            f"rank {me}, and rank {first} writes it",
            "pass the whole mesh, or ledger=False on ranks that read the same batches as another",
        )


def _heard(store: Any, key: str, writer: int) -> dict[str, Any]:
    """Return what the rank that writes the ledger tells the others."""
    try:
        store.wait([key])
    except RuntimeError:  # the timeout; TCP stores raise a subclass
        raise IndexPlanError(
            "a ledger",
            f"must be begun by rank {writer}, which writes it, before other ranks read",
            "nothing from it before the timeout of the process group",
            "read the loader on all ranks, or pass ledger= on one that rank reads",
        ) from None
    told: dict[str, Any] = json.loads(store.get(key))
    return told


def _shown(place: Any) -> str:
    parts = (place.epoch, place.sub_epoch, place.step, place.position)
    return "epoch {}, sub-epoch {}, step {}, position {}".format(*parts)


# what keeps a ledger in a process, by the process and the file
_KEEPERS: WeakValueDictionary[tuple[int, str], Recorder] = WeakValueDictionary()
RECORDED: WeakSet[Any] = WeakSet()  # runs that have a recorder: a loop may end with the process


@atexit.register
def _write_all() -> None:
    with ExitStack() as stack:  # which calls all of them, whatever some raise
        for run in list(RECORDED):
            stack.callback(run.record)
