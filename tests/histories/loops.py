"""Drawn histories of a loop over a loader, each batch of which is held against `passes.Loop`.

A history is a Hypothesis state machine: what users and trainers do with a loader is a rule, in the
order in which they do it. After every rule the loader has given what the model says, or has refused
where the model says that it has to.
"""

from __future__ import annotations

import pickle
import warnings
from itertools import islice
from typing import Any, ClassVar

from hypothesis import HealthCheck, assume, note, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from torch.utils.data import DataLoader

import indexplan as ip
from indexplan.partition.remainders import REMAINDERS
from indexplan_torch import PlanBatchSampler, PlanLoader
from tests.adapters.small import Identity, as_they_are
from tests.histories.passes import Loop, LoopOverASampler, Saved
from tests.histories.stories import Given, Story
from tests.support.planned import planned

NUM_PASSES = 8  # of these passes are named
MOST_RANKS = 3
SIZES = st.integers(6, 40)


@st.composite
def plans(draw: st.DrawFn) -> ip.Plan:
    """A plan for any number of ranks, with passes of a few steps that may differ in number."""
    sizes = st.tuples(st.just("batch_size"), st.integers(2, 5))
    sizes |= st.tuples(st.just("global_batch_size"), st.integers(4, 9))
    plan = planned(
        ip.Shuffle(draw(SIZES), seed=draw(st.integers(0, 3))),
        **dict([draw(sizes)]),
        world_size=MOST_RANKS,
        sub_epochs=draw(st.integers(1, 3)),
        remainder=draw(st.sampled_from(["spread", *REMAINDERS])),
    )
    return plan.replace(world_size=None)


RANKS = st.integers(1, MOST_RANKS).flatmap(
    lambda ranks: st.tuples(st.integers(0, ranks - 1), st.just(ranks))
)


