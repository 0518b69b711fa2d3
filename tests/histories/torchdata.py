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
from tests.histories.loops import Histories
from tests.histories.passes import LoopOverTorchdata


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
        """Whether workers are in the middle of a pass, or a loop has opened one."""
        left = self.model.left
        inside = self.batches is not None or (left is not None and not left.whole)
        return self.eager and inside

    @property
    def may_leave(self) -> bool:
        """Whether a loop may end in the middle of a pass: workers are read to its end."""
        return not self.eager

    @precondition(lambda self: not self.reads_on)
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
            self.a_state_is_loaded(-1, None)
            if named:
                self.a_user_names_a_pass(self.states[-1][1].number)
            self.the_pass_is_read()

    @precondition(lambda self: self.model.pending is None)  # which is loaded by a loop
    @rule()
    def its_length_is_asked_for(self) -> None:
        """`len(loader)`."""
        super().its_length_is_asked_for()
