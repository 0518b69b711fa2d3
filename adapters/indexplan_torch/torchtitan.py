"""Plans under torchtitan: a loader that its trainer builds, and its checkpoints resume.

torchtitan's loop asks a loader for as many batches as an optimizer step accumulates, and saves its
state between steps: the samples consumed and the order, which are equal on all ranks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar

import torch
from torchtitan.components.dataloader import BaseDataLoader
from tyro.conf import Suppress, arg

from indexplan import IndexPlanError, Order, Plan
from indexplan.errors import integer, invalid, shown
from indexplan_torch.causal import UNTRAINED
from indexplan_torch.endless import PlanIterator

__all__ = ["PlanDataLoader"]

T = TypeVar("T")
# without a constructor tyro takes a value apart, and makes another one of its fields
Kept = Annotated[T, Suppress, arg(constructor=str)]
KEY = "indexplan"  # in a checkpoint: "dataloader.indexplan"


class PlanDataLoader(BaseDataLoader):
    """A torchtitan data loader that reads an order on any number of ranks: set its `Config`.

    Each batch is full. An optimizer step reads the run's next global batch, with any number of
    ranks and accumulated batches. torchtitan's checkpoints hold the loader's state once for all
    ranks, and any number of ranks can resume from it.

    Parameters
    ----------
    config : PlanDataLoader.Config
        As in `Trainer.Config(dataloader=...)`, which builds the loader and passes the rest.
    dp_world_size, dp_rank : int
        Of the data-parallel mesh: ranks of tensor, context or pipeline parallelism have the same.
    local_batch_size : int
        Rows of a batch. Fields are stacked: (rows, tokens).
    **others
        Other arguments from torchtitan, such as the tokenizer and seq_len; not used.

    Raises
    ------
    IndexPlanError
        If local_batch_size or the rank is out of range. While a finite loader is read: if labels
        are not integers, so that rows could not be left out.

    Notes
    -----
    At the end of a finite loader, torchtitan doesn't train on batches that don't fill an optimizer
    step: if a step accumulates k batches, that is up to k - 1 of them on each rank.
    """

    @dataclass(kw_only=True, slots=True)
    class Config(BaseDataLoader.Config):
        """What to read, and DataLoader's options.

        Parameters
        ----------
        dataset : torch.utils.data.Dataset
            Map-style, with as many samples as the order, whose items are
            ({"input": tensor, ...}, labels).
        order : Order
            The sequence in which each epoch reads the samples, with as many units in every epoch
            but for those that `Without` leaves out.
        collate_fn : callable, optional
            Makes a batch of items; if left out, they are stacked.
        infinite : bool
            Whether epochs follow each other without end. If False, as torchtitan's validator sets
            it, the run's first epoch is all there is, and labels of rows past its end are -100.
        num_workers, persistent_workers, pin_memory, prefetch_factor
            As for torchtitan's own loader.
        """

        dataset: Kept[Any]
        order: Kept[Order]
        collate_fn: Kept[Callable[[list[Any]], Any] | None] = None
        infinite: bool = True
        num_workers: int = 0
        persistent_workers: bool = True
        pin_memory: bool = False
        prefetch_factor: int | None = None

        def to_dict(self) -> dict[str, Any]:
            """Return what torchtitan logs: of the dataset its type, as its content may be large."""
            named = replace(self, dataset=type(self.dataset).__name__)
            found: dict[str, Any] = BaseDataLoader.Config.to_dict(named)
            return found

    def __init__(
        self,
        config: Config,
        *,
        dp_world_size: int,
        dp_rank: int,
        local_batch_size: int | None = None,
        **others: Any,  # noqa: ARG002 (torchtitan passes the tokenizer)
    ) -> None:
        cure = "build the loader by its config, as torchtitan 0.3.0's trainer does"
        size = integer("local_batch_size", local_batch_size, 1, 2**62, cure)
        workers: dict[str, Any] = {"num_workers": config.num_workers}
        if config.num_workers:
            workers["persistent_workers"] = config.persistent_workers
            workers["prefetch_factor"] = config.prefetch_factor
        self._batches = PlanIterator(
            config.dataset,
            config.order,
            micro_batch_size=size,
            consumed_samples=0,
            rank=dp_rank,
            world_size=dp_world_size,
            collate_fn=config.collate_fn,
            pin_memory=config.pin_memory,
            **workers,
        )
        self._stop = None if config.infinite else config.order.num_units(0)
        self._first, self._size = dp_rank * size, size

    @property
    def plan(self) -> Plan:
        """What is read: its remainder is "carry", and its step is a batch of each rank."""
        return self._batches.plan

    def __iter__(self) -> Iterator[Any]:
        """Return the loader: it reads on where it stands, however often it is asked."""
        return self

    def __next__(self) -> Any:
        """Return the rank's next batch; after an error, the same one once more."""
        place = self._batches.consumed_samples
        if self._stop is None:
            return next(self._batches)
        if place >= self._stop:
            raise StopIteration
        fields, labels = next(self._batches)
        return fields, _left_out(labels, self._size, self._stop - place - self._first)

    def state_dict(self) -> dict[str, Any]:
        """Return where the loop stands, equal on all ranks: one text, which DCP writes once."""
        state = self._batches.save_state()
        if self._stop is not None:  # rows past the end were not trained on
            state["consumed_samples"] = min(state["consumed_samples"], self._stop)
        return {KEY: json.dumps(state)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Read on where a run stood, with any number of ranks, and rows of a batch.

        Raises
        ------
        IndexPlanError
            If it is no state of a PlanDataLoader, or one of another order, which this one does not
            continue.
        """
        text = state_dict.get(KEY) if isinstance(state_dict, dict) else None
        try:
            state = json.loads(text)  # type: ignore[arg-type]  # no text is an error too
        except (TypeError, ValueError):
            is_dict = isinstance(state_dict, dict)
            got = f"a dict of {shown(list(state_dict))}" if is_dict else shown(state_dict)
            cure = (
                "start with this loader after another one by "
                "--checkpoint.exclude_from_loading dataloader"
            )
            raise IndexPlanError("state", "must be a PlanDataLoader's", got, cure) from None
        self._batches.load_state(state)

    def close(self) -> None:
        """End the workers; a later `next` starts others, and reads on."""
        self._batches.close()


def _left_out(labels: Any, num_rows: int, num_valid: int) -> Any:
    """Return labels whose first rows alone are trained on."""
    is_rows = isinstance(labels, torch.Tensor) and labels.numel() % num_rows == 0
    if not is_rows or labels.is_floating_point() or labels.is_complex():
        raise invalid(
            "labels of a finite loader",
            "integers, as many for each row",
            labels,
            "return such ones, or leave infinite=False out",
        )
    if num_valid >= num_rows:
        return labels
    labels = labels.clone()  # a dataset may return its own
    labels.reshape(num_rows, -1)[max(num_valid, 0) :] = UNTRAINED
    return labels
