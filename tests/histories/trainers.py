"""Drawn histories of the calls that trainers make of a loader, in the orders in which they do.

Each rule is a trainer's way: what it calls is in `docs/trainers.md` and in its source.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

import indexplan as ip
from indexplan_torch import PlanLoader
from indexplan_torch.run import Run
from tests.adapters.small import Identity, as_they_are
from tests.histories.loops import RANKS, Histories, Machine, plans

EVALUATED = ip.Plan(ip.Shuffle(11, seed=2), batch_size=4)
CALLS = st.lists(st.sampled_from(["name", "name", "iterate", "count"]), min_size=1, max_size=4)


class TrainerHistories(Histories):
    """A PlanLoader under a trainer that asks the loader itself for its batches."""

    @property
    def run(self) -> Run:
        """What the loader and its samplers share."""
        run: Run = self.named.run
        return run

    def begin_on(self, rank: int, world_size: int) -> None:
        """Make loaders and models."""
        super().begin_on(rank, world_size)
        whole = EVALUATED.replace(world_size=world_size)
        ranks = {"rank": rank, "world_size": world_size}
        self.evaluation = PlanLoader(Identity(11), EVALUATED, collate_fn=as_they_are, **ranks)
        self.evaluated = [b.tolist() for b in whole.batches(0, rank=rank)]

    # --- rules

    @rule(further=st.integers(-1, 2), calls=CALLS, by=st.booleans(), counts=st.booleans())
    def a_trainer_begins_an_epoch(
        self, further: int, calls: list[str], by: bool, counts: bool
    ) -> None:
        """Lightning: `iter`, `set_epoch`, `len`; Hugging Face and Composer name the pass first.

        Trainers name it by `loader.batch_sampler.sampler`, or by `loader.sampler` first, or never.
        One that `counts` its own epochs knows nothing of passes, as Lightning around
        CombinedLoader.
        """
        number = max(0, ((self.model.told or 0) if counts else self.model.set) + further)
        for call in calls:
            if call == "iterate":
                self.it_is_asked_for_batches()
            elif call == "count":
                self.its_length_is_asked_for()
            else:
                if by:
                    self.named.sampler.set_epoch(number)
                self.named.batch_sampler.sampler.set_epoch(number)
                self.a_trainer_named(number)

    def a_trainer_named(self, number: int) -> None:
        """Tell the model of a pass that a trainer named."""
        now = self.model.now
        inside = now is not None and not now.whole
        self.model.trainer_number(number)
        if inside and self.model.now is None and self.expected is not None:
            self.expected = None  # the loop that is open begins with the rest
            self.moved_in = now.number if now is not None else None

    @rule(num_passes=st.integers(1, 2), num_steps=st.integers(1, 3))
    def its_passes_are_shorter_than_epochs(self, num_passes: int, num_steps: int) -> None:
        """CombinedLoader cycles it; the trainer's next epochs come in the middle of its passes."""
        self.a_trainer_begins_an_epoch(0, ["name"], by=True, counts=False)
        for _ in range(2):
            for _ in range(num_passes):
                self.the_pass_is_read()
            self.read(num_steps)
            self.the_loop_is_left()
            self.a_trainer_begins_an_epoch(1, ["name", "name"], by=True, counts=True)

    @rule(num_steps=st.integers(1, 3))
    def it_is_looked_into(self, num_steps: int) -> None:
        """Lightning's sanity check: what it read is forgotten, and read whole later."""
        self.the_loop_is_left()
        self.read(num_steps)
        self.the_loop_is_left()
        self.run.forget()
        self.model.forget()

    @rule(num_steps=st.integers(1, 3), stays=st.booleans())
    def a_limit_cuts_its_passes(self, num_steps: int, stays: bool) -> None:
        """`limit_train_batches` and its like, which Lightning's callback tells the loader of."""
        self.limit(1)
        for _ in range(2):
            self.read(num_steps)
            self.the_loop_is_left()
            self.a_trainer_begins_an_epoch(1, ["iterate", "name"], by=True, counts=False)
        self.read(1)
        self.limit(1 if stays else None)

    def limit(self, limit: float | None) -> None:
        """Tell the loader of a limit, or of none."""
        self.run.given = replace(self.run.given, limit=limit)
        self.model.limited = limit is not None

    @rule(num_steps=st.integers(1, 3))
    def a_loop_breaks_each_time(self, num_steps: int) -> None:
        """Trainers that end an epoch early, and name no pass."""
        for _ in range(2):
            self.the_loop_is_left()
            self.read(num_steps)
        self.the_loop_is_left()

    @precondition(lambda self: not self.model.gone(self.model.set))  # whose batch size is asked for
    @rule()
    def it_is_made_again(self) -> None:
        """Lightning and Fabric make a loader again, around a batch sampler made of its view."""
        self.the_loop_is_left()
        given = self.named.batch_sampler
        again = type(given)(given.sampler, batch_size=given.batch_size, drop_last=False)
        self.options["plan"] = self.plan  # if the run has moved
        self.loader = self.wrapped(PlanLoader(**{**self.options, "batch_sampler": again}))

    def make(self, plan: ip.Plan, rank: int, world_size: int) -> Any:
        """Make a loader."""
        data = Identity(plan.order.num_samples)
        self.options = {"dataset": data, "plan": plan, "collate_fn": as_they_are, **self.workers}
        self.options["again"] = self.again
        return self.wrapped(PlanLoader(**self.options, rank=rank, world_size=world_size))

    def wrapped(self, loader: PlanLoader) -> Any:
        """The trainer's own around a loader, if it has one."""
        return loader

    @rule()
    def it_goes_on_from_its_own_state(self) -> None:
        """Composer's second `fit`: what the loader says is loaded at once."""
        self.the_loop_is_left()
        saved = self.model.saved()
        if saved is None:
            self.refused(self.loader.state_dict)
            return
        self.loader.load_state_dict(self.state_dict())
        self.model.load(saved)

    @rule(number=st.integers(0, 9), num_steps=st.none() | st.integers(0, 2))
    def an_evaluation_comes_between(self, number: int, num_steps: int | None) -> None:
        """Composer's evaluation: whatever number it is given, it reads the same epoch."""
        run = self.evaluation.run
        run.given = replace(run.given, pinned=True)
        self.evaluation.set_epoch(number)
        assert self.evaluated[:num_steps] == list(islice(self.evaluation, num_steps))


