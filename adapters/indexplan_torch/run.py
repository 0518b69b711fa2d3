"""Run: which pass of a plan comes, how far a loop is in it, and the state that says so.

Passes are numbered through the run: number n is sub-epoch n % S of epoch n // S, since an epoch of
a trainer is one pass over its loader. A run knows where it started, which pass is set and whether
somebody named it, and what it is reading, or nothing:

- To name a pass sets it, and forgets a finished reading, so the pass may be read again.
- To begin takes the pass that is set, or the next one if that was read whole. It is refused if the
  rest of another pass would be lost. A pass that was over when the run was saved is empty.
- Each batch that the loop receives is a step. To move reads another plan from the next step on.
- A state is the cursor of the pass that is set and of the step in it, and the number of the pass.
  To load it starts there, and reads nothing.

A loader shares one run with all its samplers, and keeps it when a trainer rebuilds those. Nothing
here knows torch: `Given` finds the ranks and compares them, and a `Recorder` writes the ledger.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from indexplan import Cursor, IndexPlanError, Plan
from indexplan.errors import empty_batches, invalid
from indexplan_torch.again import Dealt
from indexplan_torch.arguments import check_state, count
from indexplan_torch.counting import refuse_under
from indexplan_torch.cuts import check_left

if TYPE_CHECKING:
    from indexplan_torch.recording import Recorder
    from indexplan_torch.running import Given

State = dict[str, Any]

STATE_VERSION = 1
EVALUATE = "; to evaluate, pass evaluation=True to PlanLoader, and gather after its last batch"


class Received(NamedTuple):
    """A batch that a loop received: its plan and rank, its pass, and its step."""

    plan: Plan
    rank: int
    where: tuple[int, int]
    step: int


class Perhaps(NamedTuple):
    """A number that the loader's sampler alone was given, as a script does.

    A trainer gives it to the batch sampler's too, and might mean another pass.
    """

    number: int
    named: Literal["by a trainer"] | None  # who had named the pass before


@dataclass(eq=False)
class Reading:
    """A pass that the loop is in: its steps, and how far the loop has come.

    If each step is read several times (`again`), every time counts as a step here. Always
    steps.start <= step <= steps.stop.

    Parameters
    ----------
    number : int
        The pass's number in the run.
    steps : range
        Its steps that were left when it began; empty if it was over.
    ran : (Plan, int) or None
        The plan and this process's rank as it began; the process group may have ended since.
    handed : bool
        Whether a sampler hands it out by itself: `step` is then the next that nobody has drawn.
    step : int
        The next step that the loop has not received.
    """

    number: int
    steps: range
    ran: tuple[Plan, int] | None = field(default=None, repr=False)
    handed: bool = False
    step: int = field(init=False)

    def __post_init__(self) -> None:
        self.step = self.steps.start

    @property
    def finished(self) -> bool:
        """Whether the loop has received all of it, even if it never asks for more."""
        return self.step == self.steps.stop

    @property
    def unread(self) -> bool:
        """Whether the loop has received nothing of it, and there is something to receive."""
        return self.step == self.steps.start < self.steps.stop


class Run:
    """Where a run started, which pass is set, and what the loop is reading.

    Parameters
    ----------
    given : Given
        The arguments; frozen. Replaced when the run moves to another plan, or a trainer says more.

    Attributes
    ----------
    plan : Plan
        The plan from where the run started, with the world_size that ran when it was last asked.
    saved_in : int or None
        The pass that the loop was in when the state was saved; None without a state.
    dealt : int
        How many times the first step had been read before.
    unread : bool
        Whether the start is in the middle of a pass that the loop has not continued yet.
    number : int
        The pass that is set.
    named : "by a user", "by a trainer", Perhaps or None
        Who has named it since the last pass began, if anybody. A Perhaps is not set yet.
    told : int or None
        The number that a trainer gave last; None before its first, and after a state is loaded.
    reading : Reading or None
        The pass that the loop is in, or has read. None before the first pass, and when `set_epoch`
        names a finished one again.
    warned : set of str
        Which warnings of passes that were left were given, as one of each kind is enough.
    recorder : Recorder, False or None
        Writes the run's ledger. False continues without the ledger that a state names.
    """

    def __init__(self, given: Given) -> None:
        self.given = given
        self.told: int | None = None
        self.warned: set[str] = set()
        self.recorder: Recorder | Literal[False] | None = None
        # Where it stood when it moved, for ranks to compare when the next pass begins; () where it
        # starts or has loaded a state, and None once they have compared.
        self._came_from: tuple[int, ...] | None = ()
        self._start(given.plan)
        if given.rank is not None or given.world_size is not None:
            self.running()  # wrong arguments can be refused at once

    def _start(self, plan: Plan, saved_in: int | None = None, dealt: int = 0) -> None:
        """Start where a plan does, which may have been resumed from a state; read nothing."""
        self.plan, self.saved_in, self.dealt = plan, saved_in, dealt
        self._number, self.unread = self.first, bool(plan.start.step or dealt)
        self.named: Literal["by a user", "by a trainer"] | Perhaps | None = None
        self.reading: Reading | None = None

    @property
    def first(self) -> int:
        """The number of the pass that the start is in."""
        return self.over.stop

    @property
    def over(self) -> range:
        """The passes that were over when the run was saved, with nothing left to read.

        They are the earlier passes of the epoch in which it was saved, and its own pass if the run
        was at its end, as a loop may start again with the epoch that it was stopped in. Passes of
        earlier epochs can't be read.
        """
        start, parts = self.plan.start, self.plan.sub_epochs
        first = start.epoch * parts + start.sub_epoch
        last = first if start.step or self.dealt else first - 1
        last = last if self.saved_in is None else min(last, self.saved_in)
        return range(last - last % parts, first)

    @property
    def alone(self) -> bool:
        """Whether no other loader may draw: a PlanLoader is resumed, prepared or has a ledger."""
        start, given = self.plan.start, self.given
        resumed = self.saved_in is not None or (start.epoch, start.position) != (0, 0)
        reads = given.prepared or given.evaluation or bool(self.recorder)
        return given.counted and (resumed or reads)

    def running(self) -> tuple[Plan, int]:
        """Return the plan with its world_size filled in, and this process's rank.

        Raises
        ------
        IndexPlanError
            If the plan's world_size is not the running one.
        """
        self.plan, rank = self.given.running(self.plan)
        return self.plan, rank

    def _ran(self) -> tuple[Plan, int]:
        """Return the plan and the rank that the steps of the current pass are counted with."""
        return (self.reading and self.reading.ran) or self.running()

    # --- which pass is next

    @property
    def number(self) -> int:
        """The pass that is set; a script's number is, as no trainer has given it since."""
        if isinstance(self.named, Perhaps):
            self._name(self.named.number, "by a trainer")  # else a later one would not count
        return self._number

    @property
    def coming(self) -> int:
        """The number of the pass that would begin now."""
        number, reading = self.number, self.reading  # in this order: the first may forget the other
        read = reading is not None and reading.finished and reading.number == number
        return number + (read and not self.given.pinned)

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
        if number in self.over:
            return self._place(self.first)
        if number < self.first:
            raise self._finished(number)
        return self._place(number)

    def _finished(self, number: int) -> IndexPlanError:
        """Return the error of a loop that begins with the run's first epoch after a resume."""
        parts = self.plan.sub_epochs
        first = self.first // parts
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
        self._name(count("epoch", number), "by a user")

    def _name(self, number: int, named: Literal["by a user", "by a trainer"]) -> None:
        self.named = named
        if self.given.pinned:
            return
        self._number = number
        reading = self.reading
        if reading is not None and reading.finished:
            if reading.number not in self.over:
                self.unread = False
            self.record()
            self.reading = None  # a finished pass that is named again is read again

    def set_epoch_from_trainer(self, number: int, *, perhaps: bool = False) -> None:
        """Set the next pass, by the number that a trainer gives it.

        With `perhaps`, a script may have given it. If a trainer would mean another pass by it, it
        is a script's, as `set_epoch` takes it, unless it comes once more before the run is asked
        for anything.

        A pass that a user has named stays. Else a number never takes the loader back inside a fit,
        where passes may be shorter than the trainer's epochs: a pass that the loop is in is
        continued. One no larger than the last begins a new fit, and is taken as it is.

        Fabric's number counts how often its loader was asked for batches, whatever was loaded since
        it was made. So the first number after a load says nothing if it is below the state's pass,
        or above the one that may follow it, and the next ones count from there.

        Raises
        ------
        IndexPlanError
            If the number is negative or not an integer; if a pass that another loader draws would
            have to be continued; or if that loader has drawn another pass before the first number
            came, as workers do where Lightning starts them before it names the pass of a resume.
        """
        number, drawn = count("epoch", number), self.reading
        drawn = None if self.told is not None or perhaps else drawn
        if drawn and drawn.handed and drawn.number != number:
            raise IndexPlanError(
                "a trainer's first set_epoch",
                "must come before batches of a plan's sampler are drawn, or name their pass",
                f"set_epoch({number}) after batches of pass {drawn.number}",
                "use PlanLoader(dataset, plan), which starts workers with its first batch",
            )
        if isinstance(self.named, Perhaps):
            self.named = self.named.named
        if self.named and number == self.told:  # some give it twice
            return
        if self.named == "by a user":
            self.told = number
            return
        meant, reading, last = self._meant(number), self.reading, self.told
        stays = last is not None and last < number and meant == self.coming
        inside = not (self.given.pinned or reading is None or reading.finished)
        continues = stays and inside and self.named is None
        if perhaps and (meant != number or continues):
            self.named = Perhaps(number, self.named)
            return
        if continues:
            self.move(self.given.plan)
        self.told = number
        self._name(meant, "by a trainer")

    def _meant(self, number: int) -> int:
        """Return the pass that a trainer means by a number, which never is an earlier one."""
        last = self.told
        if last is None:
            saved_in = self.first if self.saved_in is None else self.saved_in
            follows = self.saved_in is None or number <= self.first + self.unread
            return number if number >= saved_in and follows else self.coming
        if last < number:
            number = min(number, self.number + number - last)  # if it counts on after a load
            return max(number, self.coming)
        return number

    def set_coming(self) -> None:
        """Set the pass that would begin now, for a trainer that asks for its length first."""
        self._number = self.coming

    def keep_ledger(self, ledger: Any) -> None:
        """Write a ledger, starting with the next pass; False leaves that of a state.

        A Recorder is that of an earlier loader of the run.
        """
        if ledger is False:
            self.recorder = False
            return
        for name in ("partial", "evaluation"):
            if getattr(self.given, name):
                cure = "leave one of them out, as a ledger has every step of a pass"
                raise invalid(name, "False with a ledger", True, cure)
        from indexplan_torch.recording import RECORDED, Recorder

        self.recorder = ledger if isinstance(ledger, Recorder) else Recorder(ledger)
        RECORDED.add(self)

    # --- the pass that the loop is in

    def begin(self, *, handed: bool = False) -> Reading:
        """Start a pass over the sub-epoch that is set, or over the next if that one is finished.

        Parameters
        ----------
        handed : bool
            Whether a sampler hands it out by itself.

        Raises
        ------
        IndexPlanError
            If a rank would get an empty batch in it, which datasets and models don't accept; if an
            earlier pass was left early; or if ranks have different plans.
        """
        number = self._number = self.coming
        if number <= self.first and (self.first or self.unread):
            refuse_under("mmengine.runner.loops", "refuse_skipping")
        check_left(self, number, begins=True)
        self.named = None
        self.record()
        if number > self.first:
            self.unread = False
        if number in self.over:
            self.reading = Reading(number, range(0), handed=handed)
            return self.reading
        plan, rank = self.running()
        if self._came_from is not None:
            alike = {"pass": self.where, "ledger": bool(self.recorder)}
            alike |= {"moved at": self._came_from, "dealt": self.dealt}
            self.given.check_ranks(plan, rank, **alike)
            self._came_from = None  # unless they differ: then a later pass compares them again
        account = plan.account(*self.where)
        if account.num_steps and not account.min_batch_size and not self.given.evaluation:
            raise empty_batches(plan.world_size, plan.remainder, *self.where, or_else=EVALUATE)
        steps = self.steps(number)
        if self.recorder and steps:
            self._begin_in_ledger(self.recorder, plan, rank)
        self.reading = Reading(number, steps, (plan, rank), handed)
        return self.reading

    def _begin_in_ledger(self, recorder: Recorder, plan: Plan, rank: int) -> None:
        goes_on = self.reading is None and self.unread and self.number == self.first
        if goes_on and not recorder.begins:  # after an error, which may be this rank's alone
            recorder.refuse_followed()
            return
        begins = plan.replace(world_size=plan.world_size).resume(self._cursor(self.number, None))
        recorder.begin(begins, rank, self.given.together(), all_begin=self.given.compare)

    def record(self, begun: Reading | None = None) -> None:
        """Record what the loop has received in the ledger, if there is one.

        Of a pass that has `begun`, unless a later one has.
        """
        reading = self.reading
        if not self.recorder or reading is None or not reading.steps:
            return
        if begun in (None, reading):
            step = self.plan_step(reading.number, reading.step)
            self.recorder.record(self._place(reading.number), step)

    @property
    def left(self) -> Reading | None:
        """The pass that the loop is in, or continues after a resume."""
        reading = self.reading
        if not self.unread or (reading is not None and reading.number not in self.over):
            return reading
        return Reading(self.first, self.steps(self.first))

    def steps(self, number: int) -> range:
        """Return the remaining steps of a pass, as the loop counts them: each `again` times.

        If the pass was over when the run was saved, return those of the pass that continues it.
        """
        plan, rank = self.running()
        where, again = self._at(number), self.given.again
        if self.given.evaluation:
            num_read = int(np.count_nonzero(plan.batch_sizes(*where, rank=rank)))
            return range(plan.steps(*where).start, plan.steps(*where).start + num_read)
        steps, dealt = plan.steps(*where), self.dealt if where == self._place(self.first) else 0
        return range(steps.start * again + dealt, steps.stop * again)

    def plan_step(self, number: int, step: int) -> int:
        """Return the plan's step of a step of a pass, as the loop counts them."""
        if not self.given.evaluation:
            return step // self.given.again
        plan, rank = self._ran()
        steps = plan.steps(*self._at(number))
        read = np.flatnonzero(plan.batch_sizes(*self._at(number), rank=rank))
        at = step - steps.start
        return steps.start + int(read[at]) if at < len(read) else steps.stop

    def forget(self) -> None:
        """Forget the current pass, because a trainer only looked at some of its batches."""
        self.reading = None

    @property
    def batch_size(self) -> int:
        """The size of the largest batch in the pass that is set, in units."""
        return self.running()[0].account(*self.where).max_batch_size or 0

    def length(self) -> int:
        """Return the number of steps in the pass that is set, including finished ones."""
        refuse_under("transformers.trainer", "refuse_counting", self)
        return 0 if self.number in self.over else self.steps(self.number).stop

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
        number, reading = self.number, self.reading
        if reading is not None and reading.number == number:
            return reading.step
        return self.plan.start.step if number == self.first else 0

    def _standing(self) -> tuple[int, int | None]:
        """Return the pass that is set, and the step in it (None if nothing was read of it)."""
        check_left(self, self.number)
        reading = self.reading
        if reading is None or reading.number != self.number:
            return self.number, None
        self._check_counted(reading)
        if reading.unread:
            return reading.number, None
        if self.given.evaluation and not reading.finished:
            raise IndexPlanError(
                "a loader with evaluation=True",
                "must be asked for a state or cursor between two passes, as ranks stand at other "
                "steps inside one",
                f"step {reading.step} of {reading.steps.stop}",
                "save before or after the evaluation",
            )
        return reading.number, reading.step

    def _check_counted(self, reading: Reading) -> None:
        """Raise if nobody knows what the loop has received of a pass."""
        if reading.handed:
            raise IndexPlanError(
                "a sampler",
                "must not be asked for a cursor or step_size inside a pass, as it knows what was "
                "drawn, not what the loop has received",
                "a pass that another loader draws",
                "loop over a PlanLoader, or use the state of torchdata's StatefulDataLoader; at "
                "the end of a pass, name the next with set_epoch first",
            )

    def _cursor(self, number: int, step: int | None) -> Cursor:
        plan, _ = self._ran()
        if number in self.over:
            return plan.start
        if step is None:
            step = self.steps(number).start // self.given.again
        else:
            step = self.plan_step(number, step)
        return plan.cursor(*self._place(number), step=step)

    def received(self, name: str, otherwise: str) -> Received:
        """Return the batch that the loop received last; without one, raise, naming `name`."""
        plan, rank = self._ran()
        reading = self.reading
        if reading is None or reading.step == reading.steps.start:
            raise IndexPlanError(
                name,
                "must be asked for inside the loop, after a batch",
                "none before it",
                otherwise,
            )
        self._check_counted(reading)
        step = self.plan_step(reading.number, reading.step - 1)
        return Received(plan, rank, self._place(reading.number), step)

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
        given = replace(self.given, plan=plan)
        rest = plan.resume(Cursor.from_dict(state["cursor"]))
        dealt = self._dealt(given, rest, state)
        here, there = ((each.epoch, each.position) for each in (rest.start, plan.start))
        ahead = jump and there > here
        rest, dealt = (plan, 0) if ahead else (rest, dealt)
        if jump:  # else an error may have been this rank's alone
            self.record()
        if ahead or plan != self.given.plan:
            self._came_from = self._came_from or (*here, state.get("dealt", {}).get("times", 0))
            if self.recorder:
                self.recorder.change(plan.start if ahead else None)
        self.given, named = given, self.named
        self._start(rest, standing[0], dealt)
        self.named = named  # as what a user has named stays, whatever a trainer's number says

    def goes_on(self, begun: Reading) -> bool:
        """Return whether the loop that has begun a pass still reads it.

        Else the run has moved, or has loaded a state.

        Raises
        ------
        IndexPlanError
            If another loop has begun since, and the pass is not read whole.
        """
        if begun.finished or self.reading is begun:
            return True
        if self.reading is not None:
            raise IndexPlanError(
                "a loader",
                "must be read by one loop at a time",
                "a loop that reads on after another has begun",
                "leave the first with break, or make a loader for each, as zip needs",
            )
        return False

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
        if self.recorder:
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
        if self.given.again == 1:
            return state
        if step is None or number in self.over:
            step = self.steps(number).start
        times = step % self.given.again
        if times:
            plan, _ = self._ran()
            units = plan.step_size(cursor.epoch, cursor.sub_epoch, step=cursor.step)
            state["dealt"] = Dealt(times, self.given.again, units)._asdict()
        return state

    def load_state_dict(self, state: State) -> None:
        """Resume from a state; world size and batch size may have changed.

        Raises
        ------
        IndexPlanError
            If it is not a state, or belongs to another order or number of sub-epochs; or if it was
            saved between two repeats of a step (see `again`), and the step can't continue with the
            new `again` or global batch.
        """
        rule, cure = "must be what state_dict returned", "save state_dict() in the checkpoint, and "
        cure += "load that"
        fields = {"version", "cursor", "pass"}
        check_state(state, fields, STATE_VERSION, rule, cure, more=None)
        cursor = Cursor.from_dict(state["cursor"])
        saved_in = count("a state's pass", state["pass"])
        if self.given.pinned:
            return  # an evaluation that reads the same in every epoch, wherever the run stood
        plan = self.given.plan.resume(cursor)
        dealt = self._dealt(self.given, plan, state) if "dealt" in state else 0
        if self.recorder:
            if not self.recorder.followed:  # else what was read since is void
                self.record()
            skips = state.get("skips", False) is True
            self.recorder.load(state.get("ledger"), plan.start if skips else None)
        elif self.recorder is None and state.get("ledger") is not None:
            raise IndexPlanError(
                "ledger",
                "must be passed to the loader, as the state is that of a run which keeps one",
                "none",
                "pass ledger=, where the run's file is, or ledger=False to go on without it for "
                "good",
            )
        self.told, self._came_from = None, ()
        self._start(plan, saved_in, dealt)

    def _dealt(self, given: Given, resumed: Plan, state: State) -> int:
        """Return how many times a resumed plan's first step was already read, by a state."""
        plan, start = given.running(resumed)[0], resumed.start
        if "dealt" not in state:
            return 0
        where = start.epoch, start.sub_epoch
        there = start.step in plan.steps(*where)
        units = plan.step_size(*where, step=start.step) if there else 0
        return Dealt.of(state["dealt"]).under(given.again, units)
