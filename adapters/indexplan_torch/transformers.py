"""Plans under Hugging Face Trainer and all that are made of it, such as TRL's.

Trainer counts a training's steps per epoch once, and resumes by skipping as many as it had done. So
a plan's passes need a few of its methods extended, on the trainer itself: its class stays.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transformers import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
    TrainerCallback,
    TrainerState,
)

from indexplan import IndexPlanError, Plan, Repeat
from indexplan.errors import shown
from indexplan_torch.arguments import check_by_index, loaded
from indexplan_torch.callers import Caller, look
from indexplan_torch.cuts import check_together, check_whole
from indexplan_torch.loader import PlanLoader
from indexplan_torch.run import Reading
from indexplan_torch.versions import private

KEPT = "_plan_kept"  # an attribute that KeepState gives a trainer
_KEY = "indexplan"  # in `stateful_callbacks` of a checkpoint's trainer_state.json
_TESTED = "5.23"
# what KeepState extends of a trainer
_CHANGED = (
    "_inner_training_loop",
    "set_initial_training_values",
    "_init_training_state",
    "_run_epoch",
    "get_batch_samples",
    "_save_checkpoint",
)
_OF_THEIR_LOADER = (
    "collate_fn",
    "num_workers",
    "pin_memory",
    "multiprocessing_context",
    "prefetch_factor",
    "persistent_workers",
)

IN_TRANSFORMERS = Caller(
    package="transformers",
    module="transformers.trainer",
    functions=(
        "Trainer.set_initial_training_values",
        "Trainer.evaluation_loop",
        "Trainer._inner_training_loop",
    ),
    nearest=True,
    why="Trainer skips what it has counted, fetches the micro-batches of an update together, and "
    "asks a loader for no state",
)


def use_plan(trainer: Any, plan: Plan, *, dataset: Any = None, **options: Any) -> None:
    """Train by a plan: `use_plan(trainer, plan)`, before `trainer.train()`.

    It takes any Trainer, such as TRL's SFTTrainer and Unsloth's. The training then reads a
    `PlanLoader` of the plan, over what the trainer makes of its `train_dataset`, with its collator
    and the options of its workers. The loader is `trainer.callback_handler.train_dataloader` in the
    training. Checkpoints hold its state, as with
    `KeepState`, which this adds. The plan's batch size replaces `per_device_train_batch_size`.
    Evaluation and prediction stay as they are.

    Parameters
    ----------
    trainer : transformers.Trainer
        Of this class or a subclass.
    plan : Plan
        With as many samples as the dataset. For GRPOTrainer and RLOOTrainer, which generate from
        prompts, `Plan(Repeat(order, copies=trainer.num_generations), remainder="carry",
        global_batch_size=trainer.args.generation_batch_size)`: each step is then read as often as
        they train on its completions, and a run may resume after any of them.
    dataset : torch.utils.data.Dataset, optional
        What to read instead of the trainer's own, such as `Bins(...)`.
    **options
        Options of `PlanLoader`, such as ledger, collate_fn or keep_bins.

    Raises
    ------
    IndexPlanError
        If the dataset is not map-style, the trainer generates from prompts and the plan reads them
        in another way, its rows are packed already and the plan packs them again, or this version
        of transformers or TRL lacks what this extends. When the training starts: as `PlanLoader`
        does.

    Examples
    --------
    ::

        trainer = SFTTrainer(model, arguments, train_dataset=chats)
        use_plan(trainer, ip.Plan(ip.Shuffle(len(trainer.train_dataset), seed=1), batch_size=16))
        trainer.train(resume_from_checkpoint=checkpoint)
    """
    check_by_index(trainer.train_dataset if dataset is None else dataset)
    if hasattr(trainer, "num_generations"):
        options["again"] = _turns(trainer, plan)
    if plan.order.deals_bins and getattr(trainer.args, "packing", False):
        raise IndexPlanError(
            "packing",
            "must be False where the plan packs samples, as rows would be packed again",
            True,
            "leave packing=True out of the trainer's arguments",
        )
    if not hasattr(trainer, KEPT):
        trainer.add_callback(KeepState(trainer))
    get_theirs = type(trainer).get_train_dataloader

    def get_train_dataloader() -> PlanLoader:
        theirs = get_theirs(trainer)
        given = {name: getattr(theirs, name) for name in _OF_THEIR_LOADER} | options
        mesh = getattr(trainer.accelerator, "torch_device_mesh", None)
        if mesh is not None and not {"mesh", "rank", "world_size"} & options.keys():
            given["mesh"] = mesh
        return PlanLoader(theirs.dataset if dataset is None else dataset, plan, **given)

    trainer.get_train_dataloader = get_train_dataloader


def _turns(trainer: Any, plan: Plan) -> int:
    """Return for how many steps TRL trains on what it generates from one global batch of prompts.

    In each of these it asks its loader for the same prompts again.

    Raises
    ------
    IndexPlanError
        If the plan deals prompts in another way than TRL takes them.
    """
    for name in ("_step", "_buffered_inputs", "num_iterations"):
        private("trl", trainer, name)
    copies, size, order = trainer.num_generations, trainer.args.generation_batch_size, plan.order
    in_a_row = isinstance(order, Repeat) and order.copies == copies == (order.span or copies)
    full = plan.global_batch_size == size and plan.remainder in ("carry", "drop")
    if not (in_a_row and full):
        raise IndexPlanError(
            "plan",
            f"must read each prompt {copies} times in a row, in full global batches of {size}, for "
            f"{type(trainer).__name__}",
            shown(plan),
            f"use Plan(Repeat(order, copies={copies}), global_batch_size={size}, "
            "remainder='carry')",
        )
    turns: int = trainer.num_iterations * trainer.args.steps_per_generation
    return turns


class KeepState(TrainerCallback):  # type: ignore[misc,unused-ignore]
    """Saves a PlanLoader's state in checkpoints, and runs each pass of its plan to the end.

    `use_plan` adds it; add it yourself to a trainer whose `get_train_dataloader`
    returns a PlanLoader: `trainer.add_callback(KeepState(trainer))`.

    A resumed run continues where the loop stood, with any world size, batch size, accumulation and
    number of workers. Every pass has as many updates as the plan's steps make, so schedules and
    unequal sub-epochs work, and `num_train_epochs` ends with the last of them. In `compute_loss`
    and `training_step`, you can use `loader.step_size`, `step_total`, `groups`, `shares` and
    `cursor` for the current micro-batch. Without KeepState, a plan is refused, as Trainer fetches
    all micro-batches of an update together, and resumes by skipping the steps that it has counted.

    The state is in the checkpoint's trainer_state.json, which one process writes. A checkpoint
    without it continues where a resumed plan starts: `plan.resume(cursor)`.

    Parameters
    ----------
    trainer : transformers.Trainer
        Some of its methods are extended, on this object.

    Raises
    ------
    IndexPlanError
        If this version of transformers lacks a method that this extends. When a training resumes:
        if its checkpoint has no state, and the plan was not resumed.
    """

    loader: PlanLoader
    checkpoint: str | None = None
    first = 0  # the pass that the training continues with

    def __init__(self, trainer: Any) -> None:
        missing = [name for name in _CHANGED if not hasattr(trainer, name)]
        if missing:
            raise IndexPlanError(
                "trainer",
                f"must have Trainer's method {missing[0]}, for KeepState",
                f"{type(trainer).__name__} without it",
                f"pass a Trainer of transformers {_TESTED}, which this is tested with",
            )
        self.trainer = trainer
        if hasattr(trainer, KEPT):
            return  # by another, whose methods it has
        setattr(trainer, KEPT, self)
        self.theirs = {name: getattr(trainer, name) for name in _CHANGED}
        for name in _CHANGED:
            setattr(trainer, name, getattr(self, name))

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Let TRL generate when the loader yields a new global batch; it counts from the resume.

        Completions of an earlier call of `train` are forgotten.
        """
        trainer = self.trainer
        if hasattr(trainer, "num_generations"):
            kept = getattr(trainer, KEPT)
            trainer._step = kept.loader.run.steps(kept.first).start  # noqa: SLF001 (of TRL)
            trainer._buffered_inputs = None  # noqa: SLF001

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        """Set `state.epoch` to how much of the plan is done; Trainer counts from the resume."""
        run = getattr(self.trainer, KEPT).loader.run
        state.epoch = run.number + run.step / max(1, run.length())

    # --- what the trainer's methods of these names do now

    def _inner_training_loop(
        self, *args: Any, resume_from_checkpoint: str | None = None, **kwargs: Any
    ) -> Any:
        self.checkpoint = resume_from_checkpoint
        kwargs["resume_from_checkpoint"] = resume_from_checkpoint
        return self.theirs["_inner_training_loop"](*args, **kwargs)

    def set_initial_training_values(self, args: Any, dataloader: Any) -> Any:
        """Load the loader's state, and count the passes and updates that are left of the run."""
        if not isinstance(dataloader, PlanLoader):
            raise IndexPlanError(
                "get_train_dataloader",
                "must return a PlanLoader, for KeepState",
                type(dataloader).__name__,
                "use PlanLoader(dataset, plan)",
            )
        self.loader = dataloader
        done: int = 0
        self.first = 0
        file = None if self.checkpoint is None else Path(self.checkpoint) / "trainer_state.json"
        if file is not None and file.is_file():  # else Trainer starts anew too
            saved = TrainerState.load_from_json(str(file))
            done = saved.global_step
            self._load(saved.stateful_callbacks.get(_KEY))
            number = dataloader.run.number
            self.first = number if self._steps_left(number) else number + 1
        _, *others, _ = self.theirs["set_initial_training_values"](args, dataloader)
        stop, max_steps = self._end(args, done)
        return (stop, *others, max_steps)

    def _load(self, state: Any) -> None:
        """Load a checkpoint's state, or begin where a resumed plan does."""
        start = self.loader.plan.start
        if state is not None:
            self.loader.load_state_dict(state)
        elif (start.epoch, start.position) == (0, 0):
            raise IndexPlanError(
                f"{self.checkpoint}",
                "must hold the loader's state, to be resumed by a plan",
                "the checkpoint of a training without use_plan",
                "pass use_plan the plan.resume(cursor) with which the run shall go on, or load the "
                "model alone, and leave resume_from_checkpoint out",
            )

    def _steps_left(self, number: int) -> int:
        """Return how many steps of a pass are left; to Trainer each is a micro-batch."""
        return len(self.loader.run.steps(number))

    def _updates_left(self, number: int) -> int:
        size: int = self.trainer.args.gradient_accumulation_steps
        return -(-self._steps_left(number) // size)

    def _end(self, args: Any, done: int) -> tuple[int, int]:
        """Return the pass before which the run ends, and after how many updates."""
        if args.max_steps > 0:
            number, left = self.first, args.max_steps - done
            while left > 0:
                left -= self._updates_left(number) or left  # Trainer stops at a pass of no steps
                number += 1
            return number, args.max_steps
        stop = math.ceil(args.num_train_epochs)
        updates = [self._updates_left(number) for number in range(self.first, stop)]
        if updates and stop > args.num_train_epochs:  # only a share of the last pass
            steps = self.loader.run.steps(stop - 1)
            whole = math.ceil(steps.stop / args.gradient_accumulation_steps)
            beyond = whole - math.ceil(whole * (args.num_train_epochs - stop + 1))
            updates[-1] = max(0, updates[-1] - beyond)
        return stop, done + sum(updates)

    def _init_training_state(self, *args: Any, **kwargs: Any) -> tuple[int, int]:
        """Start with the pass to continue, and skip nothing in it."""
        self.theirs["_init_training_state"](*args, **kwargs)
        return self.first, 0

    def _run_epoch(self, *, epoch: int, **counts: Any) -> Any:
        """Run a pass for as many updates as it has."""
        counts |= {
            "steps_in_epoch": self._steps_left(epoch),
            "num_update_steps_per_epoch": self._updates_left(epoch),
        }
        return self.theirs["_run_epoch"](epoch=epoch, **counts)

    def get_batch_samples(self, *args: Any, **kwargs: Any) -> tuple[list[Any], Any]:
        """Return a group of micro-batches that counts those the loop has received."""
        batches, num_items = self.theirs["get_batch_samples"](*args, **kwargs)
        begun = self.loader.run.reading
        return batches if begun is None else _Group(batches, begun), num_items

    def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        self.trainer.state.stateful_callbacks[_KEY] = self.loader.state_dict()
        self.theirs["_save_checkpoint"](*args, **kwargs)


class _Group(list[Any]):
    """Micro-batches that were fetched together; the loop receives them one by one."""

    def __init__(self, batches: list[Any], begun: Reading) -> None:
        super().__init__(batches)
        self.begun = begun

    def __iter__(self) -> Iterator[Any]:
        fetched = self.begun.step
        for received, batch in enumerate(super().__iter__(), 1):
            self.begun.step = fetched - len(self) + received
            yield batch


def refuse_counting(run: Any) -> None:
    """Refuse what would read other data: trainings without KeepState, and evaluations of a part.

    Rows that `join` has made are refused too, where they go straight into a transformers model.

    Parameters
    ----------
    run : Run
        Of the loader whose length is asked for.
    """
    seen = look(IN_TRANSFORMERS)
    if seen is None:
        return
    trainer, counts = seen.values["self"], "set_initial_training_values"  # which old versions lack
    _refuse_rows(trainer, seen.values.get("dataloader"))
    if seen.function == "evaluation_loop":
        check_whole(run, "transformers.Trainer")
        check_together(run, "transformers.Trainer")
    elif not hasattr(trainer, KEPT) and (seen.function == counts or not hasattr(trainer, counts)):
        raise IndexPlanError(
            "transformers.Trainer",
            "must be given a plan by use_plan, as it resumes by its own count of steps",
            "a loader of a plan without it",
            "use indexplan_torch.transformers.use_plan(trainer, plan)",
        )


def _refuse_rows(trainer: Any, loader: Any) -> None:
    collate, join = getattr(loader, "collate_fn", None), loaded("bins", "join")
    if collate is None or collate is not join:
        return
    models = sys.modules["transformers.modeling_utils"]
    if any(isinstance(each, models.PreTrainedModel) for each in trainer.model.modules()):
        raise IndexPlanError(
            "collate_fn",
            "must return rows with a batch axis under transformers.Trainer, which "
            "passes them to the model",
            "join",
            "use join_causal of indexplan_torch.causal, or a function of your own",
        )