class InStep(Machine):
    """Two loaders of one process, alone or in step, as `zip` and CombinedLoader read them."""

    each_a: ClassVar[type[Histories]] = Histories

    @classmethod
    def with_workers(cls, num_workers: int) -> type[InStep]:
        """Return the same histories over loaders that have workers."""
        return type(cls.__name__, (cls,), {"each_a": Histories.with_workers(num_workers)})

    @initialize(plans=st.tuples(plans(), plans()), ranks=RANKS)
    def begin(self, plans: Any, ranks: tuple[int, int]) -> None:
        """Two runs begin."""
        self.loops = [self.each_a(), self.each_a()]
        for loop, plan in zip(self.loops, plans, strict=True):
            loop.begin(plan, ranks)

    @rule(which=st.integers(0, 1), num_steps=st.none() | st.integers(1, 3))
    def one_is_read(self, which: int, num_steps: int | None) -> None:
        """A loop over one, or an evaluation while the other loop stands still."""
        self.loops[which].read(num_steps)

    @rule(num_steps=st.none() | st.integers(1, 3))
    def both_are_read_in_step(self, num_steps: int | None) -> None:
        """The shortest ends both loops; the longer has given a batch more if it comes first."""
        while num_steps is None or num_steps > 0:
            num_steps = None if num_steps is None else num_steps - 1
            for loop in self.loops:
                loop.read(1)
                if loop.batches is None:  # its end, or refused
                    self.both_are_left()
                    return

    @rule()
    def both_are_left(self) -> None:
        """`break`."""
        for loop in self.loops:
            loop.the_loop_is_left()

    @rule(number=st.integers(0, 4), which=st.sampled_from([(0,), (1,), (0, 1)]))
    def a_pass_is_named(self, number: int, which: tuple[int, ...]) -> None:
        """Of one loader, or of both."""
        for each in which:
            self.loops[each].a_user_names_a_pass(number)

    @rule()
    def both_are_saved(self) -> None:
        """States of both."""
        for loop in self.loops:
            loop.a_state_is_saved()

    @rule(newest=st.integers(0, 3))
    def both_are_loaded(self, newest: int) -> None:
        """One of the newest states of each."""
        for loop in self.loops:
            if loop.states:
                loop.a_state_is_loaded(-1 - newest, None)
