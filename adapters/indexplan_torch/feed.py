"""Feed: how far the loop over a plan has come, and the state that stores it.

A loader shares one feed with all its samplers, and keeps it when a trainer rebuilds those.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any

from torch.utils.data import get_worker_info

from indexplan import Cursor, IndexPlanError, Plan
from indexplan.errors import as_integer, empty_batches, shown, wrong
from indexplan_torch.again import Dealt
from indexplan_torch.arguments import count, flag
from indexplan_torch.counting import (
    UNDER_TRAINER,
    refuse_counting,
    refuse_fetched_ahead,
)
from indexplan_torch.cuts import Cuts
from indexplan_torch.items import Form
from indexplan_torch.passes import Pass, Received, Start
from indexplan_torch.ranks import discover
from indexplan_torch.running import Given, Running, running
from indexplan_torch.turns import Turn

if TYPE_CHECKING:
    from indexplan_torch.recording import Recorder

State = dict[str, Any]

STATE_VERSION = 1


class Feed:
    """The arguments, where the run started, which pass is next, and how far the loop is in it.

    Attributes
    ----------
    given : Given
        The arguments; frozen. They are replaced when the run moves to another plan.
    start : Start
        Where the run started; frozen too. It is replaced when a state is loaded, and when the loop
        continues that state's pass.
    turn : Turn
        Which pass is set.
    current : Pass or None
        The pass that the loop is in, or has read. None before the first pass, and when `set_epoch`
        names a finished one again.
    cuts : Cuts
        Whether passes may be left early.
    recorder : Recorder or None
        Writes the run's ledger.
    leaves_ledger : bool
        Whether the run goes on without the ledger that a state names.
    alone : bool
        Whether no other loader may draw: a PlanLoader was resumed or prepared, or has a ledger.
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
        again: int = 1,
    ) -> None:
        self.given = Given.of(plan, rank, world_size, mesh, form, compare, again)
        self.start = Start.of(plan)
        self.turn = Turn(self.start.number)
        self.current: Pass | None = None
        self.cuts = Cuts(flag("partial", partial))
        self.recorder: Recorder | None = None
        self.leaves_ledger = self.alone = False
        self._running: Running | None = None  # as it was last asked for
        self._compared = False
        if self.given.rank is not None or self.given.world_size is not None:
            self.running()  # wrong arguments can be refused at once

    @property
    def plan(self) -> Plan:
        """The plan from where the run started, with its world_size as it was given."""
        return self.start.plan

    def running(self) -> tuple[Plan, int]:
        """Return the plan with its world_size filled in, and this process's rank.

        Raises
        ------
        IndexPlanError
            If the plan's world_size is not the running one.
        """
        known = self._running
        if known is not None and get_worker_info() is not None:
            return known.plan, known.rank  # a spawned worker has no process group
        rank, world_size = discover(self.given.rank, self.given.world_size)
        ranks = rank, world_size
        if known is None or known.source is not self.plan or known.ranks != ranks:
            known = self._running = running(self.plan, *ranks)
        return known.plan, known.rank

    # --- which pass is next

    @property
    def number(self) -> int:
        """The number of the coming pass, counted in sub-epochs over the whole run."""
        return self.turn.number

    @property
    def coming(self) -> int:
        """The number of the pass that would begin now."""
        current = self.current
        read = current is not None and current.finished and current.number == self.number
        return self.number + (read and not self.turn.pinned)

    @property
    def where(self) -> tuple[int, int]:
        """The (epoch, sub_epoch) that is set; if that is over, the one where the run continues."""
        return self._at(self.number)

    def _at(self, number: int) -> tuple[int, int]:
        """Return the (epoch, sub_epoch) of a pass, or, if it is over, where the run continues.

        Raises
        ------
        IndexPlanError
            If its epoch was finished when the run was saved.
        """
        if self.start.over(number):
            return self._place(self.start.number)
        if number < self.start.number:
            raise self._finished(number)
        return self._place(number)

    def _finished(self, number: int) -> IndexPlanError:
        """Return the error of a loop that begins with the run's first epoch after a resume."""
        first, parts = self.start.cursor.epoch, self.plan.sub_epochs
        times = f" * {parts}" * (parts > 1)
        return IndexPlanError(
            "epoch",
            f"must be {first} or later, where the run was resumed, as earlier ones are finished",
            str(number // parts),
            f"begin your loop with range(loader.cursor.epoch{times}, ...) once a state is loaded, "
            f"which is range({first * parts}, ...) here",
        )

    def _place(self, number: int) -> tuple[int, int]:
        return divmod(number, self.plan.sub_epochs)

    def set_epoch(self, number: int) -> None:
        """Set the next pass: sub-epoch `number` of the run, counted through all epochs.

        Raises
        ------
        IndexPlanError
            If the number is negative or not an integer.
        """
        self._name(count("epoch", number), by_user=True)

    def _name(self, number: int, *, by_user: bool) -> None:
        self.turn.name(number, by_user=by_user)
        current = self.current
        if not self.turn.pinned and current is not None and current.finished:
            if not self.start.over(current.number):
                self.start = self.start.read()
            self.record()
            self.current = None  # a finished pass that is named again is read again

    def set_epoch_from_trainer(self, number: int) -> None:
        """Set the next pass, by the number that a trainer gives it.

        A pass that a user has named stays. Else a number never takes the loader back inside a fit,
        where passes may be shorter than the trainer's epochs: a pass that the loop is in is
        continued. One no larger than the last begins a new fit, and is taken as it is.

        Fabric's number counts how often its loader was asked for batches, whatever was loaded since
        it was made. So the first number after a load says nothing if it is below the state's pass,
        or above the one that may follow it, and the next ones count from there.

        Raises
        ------
        IndexPlanError
            If the number is negative or not an integer; or if a pass that another loader draws
            would have to be continued.
        """
        number = count("epoch", number)
        turn, start, current = self.turn, self.start, self.current
        if turn.named and number == turn.told:  # some give it twice
            return
        last, turn.told = turn.told, number
        if turn.named and turn.by_user:
            return
        if last is None:
            saved_in = start.number if start.saved_in is None else start.saved_in
            follows = start.saved_in is None or number <= start.number + start.unread
            if number < saved_in or not follows:
                number = self.coming
        elif last < number:
            number = min(number, turn.number + number - last)  # if it counts on after a load
            if number <= self.coming:
                if not (turn.named or turn.pinned or current is None or current.finished):
                    self.move(self.given.plan)
                number = self.coming
        self._name(number, by_user=False)

    def set_epoch_and_sub_epoch(self, epoch: int, sub_epoch: int) -> None:
        """Set the next pass; `sub_epoch` is taken modulo the plan's sub_epochs."""
        epoch, sub_epoch = count("epoch", epoch), count("sub_epoch", sub_epoch)
        self.set_epoch(epoch * self.plan.sub_epochs + sub_epoch % self.plan.sub_epochs)

    def set_coming(self) -> None:
        """Set the pass that would begin now, for a trainer that asks for its length first."""
        self.turn.number = self.coming

    def keep_ledger(self, ledger: Any) -> None:
        """Write a ledger, starting with the next pass; False leaves that of a state.

        A Recorder is that of a loader that makes a new feed for each plan of its run.
        """
        if ledger is False:
            self.leaves_ledger = True
            return
        if self.cuts.partial:
            cure = "leave one of them out, as a ledger has every step of a pass"
            raise wrong("partial", "False with a ledger", True, cure)
        from indexplan_torch.recording import Recorder, write_at_exit

        self.recorder = ledger if isinstance(ledger, Recorder) else Recorder(ledger)
        self.alone = True
        write_at_exit(self)

    def read_by(self, ranks: tuple[int, ...]) -> None:
        """Read the plan on these ranks of the process group, where their number does not say it."""
        self.given = replace(self.given, readers=ranks)

    def pin(self) -> Feed:
        """Return a feed that reads the pass that is set now in every epoch.

        Raises
        ------
        IndexPlanError
            If it keeps a ledger, because a run with a ledger reads each pass once.
        """
        if self.recorder is not None:
            cure = "leave out ledger=, or overfit_batches"
            raise wrong("ledger", "left out where a pass is read again and again", "one", cure)
        feed = copy.copy(self)
        feed.turn, feed.current = replace(self.turn, pinned=True), None
        feed.cuts = Cuts(partial=True)
        return feed

    # --- the pass that the loop is in

    def begin(self, number: int | None = None) -> Pass:
        """Start a pass over the sub-epoch that is set, or over the next if that one is finished.

        If you pass `number`, that pass starts instead.

        Raises
        ------
        IndexPlanError
            If a rank would get an empty batch in it, which datasets and models don't accept; if an
            earlier pass was left early; or if ranks have different plans.
        """
        number = self.turn.number = self.coming if number is None else number
        if number <= self.start.number and (self.start.number or self.start.unread):
            from indexplan_torch.skipping import refuse_skipping

            refuse_skipping()
        self.cuts.begin(self, self._left(), number, named=self.turn.named)
        self.turn.named = False
        self.record()
        if number > self.start.number:
            self.start = self.start.read()
        if self.start.over(number):
            self.current = Pass(number, 0, 0)
            return self.current
        plan, rank = self.running()
        if not self._compared and get_worker_info() is None:
            self.given.check_ranks(plan, rank, self.where, ledger=self.recorder is not None)
            self._compared = True  # unless they differ: then a later pass compares them again
        account = plan.account(*self.where)
        if account.num_steps and not account.min_batch_size:
            raise empty_batches(plan.world_size, plan.remainder, *self.where)
        steps = self.steps(number)
        if self.recorder is not None and steps:
            self._begin_in_ledger(number, plan, rank)
        self.current = Pass(number, steps.start, steps.stop)
        return self.current

    def _begin_in_ledger(self, number: int, plan: Plan, rank: int) -> None:
        assert self.recorder is not None  # noqa: S101 (who calls has looked)
        goes_on = self.current is None and self.start.unread and number == self.start.number
        if goes_on and not self.recorder.begins:  # after an error, which may be this rank's alone
            self.recorder.refuse_followed()
            return
        begins = plan.replace(world_size=plan.world_size).resume(self._cursor(number, None))
        together, all_begin = self.given.together(), self.given.compare
        self.recorder.begin(begins, rank, together, all_begin=all_begin)

    def record_if(self, begun: Pass) -> None:
        """Record a pass, unless a later one has begun."""
        if self.current is begun:
            self.record()

    def record(self) -> None:
        """Record what the loop has received in the ledger, if there is one."""
        current = self.current
        if self.recorder is not None and current is not None and current.first < current.stop:
            step = current.step // self.given.again
            self.recorder.record(self._place(current.number), step)

    def _left(self) -> Pass | None:
        """Return the pass that the loop is in, or continues after a resume."""
        current, start = self.current, self.start
        if not start.unread or (current is not None and not start.over(current.number)):
            return current
        steps = self.steps(start.number)
        return Pass(start.number, steps.start, steps.stop)

    def draw(self, begun: Pass) -> Iterator[Any]:
        """Yield what to request from the dataset, batch by batch, in the remaining steps."""
        if begun.first == begun.stop:
            return
        yield from self.requests(begun.number, self.given.form)

    def requests(self, number: int, form: Form) -> Iterator[Any]:
        """Yield what to request from the dataset in the remaining steps of a pass."""
        plan, rank = self.running()
        again, (epoch, sub_epoch) = self.given.again, self._place(number)
        once = form.requests(plan, epoch, sub_epoch, rank)
        times = chain.from_iterable(repeat(each, again) for each in once)
        return islice(times, self.steps(number).start % again, None)

    def steps(self, number: int) -> range:
        """Return the remaining steps of a pass, as the loop counts them: each `again` times.

        If the pass was over when the run was saved, return those of the pass that continues it.
        """
        plan, _ = self.running()
        steps, again = plan.steps(*self._at(number)), self.given.again
        dealt = self.start.dealt if self._at(number) == self._at(self.start.number) else 0
        return range(steps.start * again + dealt, steps.stop * again)

    def forget(self) -> None:
        """Forget the current pass, because a trainer only looked at some of its batches."""
        self.current = None

    def __bool__(self) -> bool:
        """Return True, even if the pass that is set has no steps, so that `if feed` works."""
        return True

    def __len__(self) -> int:
        """Return the number of steps in the pass that is set, including finished ones."""
        refuse_counting(self)
        return 0 if self.start.over(self.number) else self.steps(self.number).stop

    # --- where the loop stands

    def cursor(self) -> Cursor:
        """Return where the run stands, by the batches the loop received; equal on all ranks."""
        return self._cursor(*self._standing())

    def in_words(self, of: object) -> str:
        """Return the `repr` of a loader or sampler: its plan, its rank, and where it stands."""
        try:
            plan, rank = self.running()
            who = f"rank {rank} of {plan.world_size}"
        except IndexPlanError:  # such as for a plan of other ranks: a repr must not raise
            who = "rank unknown"
        number, step = self.number, self.step
        epoch, sub_epoch = self._place(number)
        parts = f"sub-epoch {sub_epoch}, " * (self.plan.sub_epochs > 1)
        where = f"epoch {epoch}, {parts}step {step}"
        return f"<{type(of).__name__} of {self.given.plan}: {who}, at {where}>"

    @property
    def step(self) -> int:
        """The next step of the pass that is set."""
        current, number = self.current, self.number
        if current is not None and current.number == number:
            return current.step
        return self.start.plan.start.step if number == self.start.number else 0

    def _standing(self) -> tuple[int, int | None]:
        """Return the pass that is set, and the step in it (None if the pass has not begun)."""
        self.cuts.check(self, self._left(), self.number)
        current = self.current
        if current is None or current.number != self.number:
            refuse_fetched_ahead(self)
            return self.number, None
        self._check_counted(current)
        return current.number, current.step

    def _check_counted(self, current: Pass) -> None:
        """Raise if nobody knows what the loop has received of a pass."""
        if current.drawn:
            raise IndexPlanError(
                "a sampler",
                "must not be asked for a cursor or step_size inside a pass, as it knows what was "
                "drawn, not what the loop has received",
                "a pass that another loader draws",
                "loop over a PlanLoader, or use the state of torchdata's StatefulDataLoader; at "
                "the end of a pass, name the next with set_epoch first" + UNDER_TRAINER,
            )
        refuse_fetched_ahead(self)

    def _cursor(self, number: int, step: int | None) -> Cursor:
        plan, _ = self.running()
        if self.start.over(number):
            return plan.start
        step = self.steps(number).start if step is None else step
        return plan.cursor(*self._place(number), step=step // self.given.again)

    def received(self, name: str, otherwise: str) -> Received:
        """Return the batch that the loop received last; without one, raise, naming `name`."""
        plan, rank = self.running()
        current = self.current
        if current is None or current.step == current.first:
            raise IndexPlanError(
                name,
                "must be asked for inside the loop, after a batch",
                "none before it",
                otherwise,
            )
        self._check_counted(current)
        step = (current.step - 1) // self.given.again
        return Received(plan, rank, self._place(current.number), step)

    def move(self, plan: Plan, *, jump: bool = False) -> None:
        """From the next step on, read another plan, which continues where the loop stands.

        With `jump`, a plan that starts past that place continues where it starts.

        Raises
        ------
        IndexPlanError
            If the plan does not continue there, has another world size than the running one, or
            can't continue a step between its repeats; or if an earlier pass was left early.
        """
        standing = self._standing()
        state = self.state_at(*standing)
        given = self.given.moved(plan)
        rest = plan.resume(Cursor.from_dict(state["cursor"]))
        running(rest, *discover(given.rank, given.world_size))
        here, there = ((each.epoch, each.position) for each in (rest.start, plan.start))
        ahead = jump and there > here
        rest = plan if ahead else rest
        dealt = self._dealt(rest, state["dealt"]) if "dealt" in state and not ahead else 0
        if ahead or plan != self.given.plan:
            self._compared = False
            if self.recorder is not None:
                self.record()
                self.recorder.change(plan.start if ahead else None)
        self.given, self.start = given, Start.of(rest, standing[0], dealt)
        self.turn.load(self.start.number)
        self.current = None

    # --- states

    def state_dict(self) -> State:
        """Return where the run stands, for a checkpoint, by the batches the loop has received.

        Raises
        ------
        IndexPlanError
            If an earlier pass was left early, so the rest of it would never be read; or if nobody
            knows what the loop has received.
        """
        state = self.state_at(*self._standing())
        if self.recorder is not None:
            self.record()
            self.recorder.check_at(self.cursor())
            if self.recorder.hash is not None:
                state["ledger"] = self.recorder.hash
            if self.recorder.skips_to is not None:
                state["skips"] = True
        return state

    def state_at(self, number: int, step: int | None) -> State:
        """Return the state of a run that stands before a step of a pass; None is its first."""
        cursor = self._cursor(number, step)
        state = {"version": STATE_VERSION, "cursor": cursor.to_dict(), "pass": number}
        times = self._times(number, step)
        if times:
            plan, _ = self.running()
            units = plan.step_size(cursor.epoch, cursor.sub_epoch, step=cursor.step)
            state["dealt"] = Dealt(times, self.given.again, units)._asdict()
        return state

    def _times(self, number: int, step: int | None) -> int:
        """Return how many times the loop has already read the step that comes next."""
        if self.start.over(number):
            step = None
        step = self.steps(number).start if step is None else step
        return step % self.given.again

    def load_state_dict(self, state: State) -> None:
        """Resume from a state; world size and batch size may have changed.

        Raises
        ------
        IndexPlanError
            If it is not a state, or belongs to another order or number of sub-epochs; or if it was
            saved between two repeats of a step (see `again`), and the step can't continue with the
            new `again` or global batch.
        """
        # Extra fields are allowed: Accelerate, for one, adds some.
        if not isinstance(state, dict) or not {"version", "cursor", "pass"} <= state.keys():
            # not its whole content: a checkpoint holds a model
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
        saved_in = count("a state's pass", state["pass"])
        if self.turn.pinned:
            return  # overfitting: the same batches in every epoch, wherever the run stood
        plan = self.given.plan.resume(cursor)
        dealt = self._dealt(plan, state["dealt"]) if "dealt" in state else 0
        if self.recorder is not None:
            if not self.recorder.followed:  # else what was read since is void
                self.record()
            skips = state.get("skips", False) is True
            self.recorder.load(state.get("ledger"), plan.start if skips else None)
        elif not self.leaves_ledger and state.get("ledger") is not None:
            from indexplan_torch.recording import refuse_unkept

            refuse_unkept(state["ledger"])
        self.start = Start.of(plan, saved_in, dealt)
        self.turn = Turn(self.start.number)
        self.current = None

    def _dealt(self, resumed: Plan, state: Any) -> int:
        """Return how many times the resumed plan's first step was already read, by a state."""
        ranks = discover(self.given.rank, self.given.world_size)
        plan, start = running(resumed, *ranks).plan, resumed.start
        where = start.epoch, start.sub_epoch
        there = start.step in plan.steps(*where)
        units = plan.step_size(*where, step=start.step) if there else 0
        return Dealt.of(state).under(self.given.again, units)