class Machine(RuleBasedStateMachine):
    """Histories that Hypothesis draws, and makes short where one fails."""

    with_workers: ClassVar[Any]  # returns the same histories over loaders that have so many

    @classmethod
    def live(cls, story: Story, given: Given) -> None:
        """Run a hundred examples, which are those of a seed."""
        workers = cls.with_workers(given.workers)
        run_state_machine_as_test(
            seed(story.number)(type(cls.__name__, (workers,), {})),
            settings=settings(
                max_examples=100,
                stateful_step_count=given.steps or 25,
                database=None,
                report_multiple_bugs=False,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
        story.count("", "loops", 100)


class Histories(Machine):
    """A PlanLoader in a loop of the user's own, or of a trainer that leaves it as it is."""

    workers: ClassVar[dict[str, Any]] = {}
    of_a_loop: Any = Loop
    eager_with_workers = False
    moves = True  # whether its run can move to another plan
    eager = False  # whether a pass begins when its iterator is asked for, not its first batch
    moved_in: int | None = None  # the pass of the open loop, whose run has moved since

    @classmethod
    def with_workers(cls, num_workers: int) -> type[Histories]:
        """Return the same histories over loaders that have workers."""
        if not num_workers:
            return cls
        eager = cls.eager_with_workers
        return type(cls.__name__, (cls,), {"workers": {"num_workers": num_workers}, "eager": eager})

    def make(self, plan: ip.Plan, rank: int, world_size: int) -> Any:
        """Make a loader."""
        data = Identity(plan.order.num_samples)
        ranks = {"rank": rank, "world_size": world_size}
        options = {"collate_fn": as_they_are, "again": self.again}
        return PlanLoader(data, plan, **options, **self.workers, **ranks)

    @property
    def named(self) -> Any:
        """What a user tells of passes."""
        return self.loader

    def teardown(self) -> None:
        """Let go of the loader, whose workers end here.

        If its iterator were left to the garbage collector, that would finalize the iterator and the
        pipes of its queues in one go: a pipe that the iterator's own thread is closing would be
        closed a second time, when its number may be another file's.
        """
        self.batches = self.expected = self.loader = None

    @property
    def reads_on(self) -> bool:
        """Whether nothing may be said of another pass now, as workers are in one."""
        return False

    @property
    def may_leave(self) -> bool:
        """Whether a loop may end in the middle of a pass."""
        return True

    # --- rules

    @initialize(plan=plans(), ranks=RANKS)
    def begin(self, plan: ip.Plan, ranks: tuple[int, int]) -> None:
        """A run begins."""
        self.plan = plan
        self.again = 1 + (plan.global_batch_size or 0) % 3  # how often each step is dealt
        self.states: list[tuple[Any, Saved]] = []
        self.num_out = 0  # samples that are left out
        self.begin_on(*ranks)

    def begin_on(self, rank: int, world_size: int) -> None:
        """Make a loader and its model."""
        plan = self.plan.replace(world_size=world_size)
        for number in range(NUM_PASSES + 2):  # else an error in which the model takes no part
            account = plan.account(*divmod(number, plan.sub_epochs))
            assume(account.min_batch_size or not account.num_steps)
        self.loader = self.make(self.plan, rank, world_size)
        self.model = self.of_a_loop(plan, rank, self.again)
        self.batches: Any = None
        self.expected: Any = None  # of the iterator that is open, once it has begun

    @precondition(lambda self: not self.reads_on)
    @rule(number=st.integers(0, NUM_PASSES))
    def a_user_names_a_pass(self, number: int) -> None:
        """`loader.set_epoch`, as plain loops, HF Trainer and Composer do."""
        self.named.set_epoch(number)
        self.model.name(number)

    @precondition(lambda self: not self.reads_on)
    @rule(further=st.integers(-1, 1))
    def a_user_names_a_pass_nearby(self, further: int) -> None:
        """The pass that the loop is in, the one before, or the next."""
        self.a_user_names_a_pass(max(0, self.model.set + further))

    @rule()
    def it_is_asked_for_batches(self) -> None:
        """`iter(loader)`, from which nothing may follow before the first batch is asked for."""
        self.batches = self.expected = self.moved_in = None
        if not self.eager:
            self.batches = iter(self.loader)
        else:
            self.begins(lambda: iter(self.loader))

    @precondition(lambda self: self.may_leave)
    @rule()
    def the_loop_is_left(self) -> None:
        """`break`."""
        self.batches = self.expected = None

    @rule(num_steps=st.integers(1, 4))
    def some_steps_are_read(self, num_steps: int) -> None:
        """A loop reads on."""
        self.read(num_steps)

    @rule()
    def the_pass_is_read(self) -> None:
        """A loop reads to the end."""
        self.read(None)

    def read(self, num_steps: int | None) -> None:
        """Read some steps, or to the end, from the iterator that is open."""
        if self.batches is None:
            self.it_is_asked_for_batches()
        got: list[Any] = []
        begins = self.expected is None
        if begins and (
            self.batches is None or not self.begins(lambda: next(self.batches, None), got)
        ):
            return
        left = None if num_steps is None else num_steps - len(got)
        got += islice(self.batches, left)
        wanted = self.expected if num_steps is None else self.expected[:num_steps]
        assert wanted == got, (wanted, got)
        self.expected = self.expected[len(got) :]
        self.model.receive(len(got))
        if num_steps is None or len(got) < num_steps:
            self.at_end()

    def begins(self, how: Any, got: list[Any] | None = None) -> bool:
        """Begin the pass, with a first batch perhaps; return False if it was rightly refused.

        A loop whose run has moved ends if another pass was named than its own.
        """
        moved_in, self.moved_in = self.moved_in, None
        if moved_in not in (None, self.model.set):
            assert how() is None
            self.batches = None
            return False
        coming = self.model.next
        warns = self.model.warns(coming) and not self.model.loses(coming)
        self.expected = self.model.begin()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found = how()
            except ip.IndexPlanError as error:
                assert self.expected is None, error  # noqa: PT017 (the model says which)
                note(f"refused: {error}")
                self.batches = None
                return False
        assert self.expected is not None, "not refused"
        told = [str(each.message) for each in caught if issubclass(each.category, UserWarning)]
        assert warns == any("left after" in each for each in told), told
        if got is None:
            self.batches = found
        elif found is not None:
            got.append(found)
        return True

    def at_end(self) -> None:
        """The loop has seen the end of its pass."""
        self.batches = self.expected = None

    @rule()
    def its_length_is_asked_for(self) -> None:
        """`len(loader)`."""
        if self.model.gone(self.model.set):
            self.refused(lambda: len(self.loader))
        else:
            assert len(self.model) == len(self.loader)

    @precondition(lambda self: not self.eager)  # else a sampler's counts what workers have drawn
    @rule()
    def a_state_is_saved(self) -> None:
        """`loader.state_dict()`, and a checkpoint of it."""
        saved = self.model.saved()
        if saved is None:
            self.refused(self.loader.state_dict)
            return
        state = pickle.loads(pickle.dumps(self.state_dict()))  # noqa: S301
        assert saved.cursor == ip.Cursor.from_dict(self.cursor_in(state))
        self.states.append((state, saved))

    def state_dict(self) -> Any:
        """The loader's state, which may tell of a limit, as the next pass may too."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*the trainer's limit ends each pass")
            return self.loader.state_dict()

    def cursor_in(self, state: Any) -> Any:
        """The cursor of a state."""
        return state["cursor"]

    def refused(self, call: Any) -> None:
        """What the model refuses, the loader has to refuse."""
        try:
            got = call()
        except ip.IndexPlanError as error:
            note(f"refused: {error}")
        else:
            raise AssertionError(f"not refused: {got}")

    @precondition(lambda self: self.moves)
    @rule(size=st.integers(2, 9), leaves_out=st.booleans())
    def the_run_moves_to_another_plan(self, size: int, leaves_out: bool) -> None:
        """`loader.move(plan)`: another batch size, or a sample less, from the next step on."""
        saved = self.model.saved()
        assume(saved is None or not saved.dealt)  # else the step has to have as many units
        kind = "batch_size" if self.plan.global_batch_size is None else "global_batch_size"
        plan = self.model.given
        try:
            if leaves_out and saved is not None and self.num_out < 3:
                order = ip.Without(plan.order, [self.num_out], since=saved.cursor)
                plan = plan.replace(order=order)
            plan = plan.replace(**{kind: size})
            plan.resume(plan.start if saved is None else saved.cursor)
            for number in range(NUM_PASSES + 2):  # "drop" may leave nothing to read
                plan.account(*divmod(number, plan.sub_epochs))
        except ip.IndexPlanError as error:
            note(f"no such plan: {error}")
            return
        if saved is None:
            self.refused(lambda: self.named.move(plan.replace(world_size=None)))
            return
        self.named.move(plan.replace(world_size=None))
        if plan.order != self.plan.order:
            self.num_out += 1
            self.states.clear()  # of the run as it would have gone on
        # between repeats of a step, which has to have as many units
        self.states = [each for each in self.states if not each[1].dealt]
        begun = self.model.now
        self.model.move(plan, saved)
        self.plan = plan.replace(world_size=None)
        if self.expected:  # the loop is open, and has not received all of its pass
            self.expected = None
            self.moved_in = None if begun is None else begun.number

    @precondition(lambda self: self.states)
    @rule(which=st.integers(0, 10**6), ranks=st.none() | RANKS)
    def a_state_is_loaded(self, which: int, ranks: tuple[int, int] | None) -> None:
        """`loader.load_state_dict(state)`, of this loader or of a new one on any ranks."""
        state, saved = self.states[which % len(self.states)]
        if ranks is not None:
            self.begin_on(*ranks)
        self.loader.load_state_dict(state)
        self.model.load(saved)
        self.batches = self.expected = None


class InADataLoader(Histories):
    """A PlanBatchSampler in torch's DataLoader, which tells where the run stands between passes."""

    eager_with_workers = True
    moves = False
    of_a_loop = LoopOverASampler

    def make(self, plan: ip.Plan, rank: int, world_size: int) -> Any:
        """Make a loader; it is the sampler that has a cursor."""
        batches = PlanBatchSampler(plan, rank=rank, world_size=world_size, again=self.again)
        return _Plain(
            Identity(plan.order.num_samples),
            batch_sampler=batches,
            collate_fn=as_they_are,
            **self.workers,
        )

    def begin_on(self, rank: int, world_size: int) -> None:
        """Make a loader and its model."""
        self.again = 1
        super().begin_on(rank, world_size)
        self.model.ahead = 2 * self.workers.get("num_workers", 0)  # torch's prefetch_factor

    @property
    def named(self) -> Any:
        """What a user tells of passes."""
        return self.loader.batch_sampler


class _Plain(DataLoader[Any]):
    """A DataLoader whose state is the cursor of its batch sampler."""

    def state_dict(self) -> Any:
        """Where the batch sampler stands, and in which pass."""
        sampler = self.batch_sampler
        return {"version": 1, "cursor": sampler.cursor.to_dict(), "pass": sampler.epoch}

    def load_state_dict(self, state: Any) -> None:
        """Load the state of the batch sampler."""
        self.batch_sampler.load_state_dict(state)
