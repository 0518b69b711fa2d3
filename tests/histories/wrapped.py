"""Drawn histories of loaders that a trainer wraps, in that trainer's own classes."""

from __future__ import annotations

from inspect import GEN_CREATED, getgeneratorstate
from itertools import islice
from typing import Any

from accelerate import Accelerator
from hypothesis import strategies as st
from hypothesis.stateful import rule
from lightning.fabric.wrappers import _FabricDataLoader

from indexplan_torch import PlanLoader
from indexplan_torch.accelerate import PreparedLoader
from indexplan_torch.transformers import _Group
from tests.histories.trainers import TrainerHistories


class Prepared(TrainerHistories):
    """Accelerate's loader, which fetches one batch ahead and names the pass that begins anyway."""

    def wrapped(self, loader: PlanLoader) -> Any:
        """Prepare a loader."""
        return PreparedLoader(Accelerator(cpu=True), loader)


class InFabric(TrainerHistories):
    """Fabric's loader, which names each pass by how often it was asked for batches."""

    def wrapped(self, loader: PlanLoader) -> Any:
        """What `fabric.setup_dataloaders` returns, with the state that it hides."""
        return _InFabric(loader)

    @property
    def named(self) -> Any:
        """What a user tells of passes."""
        return self.loader._dataloader

    def begins(self, how: Any, got: list[Any] | None = None) -> bool:
        """Begin a pass, which Fabric numbers when the first batch is asked for."""
        if getgeneratorstate(self.batches) == GEN_CREATED:
            self.a_trainer_named(self.loader._num_iter_calls)
        return super().begins(how, got)


class _InFabric(_FabricDataLoader):
    def __init__(self, loader: PlanLoader) -> None:
        super().__init__(loader)
        self.state_dict = loader.state_dict
        self.load_state_dict = loader.load_state_dict


class InTransformers(TrainerHistories):
    """Hugging Face Trainer with KeepState; it fetches the micro-batches of an update together."""

    @rule(size=st.integers(1, 3), at=st.integers(0, 2))
    def an_update_is_trained_on(self, size: int, at: int) -> None:
        """The loop has received those that were trained on, not all that were fetched."""
        if self.expected is None:
            self.read(1)
        if self.batches is None or self.run.reading is None:
            return
        fetched = list(islice(self.batches, size))
        for place, batch in enumerate(_Group(fetched, self.run.reading)):
            assert self.expected.pop(0) == batch
            self.model.receive(1)
            if place == at:
                self.a_state_is_saved()
        if len(fetched) < size:
            self.at_end()
