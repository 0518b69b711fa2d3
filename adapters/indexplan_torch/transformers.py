"""Plans under Hugging Face Trainer: a callback that keeps a PlanLoader's state in checkpoints.

Trainer counts a training's steps per epoch once, and resumes by skipping as many as it had done.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from transformers import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
    TrainerCallback,
)

from indexplan import IndexPlanError
from indexplan_torch.counting_transformers import KEPT, counted_state, saved_state
from indexplan_torch.loader import PlanLoader
from indexplan_torch.passes import Pass

_KEY = "indexplan"  # in `stateful_callbacks` of a checkpoint's trainer_state.json
_TESTED = "5.23"
# what _Kept changes of a trainer
_CHANGED = (
    "_inner_training_loop",
    "set_initial_training_values",
    "_init_training_state",
    "_run_epoch",
    "get_batch_samples",
    "_save_checkpoint",
)


class KeepState(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Saves a PlanLoader's state in checkpoints: `trainer.add_callback(KeepState(trainer))`.

    A resumed run continues where the loop stood, with any world size, batch size, accumulation and
    number of workers. Every pass has as many updates as the plan's steps make, so schedules and
    unequal sub-epochs work, and `num_train_epochs` ends with the last of them. In `compute_loss`
    and `training_step`, you can use `loader.step_size`, `step_total`, `groups`, `shares` and
    `cursor` for the current micro-batch. Without KeepState, these raise, because Trainer fetches
    all micro-batches of an update together.

    The state is in the checkpoint's trainer_state.json, which one process writes.

    Parameters
    ----------
    trainer : transformers.Trainer
        Its `get_train_dataloader` returns a PlanLoader. Its methods are extended.

    Raises
    ------
    IndexPlanError
        If this version of transformers lacks a method that this extends.
    """

    def __init__(self, trainer: Any) -> None:
        missing = [name for name in _CHANGED if not hasattr(trainer, name)]
        if missing:
            raise IndexPlanError(
                "trainer",
                f"must have Trainer's method {missing[0]}, for KeepState",
                f"{type(trainer).__name__} without it",
                f"use transformers {_TESTED}, which this is tested with",
            )
        self.trainer = trainer
        if not hasattr(trainer, KEPT):
            trainer.__class__ = _kept(type(trainer))

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Set `state.epoch` to how much of the plan is done; Trainer counts from the resume."""
        feed = self.trainer._plan_loader.feed  # noqa: SLF001 (our own)
        state.epoch = feed.number + feed.step / max(1, len(feed))


class _Kept:
    """What KeepState makes of a trainer: one that runs the passes of a plan, each to its end."""

    args: Any
    state: Any
    _plan_kept = True
    _plan_loader: PlanLoader
    _plan_checkpoint: str | None = None
    _plan_first = 0  # the pass that the training continues with

    def _inner_training_loop(
        self, *args: Any, resume_from_checkpoint: str | None = None, **kwargs: Any
    ) -> Any:
        self._plan_checkpoint = resume_from_checkpoint
        kwargs["resume_from_checkpoint"] = resume_from_checkpoint
        return super()._inner_training_loop(*args, **kwargs)  # type: ignore[misc]

    def set_initial_training_values(self, args: Any, dataloader: Any) -> Any:
        """Load the loader's state, and count the passes and updates that are left of the run."""
        if not isinstance(dataloader, PlanLoader):
            raise IndexPlanError(
                "get_train_dataloader",
                "must return a PlanLoader, for KeepState",
                type(dataloader).__name__,
                "use PlanLoader(dataset, plan)",
            )
        self._plan_loader = dataloader
        done: int = 0
        self._plan_first = 0
        saved = saved_state(self._plan_checkpoint)
        if saved is not None:
            done = saved.global_step
            state = saved.stateful_callbacks.get(_KEY)
            if state is None:
                state = counted_state(dataloader.feed, args, saved, str(self._plan_checkpoint))
            dataloader.load_state_dict(state)
            number = dataloader.feed.number
            self._plan_first = number if self._steps_left(number) else number + 1
        _, *others, _ = super().set_initial_training_values(args, dataloader)  # type: ignore[misc]
        stop, max_steps = self._end(args, done)
        return (stop, *others, max_steps)

    def _steps_left(self, number: int) -> int:
        """Return how many steps of a pass are left; to Trainer each is a micro-batch."""
        return len(self._plan_loader.feed.steps(number))

    def _updates_left(self, number: int) -> int:
        size: int = self.args.gradient_accumulation_steps
        return -(-self._steps_left(number) // size)

    def _end(self, args: Any, done: int) -> tuple[int, int]:
        """Return the pass before which the run ends, and after how many updates."""
        if args.max_steps > 0:
            number, left = self._plan_first, args.max_steps - done
            while left > 0:
                left -= self._updates_left(number) or left  # Trainer stops at a pass of no steps
                number += 1
            return number, args.max_steps
        stop = math.ceil(args.num_train_epochs)
        updates = [self._updates_left(number) for number in range(self._plan_first, stop)]
        if updates and stop > args.num_train_epochs:  # only a share of the last pass
            steps = self._plan_loader.feed.steps(stop - 1)
            whole = math.ceil(steps.stop / args.gradient_accumulation_steps)
            beyond = whole - math.ceil(whole * (args.num_train_epochs - stop + 1))
            updates[-1] = max(0, updates[-1] - beyond)
        return stop, done + sum(updates)

    def _init_training_state(self, *args: Any, **kwargs: Any) -> tuple[int, int]:
        """Start with the pass to continue, and skip nothing in it."""
        super()._init_training_state(*args, **kwargs)  # type: ignore[misc]
        return self._plan_first, 0

    def _run_epoch(self, *, epoch: int, **counts: Any) -> Any:
        """Run a pass for as many updates as it has."""
        counts |= {
            "steps_in_epoch": self._steps_left(epoch),
            "num_update_steps_per_epoch": self._updates_left(epoch),
        }
        return super()._run_epoch(epoch=epoch, **counts)  # type: ignore[misc]

    def get_batch_samples(self, *args: Any, **kwargs: Any) -> tuple[list[Any], Any]:
        """Return a group of micro-batches that counts those the loop has received."""
        batches, num_items = super().get_batch_samples(*args, **kwargs)  # type: ignore[misc]
        begun = self._plan_loader.feed.current
        return batches if begun is None else _Group(batches, begun), num_items

    def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        self.state.stateful_callbacks[_KEY] = self._plan_loader.state_dict()
        super()._save_checkpoint(*args, **kwargs)  # type: ignore[misc]


def _kept(trainer: type) -> type:
    return type(trainer.__name__, (_Kept, trainer), {"__module__": trainer.__module__})


class _Group(list[Any]):
    """Micro-batches that were fetched together; the loop receives them one by one."""

    _plan_kept = True

    def __init__(self, batches: list[Any], begun: Pass) -> None:
        super().__init__(batches)
        self.begun = begun

    def __iter__(self) -> Iterator[Any]:
        fetched = self.begun.step
        for received, batch in enumerate(super().__iter__(), 1):
            self.begun.step = fetched - len(self) + received
            yield batch
