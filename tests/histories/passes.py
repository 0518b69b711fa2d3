"""What a loop over a plan has received, and what it reads next: too simple to be wrong.

One rank's loop is a plan, the pass that is set, and the pass that it is in with the number of steps
that it has received. Whatever prefetches, samples or trains has to come to the same. What a step
holds is the plan's to say: tests/support/model.py is the oracle of that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import indexplan as ip


@dataclass
class Reading:
    """A pass that the loop is in: its number, its first step, and the steps [step, stop) left."""

    number: int
    first: int
    step: int
    stop: int

    @property
    def whole(self) -> bool:
        """Whether the loop has received all of it."""
        return self.step == self.stop

    @property
    def received(self) -> int:
        """How many steps the loop has received since it began."""
        return self.step - self.first


@dataclass(frozen=True)
class Saved:
    """What a state has to hold: a cursor, and the pass that the loop stood in.

    torchdata's also knows whether the loop had `seen_its_end`. Inside a turn, the step of the
    cursor was `dealt` before.
    """

    cursor: ip.Cursor
    number: int
    dealt: int = 0
    seen_its_end: bool = False


class Loop:
    """One rank's loop over the passes of a plan, numbered through all epochs.

    Parameters
    ----------
    plan : Plan
        With its world size.
    rank : int
    again : int
        How often each step is dealt in a row. Every time counts as a step.
    """

    def __init__(self, plan: ip.Plan, rank: int, again: int = 1) -> None:
        self.given = self.plan = plan
        self.rank, self.again = rank, again
        self.dealt = 0  # how often the first step was, before
        self.set = 0
        self.now: Reading | None = None
        self.stood: Reading | None = None  # in a pass when a state was saved, until it is read on
        self.read_before = range(0)  # passes of which nothing is left
        self.named = False  # whether a pass was named since the last began, or a state was loaded
        self.by_user = False  # and not by a trainer
        self.told: int | None = None  # the last number of a trainer, since a state was loaded
        self.stored: int | None = None  # the pass that a loaded state was saved in
        self.limited = False  # whether passes are left on purpose
        self.warned = False

    # --- what is told to it

    def name(self, number: int, *, by_user: bool = True) -> None:
        """A pass is named."""
        self.set, self.named, self.by_user = number, True, by_user
        if self.now is not None and self.now.whole:
            if self.now.number not in self.read_before:
                self.stood = None
            self.now = None

    def trainer_number(self, number: int) -> None:
        """A trainer gives a number, which never takes the loop back inside a fit.

        What a user has named stays. Fabric counts from 0 after a load, or on as if there were none.
        """
        told, last = number, self.told
        if self.named and number == last:
            return
        self.told = told
        if self.named and self.by_user:
            return
        if last is None and self.stored is not None:
            may_follow = self.start + (self.stood is not None)
            if not self.stored <= number <= may_follow:
                number = self.next
        elif last is not None and last < number:
            number = min(number, self.set + number - last)
            if number <= self.next:  # passes are shorter than its epochs
                if self.now is not None and not self.now.whole and not self.named:
                    self.move(self.given, self.state(self.now.number, self.now.step))
                number = self.next
        self.told = told
        self.name(number, by_user=False)

    def load(self, saved: Saved) -> None:
        """Go on where a loop stood, on these ranks."""
        self.told, self.stored = None, saved.number
        self.plan, self.dealt = self.given.resume(saved.cursor), saved.dealt
        start = self.start
        inside = saved.cursor.step or saved.dealt
        stood_in = start if inside else min(saved.number, start - 1)
        first = stood_in - stood_in % self.plan.sub_epochs
        self.read_before = range(first, start)
        self.set, self.named, self.now, self.stood = start, False, None, None
        if inside:
            steps = self.steps(start)
            self.stood = Reading(start, steps.start, steps.start, steps.stop)

    def move(self, plan: ip.Plan, saved: Saved) -> None:
        """Another plan is read from where the loop stands."""
        told, named, self.given = self.told, self.named, plan
        self.load(saved)
        self.told, self.named = told, named

    def forget(self) -> None:
        """What was received was only looked at."""
        self.now = None

    def receive(self, num_steps: int) -> None:
        """The loop has received steps."""
        if self.now is not None:
            self.now.step += num_steps

    # --- what it reads

    def number(self, epoch: int, sub_epoch: int) -> int:
        """The number of a pass."""
        return epoch * self.plan.sub_epochs + sub_epoch

    def place(self, number: int) -> tuple[int, int]:
        """The (epoch, sub_epoch) of a pass."""
        return divmod(number, self.plan.sub_epochs)

    @property
    def start(self) -> int:
        """The pass that the loaded state goes on with."""
        return self.number(self.plan.start.epoch, self.plan.start.sub_epoch)

    def gone(self, number: int) -> bool:
        """Whether a pass is of an epoch that the loaded state is past, so that naming it fails."""
        return number < self.start and number not in self.read_before

    def leaves_a_rank_out(self, number: int) -> bool:
        """Whether a rank would get an empty batch in a step of a pass."""
        if number in self.read_before:
            return False
        account = self.plan.account(*self.place(number))
        return bool(account.num_steps) and not account.min_batch_size

    def batches(self, number: int) -> list[Any]:
        """What is left of a pass."""
        if number in self.read_before:
            return []
        once = [b.tolist() for b in self.plan.batches(*self.place(number), rank=self.rank)]
        every = [batch for batch in once for _ in range(self.again)]
        return every[self.dealt :] if number == self.start else every

    def steps(self, number: int) -> range:
        """The steps that are left of a pass, each counted as often as it is dealt."""
        steps = self.plan.steps(*self.place(number))
        dealt = self.dealt if number == self.start else 0
        return range(steps.start * self.again + dealt, steps.stop * self.again)

    @property
    def next(self) -> int:
        """The pass that would begin now."""
        past = self.now is not None and self.now.number == self.set and self.now.whole
        return self.set + past

    @property
    def left(self) -> Reading | None:
        """The pass that the loop is in, or stands in since a state was loaded."""
        if self.now is None or self.now.number in self.read_before:
            return self.stood
        return self.now

    def loses(self, number: int) -> bool:
        """Whether the rest of the pass that the loop is in would never be read."""
        left = self.left
        if left is None or left.whole or self.limited:
            return False
        return left.step > 1 and number > left.number

    def warns(self, number: int) -> bool:
        """Whether to warn at a pass, as samples are read twice, or lost after a look at one."""
        left = self.left
        if left is None or left.whole or self.limited or self.warned:
            return False
        again = number == left.number and not self.named and left.received > 1
        return again or (number > left.number and left.step > 0)

    def begin(self) -> list[Any] | None:
        """Begin the next pass, and return what it gives; None where that has to be refused."""
        number = self.next
        if self.loses(number):
            return None
        self.warned |= self.warns(number)
        self.named = False
        self.set = number
        if self.stood is not None and number > self.stood.number:
            self.stood = None
        if self.gone(number) or self.leaves_a_rank_out(number):
            return None
        batches = self.batches(number)
        if number in self.read_before:
            self.now = Reading(number, 0, 0, 0)
        else:
            first = self.steps(number).start
            self.now = Reading(number, first, first, first + len(batches))
        return batches

    def saved(self) -> Saved | None:
        """Where the loop stands; None where that has to be refused."""
        if self.loses(self.set) or self.gone(self.set):
            return None
        now = self.now
        return self.state(self.set, now.step if now and now.number == self.set else None)

    def state(self, number: int, step: int | None) -> Saved:
        """A state before a step of a pass, or before what is left of it."""
        if number in self.read_before:
            return Saved(self.plan.start, number, self.dealt)
        step = self.steps(number).start if step is None else step
        done, dealt = divmod(step, self.again)
        return Saved(self.plan.cursor(*self.place(number), step=done), number, dealt)

    def __len__(self) -> int:
        """The steps of the pass that is set, finished ones included."""
        return 0 if self.set in self.read_before else self.steps(self.set).stop


class LoopOverASampler(Loop):
    """The same over a sampler in torch's DataLoader, which counts what was drawn.

    Workers draw some steps `ahead` of the loop.
    """

    ahead = 0

    def begin(self) -> list[Any] | None:
        """Begin the next pass, and return what it gives; None where that has to be refused."""
        if self.named and self.now is not None and self.now.whole and self.now.number == self.set:
            return None  # named while it was read: once more, or for what follows?
        batches = super().begin()
        if batches is not None:
            self.receive(self.ahead)
        return batches

    def receive(self, num_steps: int) -> None:
        """The loop has received steps, and the loader has drawn as many."""
        if self.now is not None:
            self.now.step = min(self.now.step + num_steps, self.now.stop)

    def saved(self) -> Saved | None:
        """Where the loop stands; None in a pass and after it, until another is named."""
        return None if self.now is not None and self.now.number == self.set else super().saved()


class LoopOverTorchdata(LoopOverASampler):
    """The same over torchdata's StatefulDataLoader, which loads a state when a loop begins.

    No pass but the state's may be named until then.
    """

    def __init__(self, plan: ip.Plan, rank: int, again: int = 1) -> None:
        super().__init__(plan, rank, again)
        self.pending: Saved | None = None  # to be loaded
        self.opened = False  # whether the loader has an iterator
        self.by_a_state = False  # which was made to save a state, and is the next loop's
        self.at: Reading | None = None  # the pass of that iterator, once it has begun
        self.rest: list[Any] | None = None  # and what it gives, if it is that of a state
        self.seen_its_end = False

    def load(self, saved: Saved) -> None:
        """A state is kept until the next loop begins."""
        self.pending, self.opened, self.by_a_state = saved, False, False

    def open(self, *, by_a_state: bool = False) -> bool:
        """An iterator is asked for; return False where that has to be refused."""
        if self.by_a_state:
            self.by_a_state = False
            return True
        saved, named = self.pending, self.named
        if saved is not None:
            if named and self.set != saved.number:
                return False
            super().load(saved)
        self.pending = self.at = self.rest = None
        self.opened, self.by_a_state, self.seen_its_end = True, by_a_state, False
        if saved is not None and not saved.seen_its_end:
            gone = saved.number in self.read_before
            self.rest = [] if gone else Loop.begin(self)
            self.at = Reading(saved.number, 0, 0, 0) if gone else self.now
        if saved is not None and named:
            self.name(saved.number)
        return True

    def begin(self) -> list[Any] | None:
        """Begin the next pass, and return what it gives; None where that has to be refused."""
        if self.rest is not None and self.at is not None:
            rest, self.rest = self.rest, None
            return None if self.named and self.set != self.at.number else rest
        batches = super().begin()
        if batches is not None:
            self.at = self.now
        return batches

    def end(self) -> None:
        """The loop has seen its end."""
        self.seen_its_end = True

    def saved(self) -> Saved | None:
        """Where the iterator stands, whatever was named since."""
        number = self.start if self.gone(self.next) else self.next
        state = self.state(*((number, None) if self.at is None else (self.at.number, self.at.step)))
        return replace(state, seen_its_end=self.seen_its_end)
