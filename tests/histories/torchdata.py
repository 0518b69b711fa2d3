"""Drawn histories of a loop over torchdata's StatefulDataLoader around a PlanBatchSampler."""

from __future__ import annotations

import pickle
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from torchdata.stateful_dataloader import StatefulDataLoader

import indexplan as ip
from indexplan_torch import PlanBatchSampler
from tests.adapters.small import Identity, as_they_are
from tests.histories.loops import NUM_PASSES, Histories
from tests.histories.passes import LoopOverTorchdata

between_passes = precondition(lambda self: not self.eager or not self.reads_on)


class TorchdataHistories(Histories):
    """Histories over torchdata's loader, whose state may be asked for anywhere.

    With workers a pass is read to its end before anything is said of another: the sampler knows
    what they have drawn, not what the loop has received.
    """

    model: LoopOverTorchdata
    eager_with_workers = True
    of_a_loop = LoopOverTorchdata
    moves = False

    def make(self, plan: ip.Plan, rank: int, world_size: int) -> Any:
        """Make a loader."""
        ranks = {"rank": rank, "world_size": world_size, "again": self.again}
        return StatefulDataLoader(
            Identity(plan.order.num_samples),
            batch_sampler=PlanBatchSampler(plan, **ranks),
            collate_fn=as_they_are,
            **self.workers,
        )

    @property
    def named(self) -> Any:
        """What a user tells of passes."""
        return self.loader.batch_sampler

    def at_end(self) -> None:
        """The loop has seen the end of its pass."""
        super().at_end()
        self.model.end()

    @property
    def reads_on(self) -> bool:
        """Whether a loop is in the middle of a pass, or has opened one."""
        return self.batches is not None or (
            (left := self.model.left) is not None and not left.whole
        )

    @between_passes
    @rule(number=st.integers(0, NUM_PASSES))
    def a_user_names_a_pass(self, number: int) -> None:
        """`loader.set_epoch`, as plain loops, HF Trainer and Composer do."""
        super().a_user_names_a_pass(number)

    @between_passes
    @rule(further=st.integers(-1, 1))
    def a_user_names_a_pass_nearby(self, further: int) -> None:
        """The pass that the loop is in, the one before, or the next."""
        super().a_user_names_a_pass_nearby(further)

    @precondition(lambda self: not self.eager)
    @rule()
    def the_loop_is_left(self) -> None:
        """`break`."""
        super().the_loop_is_left()

    @between_passes
    @rule()
    def it_is_asked_for_batches(self) -> None:
        """`iter(loader)`, whose state the loader has from then on, even if nobody reads it."""
        if self.model.open():
            super().it_is_asked_for_batches()
        else:
            self.refused(lambda: iter(self.loader))
            self.batches = self.expected = None

    def cursor_in(self, state: Any) -> Any:
        """The cursor of a state."""
        main = state["_snapshot"]["_main_snapshot"] if "_snapshot" in state else state
        return main["_sampler_iter_state"]["cursor"]

    @precondition(lambda self: not self.eager or self.model.opened)  # else workers begin the pass
    @rule()
    def a_state_is_saved(self) -> None:
        """`loader.state_dict()`, and a checkpoint of it; it opens an iterator if there is none."""
        if not self.model.opened and not self.model.open(by_a_state=True):
            self.refused(self.loader.state_dict)
            return
        saved = self.model.saved()
        assert saved is not None
        state = pickle.loads(pickle.dumps(self.loader.state_dict()))  # noqa: S301
        assert saved.cursor == ip.Cursor.from_dict(self.cursor_in(state))
        self.states.append((state, saved))

    @precondition(lambda self: not self.eager)
    @rule(named=st.booleans())
    def a_run_stops_at_a_last_step_and_resumes(self, named: bool) -> None:
        """Before the loop has seen the end; nothing is left of the pass then, named or not."""
        self.read(1)
        if self.expected:
            self.read(len(self.expected))
        self.a_state_is_saved()
        if self.states:
            state, saved = self.states[-1]
            self.loader.load_state_dict(state)
            self.model.load(saved)
            self.batches = self.expected = None
            if named:
                self.a_user_names_a_pass(saved.number)
            self.the_pass_is_read()

    @precondition(lambda self: self.model.pending is None)
    @rule()
    def its_length_is_asked_for(self) -> None:
        """`len(loader)`, of the pass that is set, which torchdata has not loaded before a loop."""
        if self.model.gone(self.model.set):
            self.refused(lambda: len(self.loader))
        else:
            assert len(self.model) == len(self.loader)
