"""Drawn histories of a loop over torchdata's StatefulDataLoader around a PlanBatchSampler."""

from __future__ import annotations

import pickle
from typing import Any

from hypothesis.stateful import precondition, rule
from torchdata.stateful_dataloader import StatefulDataLoader

import indexplan as ip
from indexplan_torch import PlanBatchSampler
from tests.adapters.small import Identity, as_they_are
from tests.support.histories import Histories
from tests.support.passes import LoopOverTorchdata


class TorchdataHistories(Histories):
    """Histories over torchdata's loader; its state may be asked for wherever no pass is named."""

    model: LoopOverTorchdata
    eager_with_workers = True
    of_a_loop = LoopOverTorchdata

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

    @rule()
    def it_is_asked_for_batches(self) -> None:
        """`iter(loader)`, whose state the loader has from then on, even if nobody reads it."""
        self.model.open()
        super().it_is_asked_for_batches()

    def cursor_in(self, state: Any) -> Any:
        """The cursor of a state."""
        main = state["_snapshot"]["_main_snapshot"] if "_snapshot" in state else state
        return main["_sampler_iter_state"]["cursor"]

    @precondition(lambda self: self.model.asked is None and not self.model.gone(self.model.set))
    @rule()
    def a_state_is_saved(self) -> None:
        """`loader.state_dict()`, and a checkpoint of it."""
        saved = self.model.saved(opened=self.model.opened)
        if saved is None:
            self.refused(self.loader.state_dict)
            return
        state = pickle.loads(pickle.dumps(self.loader.state_dict()))  # noqa: S301
        assert saved.cursor == ip.Cursor.from_dict(self.cursor_in(state))
        self.states.append((state, saved))

    @precondition(lambda self: self.model.pending is None)
    @rule()
    def its_length_is_asked_for(self) -> None:
        """`len(loader)`, of the pass that is set, which torchdata has not loaded before a loop."""
        if self.model.gone(self.model.set):
            self.refused(lambda: len(self.loader))
        else:
            assert len(self.model) == len(self.loader)
