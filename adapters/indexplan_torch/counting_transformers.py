"""What Hugging Face Trainer would read wrongly: a training that no KeepState leads.

Nothing of transformers is imported here: where its Trainer asks, it has been.
"""

from __future__ import annotations

import sys
from typing import Any

from indexplan import IndexPlanError
from indexplan_torch.arguments import loaded
from indexplan_torch.callers import Caller, look
from indexplan_torch.cuts import check_together, check_whole

KEPT = "_plan_kept"  # an attribute that KeepState gives a trainer

IN_TRANSFORMERS = Caller(
    package="transformers",
    module="transformers.trainer",
    functions=(
        "Trainer.set_initial_training_values",
        "Trainer.evaluation_loop",
        "Trainer._inner_training_loop",
    ),
    nearest=True,
    depth=9,
    why="Trainer skips what it has counted, fetches the micro-batches of an update together, and "
    "asks a loader for no state",
    otherwise="another loop is reading",
)


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
