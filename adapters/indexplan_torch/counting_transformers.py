"""What Hugging Face Trainer counts: how it resumes without KeepState, and what it fetches together.

Nothing of transformers is imported here: where its Trainer asks, it has been.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any
from weakref import WeakSet

from indexplan import IndexPlanError
from indexplan.errors import counted
from indexplan_torch.arguments import loaded, run_of
from indexplan_torch.callers import WHOLE, Caller, look
from indexplan_torch.cuts import check_together, check_whole
from indexplan_torch.versions import lacking, private

_STATE = "trainer_state.json"
KEPT = "_plan_kept"  # an attribute of what KeepState has made of a trainer, and of its batches
_EVALUATIONS = ("evaluation_loop", "prediction_loop")  # the latter only before version 5
_DRIVEN: WeakSet[Any] = WeakSet()  # runs whose length Trainer has asked for

IN_TRANSFORMERS = Caller(
    package="transformers",
    modules=("transformers.trainer",),
    functions=(
        "Trainer.set_initial_training_values",
        "Trainer.evaluation_loop",
        "Trainer.prediction_loop",
        "Trainer._inner_training_loop",
    ),
    nearest=True,
    reads=("self", "dataloader"),
    depth=9,
    why="Trainer keeps what it counts in local variables, and asks a loader for no state",
    otherwise="another loop is reading",
)
RESUMING = Caller(
    package="transformers",
    reads=("resume_from_checkpoint",),
    depth=WHOLE,
    why="Trainer hands the checkpoint from function to function",
    otherwise="an error where Trainer counts the steps of a training",
)
FETCHED_TOGETHER = Caller(
    package="transformers",
    modules=("transformers.trainer",),
    reads=("batch_samples", "i", "train_dataloader", "epoch_dataloader"),
    depth=WHOLE,
    why="Trainer fetches the micro-batches of an update together, and keeps them in a local "
    "variable",
    otherwise="the loop holds the batch that it has received last",
)


def saved_state(checkpoint: str | None) -> Any:
    """Return the trainer's state in a checkpoint, or None where Trainer starts from scratch."""
    file = None if checkpoint is None else Path(checkpoint) / _STATE
    return (
        sys.modules["transformers"].TrainerState.load_from_json(str(file))
        if file is not None and file.is_file()
        else None
    )


def counted_state(run: Any, args: Any, saved: Any, checkpoint: str) -> dict[str, Any]:
    """Return the state that Trainer would resume with, which counts the steps that were saved.

    Raises
    ------
    IndexPlanError
        If passes had other steps in the run that saved.
    """
    steps = run.steps(run.number).stop
    size = args.gradient_accumulation_steps
    number, updates = divmod(saved.global_step, max(1, math.ceil(steps / size)))
    step = min(updates * size, steps)
    passes = saved.epoch or 0.0
    if abs(passes * steps - (number * steps + step)) > 0.5 or _of_other_world(args, checkpoint):
        raise IndexPlanError(
            "a resume under transformers.Trainer",
            "must load the loader's state where a pass has other steps than in the run that saved",
            f"{Path(checkpoint).name} after {passes:g} passes, which Trainer, counting "
            f"its steps, would take for {number + step / max(1, steps):g} on "
            f"{counted(args.world_size, 'rank')}",
            "use indexplan_torch.transformers.use_plan(trainer, plan), in the run that saves too",
        )
    state: dict[str, Any] = run.state_at(number, step)
    return state


def _of_other_world(args: Any, checkpoint: str) -> bool:
    """Return whether a checkpoint has the random states of another number of ranks."""
    files = [file.stem for file in Path(checkpoint).glob("rng_state*.pth")]
    ranks = {int(name.rpartition("_")[2]) for name in files if name != "rng_state"}
    if args.world_size == 1 or not ranks:
        return bool(ranks) if args.world_size == 1 else bool(files)
    return max(ranks) >= args.world_size or args.process_index not in ranks


def refuse_counting(run: Any) -> None:
    """Refuse what would read other data: some resumes without KeepState, evaluations of a part.

    Rows that `join` has made are refused too, where they go straight into a transformers model.

    Parameters
    ----------
    run : Run
        Of the loader whose length is asked for.
    """
    seen = look(IN_TRANSFORMERS)
    if seen is None:
        return
    trainer = seen["self"]
    _DRIVEN.add(run)
    _refuse_rows(trainer, seen["dataloader"])
    counts = "set_initial_training_values"
    if seen.function in _EVALUATIONS:
        check_whole(run, "transformers.Trainer")
        check_together(run, "transformers.Trainer")
    if seen.function != counts and hasattr(trainer, counts):
        return
    resuming = look(RESUMING)
    if resuming is None and seen.function == counts:
        raise lacking("transformers", f"a caller of Trainer.{counts} with resume_from_checkpoint")
    checkpoint = None if resuming is None else resuming["resume_from_checkpoint"]
    saved = saved_state(checkpoint)
    if saved is not None and not getattr(trainer, KEPT, False):
        private("transformers", trainer, counts)
        counted_state(run, trainer.args, saved, str(checkpoint))


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


def refuse_ahead(run: Any) -> None:
    """Refuse to say which micro-batch the loop holds while more of its update were fetched.

    Parameters
    ----------
    run : Run
        Of the loader that is asked.
    """
    seen = look(FETCHED_TOGETHER) if run in _DRIVEN else None
    if seen is None:
        return
    group, place = seen["batch_samples"], seen["i"] or 0
    if getattr(group, KEPT, False) or place + 1 >= len(group):
        return
    loaders = [seen["train_dataloader"], seen["epoch_dataloader"]]
    if run in [run_of(loader) for loader in loaders]:
        raise IndexPlanError(
            "transformers.Trainer",
            "must have KeepState where a loader is asked which of an update's "
            "micro-batches the loop holds, as Trainer fetches them together",
            f"none, and {len(group)} micro-batches",
            "use indexplan_torch.transformers.use_plan(trainer, plan)",
        )
