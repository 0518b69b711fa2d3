"""Refuse trainers that count steps themselves, if they would read other data or report wrong sums.

Hugging Face Trainer and Composer don't load a loader's state. They continue at the step number that
they saved, which is right only if a pass has the same steps as before. Hugging Face Trainer also
fetches all micro-batches of an update before it trains on the first. Their counts are local
variables, so `counting_transformers` and `counting_composer` look at those, but only to refuse: no
batch depends on it. They are imported where the trainer is, and look where it asks a loader for its
length, or a sampler to set a pass, so that a plain pass takes no look.
"""

from __future__ import annotations

import sys
from typing import Any

from indexplan_torch.arguments import loaded

UNDER_TRAINER = (
    "; under transformers.Trainer, use indexplan_torch.transformers.use_plan(trainer, plan)"
)


def refuse_counting(run: Any) -> None:
    """If Hugging Face Trainer asks how long a pass is, check that it counts like the plan.

    Raises
    ------
    IndexPlanError
        If the trainer resumes by counting steps that are not this plan's, or can't take its
        batches.
    """
    if "transformers.trainer" in sys.modules:
        from indexplan_torch import counting_transformers

        counting_transformers.refuse_counting(run)


def refuse_composers_counting(run: Any) -> None:
    """If Composer's Trainer sets a sampler's pass, check that it counts like the plan.

    Raises
    ------
    IndexPlanError
        If the trainer resumes by counting steps that are not this plan's.
    """
    if "composer.trainer.trainer" in sys.modules:
        from indexplan_torch import counting_composer

        counting_composer.refuse_counting(run)


def refuse_fetched_ahead(run: Any) -> None:
    """Refuse to name the current batch while Hugging Face Trainer is still at an earlier one.

    Raises
    ------
    IndexPlanError
        If the trainer has fetched several micro-batches of this run and is not at the last.
    """
    refuse_ahead = loaded("counting_transformers", "refuse_ahead")
    if refuse_ahead is not None:
        refuse_ahead(run)


def refuse_dealing_out(run: Any) -> None:
    """Refuse to hand a rank's batches to Accelerate, which would deal them out to ranks again.

    Raises
    ------
    IndexPlanError
        If it is what draws them.
    """
    if "accelerate.data_loader" in sys.modules:
        from indexplan_torch import dealing

        dealing.refuse_dealing_out(run.running()[0].world_size)
