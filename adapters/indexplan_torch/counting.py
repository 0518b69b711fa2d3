"""Refuse trainers that count steps themselves, if they would read other data or report wrong sums.

Hugging Face Trainer and Composer don't load a loader's state. They continue at the step number that
they saved, which is right only if a pass has the same steps as before. Hugging Face Trainer also
fetches all micro-batches of an update before it trains on the first. Their counts are local
variables, so this code looks at those, but only to refuse: no batch depends on it.
"""

from __future__ import annotations

import sys
from typing import Any

from indexplan import IndexPlanError
from indexplan_torch import callers

UNDER_TRAINER = (
    "; under transformers.Trainer, return the PlanLoader itself from get_train_dataloader, and use "
    "trainer.add_callback(indexplan_torch.transformers.KeepState(trainer))"
)


def refuse_counting(feed: Any) -> None:
    """If one of these trainers starts a pass, check that it counts like the plan.

    Raises
    ------
    IndexPlanError
        If the trainer resumes by counting steps that are not this plan's.
    """
    if (seen := callers.look(callers.IN_TRANSFORMERS)) is not None:
        from indexplan_torch import counting_transformers

        counting_transformers.refuse_counting(feed, seen)
    if (seen := callers.look(callers.IN_COMPOSER)) is not None:
        from indexplan_torch import counting_composer

        counting_composer.refuse_counting(feed, seen)


def refuse_fetched_ahead(feed: Any) -> None:
    """Refuse to name the current batch while Hugging Face Trainer is still at an earlier one.

    Raises
    ------
    IndexPlanError
        If the trainer has fetched several micro-batches of this feed and is not at the last.
    """
    if (seen := callers.look(callers.FETCHED_TOGETHER)) is not None:
        from indexplan_torch import counting_transformers

        counting_transformers.refuse_ahead(feed, seen)


def refuse_rows_without_a_batch() -> None:
    """Refuse `join` as a loader's collate_fn if its rows go straight into a model.

    Raises
    ------
    IndexPlanError
        If Hugging Face Trainer requests the loader's first batch for a transformers model.
    """
    if (seen := callers.look(callers.READING_ROWS)) is None:
        return
    models = sys.modules["transformers.modeling_utils"]
    model = getattr(seen["self"], "model", None)
    if model is not None and any(isinstance(e, models.PreTrainedModel) for e in model.modules()):
        raise IndexPlanError(
            "collate_fn",
            "must return rows with a batch axis under transformers.Trainer, which "
            "passes them to the model",
            "join",
            "use join_causal of indexplan_torch.causal, or a function of your own",
        )


def counts_iterations() -> bool:
    """Return whether Fabric's loader names the pass: its number only counts iterations."""
    return callers.look(callers.COUNTING_ITERATIONS) is not None
