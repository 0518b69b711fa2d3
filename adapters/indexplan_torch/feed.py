"""Feed: which plan and rank a loader reads, which pass is set, and how far the loop has come.

One feed serves a loader and all its samplers, and stays the same when a trainer rebuilds those.
All state that changes is here.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch.distributed
from torch.utils.data import get_worker_info

from indexplan import Cursor, IndexPlanError, Plan
from indexplan.errors import as_integer, shown, wrong
from indexplan_torch.agreeing import compare as compare_ranks
from indexplan_torch.arguments import count, flag
from indexplan_torch.counting import counts_iterations, refuse_counting, refuse_fetched_ahead
from indexplan_torch.cuts import Cuts, place_of
from indexplan_torch.items import Form, asked
from indexplan_torch.passes import Pass, Received
from indexplan_torch.ranks import check_found_ranks, discover, process_group_runs

Asked = tuple[str, int]  # the method that was called, and the number
State = dict[str, Any]

STATE_VERSION = 1


class Feed:
    """The plan of a running process, and how far it has come.

    Sub-epochs are numbered through the run: number n is sub-epoch n % S of epoch n // S, since an
    epoch of a trainer is one pass over its loader.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        rank: int | None = None,
        world_size: int | None = None,
        mesh: Any = None,
        form: Form | None = None,
        partial: bool = False,
        compare: bool = True,
    ) -> None:
        if not isinstance(plan, Plan):
            raise wrong(
                "plan", "an indexplan.Plan", plan, "pass indexplan.Plan(order, batch_size=...)"
            )
        self.form = Form() if form is None else form
        self.form.check(plan)
        self.given = plan
        self.plan = plan
        self._readers: tuple[int, ...] | None = None  # ranks of the process group, if a mesh tells
        if mesh is not None:  # only read here: a mesh does not travel to workers
            rank, world_size = discover(rank, world_size, mesh=mesh)
            self._readers = tuple(sorted(mesh.mesh.flatten().tolist()))
        self._to_compare, self._looked = flag("compare", compare), False
        self.rank, self.world_size = rank, world_size
        self.number = self._number(plan.start)
        self.current: Pass | None = None
        self._resumes = bool(plan.start.step)  # in the middle of a pass that is not yet read on
        self.handed: Pass | None = None  # begun and counted by a loader, for its sampler to draw
        self.opened: Callable[[], Any] | None = None  # the newest iterator of a sampler, if alive
        self.pinned = False
        self.cuts = Cuts(flag("partial", partial))
        self._asked: Asked | None = None  # which pass, since the last one was begun
        self._overruled: Asked | None = None  # the same, if a state was loaded since
        self._once_more = False  # torchdata may begin what it has just loaded once more
        self._saved_in: int | None = None  # which pass, where the cursor alone does not tell
        self._running: tuple[Plan, int, Plan] | None = None
        if rank is not None or world_size is not None:
            self.running()  # what is given can be refused at once

    def _number(self, cursor: Cursor) -> int:
        return cursor.epoch * cursor.sub_epochs + cursor.sub_epoch

    def running(self) -> tuple[Plan, int]:
        """Return the plan with its world_size filled in, and this process's rank.

        Raises
        ------
        IndexPlanError
            If the plan has another world_size than the running one.
        """
        if self._running is not None and get_worker_info() is not None:
            return self._running[2], self._running[1]  # a spawned worker has no process group
        rank, world_size = discover(self.rank, self.world_size)
        if self._running is not None:
            source, was, plan = self._running
            if source is self.plan and was == rank and plan.world_size == world_size:
                return plan, rank
        plan = self.plan
        if plan.world_size is None:
            plan = plan.replace(world_size=world_size).resume(self.plan.start)
        elif plan.world_size != world_size:
            cure = f"use plan.replace(world_size={world_size})"
            if world_size == 1:
                cure = "initialize torch.distributed first"  # torchrun and trainers do
            raise IndexPlanError(
                "world_size",
                f"must be {plan.world_size}, the plan's",
                f"{world_size} running",
                f"leave it out of the plan to take the running one, or {cure}",
            )
        self._running = (self.plan, rank, plan)
        return plan, rank

    def over(self, number: int) -> bool:
        """Return whether a pass was over when the run was saved, so that nothing of it is left.

        These are the passes before the one that the state was saved in, of the same epoch, and that
        one too if it was at its end: a loop may start again with the epoch that it was stopped in.
        Passes of earlier epochs cannot be read.
        """
        start = self._number(self.plan.start)
        saved_in = start if self.plan.start.step else start - 1
        if self._saved_in is not None:
            saved_in = min(saved_in, self._saved_in)
        return saved_in - saved_in % self.plan.sub_epochs <= number < start

    @property
    def where(self) -> tuple[int, int]:
        """The (epoch, sub_epoch) that is set; if that is over, the one where the run goes on."""
        over = self.over(self.number)
        return self._place(self._number(self.plan.start) if over else self.number)

    def _place(self, number: int) -> tuple[int, int]:
        return divmod(number, self.plan.sub_epochs)

    def set_epoch(self, number: int) -> None:
        """Set the pass that comes next: sub-epoch `number` of the run, counted through all epochs.

        Raises
        ------
        IndexPlanError
            If the number is negative or not an integer.
        """
        refuse_counting(self)
        number = count("epoch", number)
        self._asked, self._overruled = ("set_epoch", number), None
        self._once_more = False
        self.cuts.named = True
        if not self.pinned:
            self.number = number
            if self.current is not None and self.current.finished:
                self._resumes &= self.over(self.current.number)
                self.current = None  # a finished pass that is asked for again is read again

    def set_epoch_from_trainer(self, number: int) -> None:
        """Set the pass that comes next, by the number that a trainer gives it.

        Fabric's number is only how often its loader was asked for batches, by whomever, so it is
        not taken: passes follow each other, or are those that the user names.
        """
        number = count("epoch", number)
        if counts_iterations():
            return
        self.set_epoch(number)
        self._asked = ("set_epoch_from_trainer", number)

    def set_epoch_and_sub_epoch(self, epoch: int, sub_epoch: int) -> None:
        """Set the pass that comes next; `sub_epoch` is taken modulo the plan's sub_epochs."""
        epoch, sub_epoch = count("epoch", epoch), count("sub_epoch", sub_epoch)
        self.set_epoch(epoch * self.plan.sub_epochs + sub_epoch % self.plan.sub_epochs)

    def begin(self, number: int | None = None) -> Pass:
        """Start a pass over the sub-epoch that is set, or over the next if that one was finished.

        If `number` is given, that pass starts instead.

        Raises
        ------
        IndexPlanError
            If a rank would get an empty batch in it, which datasets and models do not take; if an
            earlier pass was left in the middle; or if ranks have different plans.
        """
        if self._once_more and self.coming > self.number:
            self._once_more = False
            self.current = Pass(self.number, 0, 0)
            return self.current
        self.number = self.coming if number is None else number
        self.cuts.begin(self._left(), self.number, self.plan.sub_epochs)
        self._resumes &= self.number <= self._number(self.plan.start)
        self._asked = self._overruled = None
        if self.over(self.number):
            self.current = Pass(self.number, 0, 0)
            return self.current
        plan, _ = self.running()
        self._compare(plan)
        account = plan.account(*self.where)
        if account.num_steps and not account.min_batch_size:
            raise IndexPlanError(
                "each step",
                "must hold a unit for every rank",
                f"steps of fewer than world_size={plan.world_size} units in "
                f"{place_of(self.number, plan.sub_epochs)}, under remainder="
                f"{plan.remainder!r}",
                "use a larger batch size, remainder='carry', 'pad' or 'drop', or fewer ranks",
            )
        steps = plan.steps(*self.where)
        self.current = Pass(self.number, steps.start, steps.stop)
        return self.current

    def _left(self) -> Pass | None:
        """Return the pass that the loop is in, or goes on with after a resume."""
        current, start = self.current, self.plan.start
        if not self._resumes or (current is not None and not self.over(current.number)):
            return current
        stop = self.running()[0].steps(start.epoch, start.sub_epoch).stop
        return Pass(self._number(start), start.step, stop)

    @property
    def coming(self) -> int:
        """The number of the pass that would begin now."""
        current = self.current
        read = current is not None and current.finished and current.number == self.number
        return self.number + (read and not self.pinned)

    def _compare(self, plan: Plan) -> None:
        """Look at the ranks, and compare their plans, once, in their main processes.

        Ranks that were given explicitly are compared if they are as many as the process group's.
        """
        if self._looked or get_worker_info() is not None:
            return
        self._looked = True
        check_found_ranks(given=self.rank is not None)
        if not self._to_compare or not process_group_runs():
            return
        readers = self._readers or tuple(range(torch.distributed.get_world_size()))
        all_of_them = self.rank is None or self.world_size == len(readers)
        if len(readers) > 1 and (self._readers or all_of_them):
            compare_ranks(plan, self.where, readers)

    def __bool__(self) -> bool:
        """Say that a feed is there, also where the pass that is set has no steps."""
        return True

    def __len__(self) -> int:
        refuse_counting(self)
        plan, _ = self.running()
        return 0 if self.over(self.number) else plan.steps(*self.where).stop

    def draw(self, begun: Pass, rank: int | None = None) -> Iterator[Any]:
        """Yield what the dataset is asked for, batch by batch, in the steps that are left."""
        if begun.first == begun.stop:
            return
        plan, running = self.running()
        rank = running if rank is None else rank
        epoch, sub_epoch = self._place(begun.number)
        yield from asked(plan, epoch, sub_epoch, rank, self.form)

    def cursor(self) -> Cursor:
        """Return where the run stands, in batches the loop has received; the same on all ranks."""
        return self._cursor(self._counted(self._standing()))

    def _standing(self) -> Pass | int:
        """Return the pass that the loop is in or has read; its number, if it has not begun."""
        current = self.current
        return self.number if current is None or current.number != self.number else current

    def _cursor(self, standing: Pass | int, *, drawn: bool = False) -> Cursor:
        plan, _ = self.running()
        number = standing if isinstance(standing, int) else standing.number
        if self.over(number):
            return plan.start
        place = self._place(number)
        if isinstance(standing, int):
            return plan.cursor(*place, step=plan.steps(*place).start)
        return plan.cursor(*place, step=standing.step + (standing.ahead if drawn else 0))

    def _counted(self, standing: Pass | int) -> Pass | int:
        """Return where a loop stands; raise if what it received was not counted."""
        if isinstance(standing, Pass) and not standing.counted:
            raise IndexPlanError(
                "a loader",
                "must hand its batches to the loop itself, to know its state, cursor and step_size",
                "workers that draw ahead for another loader, such as that of skip_first_batches",
                "use load_state_dict(state) instead, or make the loader of plan.resume(cursor)",
            )
        refuse_fetched_ahead(self)
        return standing

    def received(self, name: str, otherwise: str) -> Received:
        """Return which batch the loop received last; if none, raise an error about `name`."""
        plan, rank = self.running()
        current = self.current
        if current is None or current.step == current.first:
            raise IndexPlanError(
                name,
                "must be asked for inside the loop, after a batch",
                "none before it",
                otherwise,
            )
        self._counted(current)
        return Received(plan, rank, self._place(current.number), current.step - 1)

    def step_size(self) -> int:
        """Return how many units all ranks read in the step that the loop received last."""
        cure = "use plan.step_size(epoch, sub_epoch, step=...) for any step"
        received = self.received("step_size", cure)
        return received.plan.step_size(*received.where, step=received.step)

    def state_dict(self, standing: Pass | int | None = None, *, drawn: bool = False) -> State:
        """Return where the run, or a pass, stands, to be kept in a checkpoint.

        It counts what the loop has received; with `drawn`, what was drawn, for loaders that keep
        the state of each batch until the loop receives it.

        Raises
        ------
        IndexPlanError
            If an earlier pass was left in the middle, so that its rest would never be read.
        """
        if standing is None:
            standing = self._unbegun() if drawn else None
            number = self.number if standing is None else standing
            self.cuts.check(self._left(), number, self.plan.sub_epochs)
        if standing is None:
            standing = self._standing()
            if not drawn:
                self._counted(standing)
        number = standing if isinstance(standing, int) else standing.number
        if drawn and number < (start := self._number(self.plan.start)) and not self.over(number):
            # torchdata asks a sampler before it loads, when what is set may be out of reach
            number = standing = start
        cursor = self._cursor(standing, drawn=drawn)
        state: State = {"version": STATE_VERSION, "cursor": cursor.to_dict()}
        if self._number(cursor) > number + 1:  # under "carry", with passes between without steps
            state["pass"] = number
        return state

    def _unbegun(self) -> int | None:
        """Return the pass that the newest iterator of a sampler begins with, if it has not begun.

        A loop that has just asked for that iterator stands there, whatever an earlier one drew.
        """
        opened = None if self.opened is None else self.opened()
        return None if opened is None else opened.unbegun()

    def load_state_dict(self, state: State) -> None:
        """Go on where a run stood; world size and batch size may differ now.

        Raises
        ------
        IndexPlanError
            If it is not a state, or one of another order or another number of sub-epochs.
        """
        # Accelerate, for one, adds fields of its own.
        if not isinstance(state, dict) or not {"version", "cursor"} <= state.keys():
            # not all of its content: a checkpoint holds a model
            is_dict = isinstance(state, dict)
            got = f"a dict of {shown(list(state))}" if is_dict else type(state).__name__
            cure = "save state_dict() in the checkpoint, and load that"
            raise IndexPlanError("state", "must be what state_dict returned", got, cure)
        if as_integer(state["version"]) != STATE_VERSION:
            raise wrong(
                "state",
                f"of version {STATE_VERSION}",
                state["version"],
                "load it with the version of indexplan that saved it",
            )
        cursor = Cursor.from_dict(state["cursor"])
        saved_in = count("a state's pass", state["pass"]) if "pass" in state else None
        if self.pinned:
            return  # the same batches in every epoch, wherever the run stood
        self.plan = self.given.resume(cursor)
        self.number = self._number(cursor)
        self.current = None
        self._resumes = bool(cursor.step)
        self._saved_in = saved_in
        self._once_more = False
        self._asked, self._overruled = None, self._asked or self._overruled

    def load_at_iter(self, state: State) -> None:
        """Load a state when the loop begins, as torchdata does; a pass set before stays set."""
        asked = self._asked or self._overruled
        self.load_state_dict(state)
        self._resumes = False  # first_after_load says what is read first
        self._ask_again(asked)

    def begin_within(self, number: int) -> Pass:
        """Start a pass in the loop that another was read in; one set meanwhile stays set."""
        asked = self._asked
        begun = self.begin(number)
        self._ask_again(asked)
        return begun

    def _ask_again(self, asked: Asked | None) -> None:
        if asked is not None:
            method, number = asked
            getattr(self, method)(number)

    def first_after_load(self) -> int | None:
        """Return the pass that torchdata has to read to its end before the one that is set.

        It may have kept an earlier state and the number of batches since then, and now reads and
        drops that many. A pass that was at its end is then empty, as with torchdata's own samplers.
        """
        loaded = self._number(self.plan.start)
        if self._saved_in != loaded:
            return self._saved_in if self._asked is None else None
        return loaded if self.number > loaded else None

    def may_begin_once_more(self) -> None:
        """Note whether the pass that is set is the loaded one: torchdata may begin it once more."""
        loaded = self._number(self.plan.start)
        self._once_more = (
            self._saved_in == loaded and self._asked is not None and self.number == loaded
        )

    def check_nothing_dropped(self, snapshot_interval: int | None) -> None:
        """Raise if torchdata may drop batches of the pass it saved in, which is not read now."""
        if snapshot_interval != 1 and self._saved_in == self._number(self.plan.start):
            raise IndexPlanError(
                "set_epoch",
                f"must be {self._saved_in}, the pass that the state was saved in, as "
                "torchdata drops batches to get from its last snapshot to where the "
                "loop was",
                self.number,
                "start the loop with that pass, or use snapshot_every_n_steps=1",
            )

    def forget(self) -> None:
        """Forget the current pass, as a trainer has only looked at some of its batches."""
        self.current = None

    def pin(self) -> Feed:
        """Return another feed, which reads the pass that is set now in every epoch."""
        feed = copy.copy(self)
        feed.pinned, feed.current, feed.handed, feed.opened = True, None, None, None
        feed.cuts = Cuts(partial=True)
        return feed

    def __copy__(self) -> Feed:
        feed = object.__new__(type(self))
        vars(feed).update(vars(self))
        return feed

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the sampler's iterator, which belongs to this process."""
        return {**vars(self), "opened": None}
