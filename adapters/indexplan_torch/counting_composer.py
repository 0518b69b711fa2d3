"""What Composer counts: how it resumes without KeepState.

Nothing of Composer is imported here: where its Trainer asks, it has been.
"""

from __future__ import annotations

import sys
from typing import Any

from indexplan import IndexPlanError
from indexplan.errors import counted
from indexplan_torch.arguments import run_of
from indexplan_torch.callers import Caller, look
from indexplan_torch.cuts import check_together, check_whole
from indexplan_torch.versions import private

IN_COMPOSER = Caller(
    package="mosaicml",
    module="composer.trainer.trainer",
    functions=(
        "Trainer._eval_loop",
        "Trainer._train_loop",
        "Trainer._spin_dataloaders_to_cur_epoch",
    ),
    nearest=True,
    why="Composer's Trainer resumes by drawing as many batches as it had trained on, and asks a "
    "loader for no state",
)


def refuse_counting(run: Any) -> None:
    """Refuse to resume a training without KeepState where that would read other data.

    Parameters
    ----------
    run : Run
        Of the sampler whose pass is set.
    """
    seen = look(IN_COMPOSER)
    if seen is None:
        return
    trainer = seen.values["self"]
    state: Any = getattr(trainer, "state", None)
    if run is not run_of(getattr(state, "train_dataloader", None)):
        if seen.function == "_eval_loop":
            check_whole(run, "Composer")
            check_together(run, "Composer", " or fewer ranks")
        return
    saved = private("mosaicml", trainer, "_rng_state")  # one a rank; None after Composer skipped
    if saved is None or "train" in state.dataset_resumption:
        return
    world_size = sys.modules["composer.utils"].dist.get_world_size()
    if len(saved) != world_size:
        raise IndexPlanError(
            "a resume under composer.Trainer on another number of ranks",
            "must load the loader's state",
            f"a checkpoint of {counted(len(saved), 'rank')} on {world_size}"
            ", whose steps Composer would skip by counting",
            "use Trainer(callbacks=[indexplan_torch.composer.KeepState()]), in the run "
            "that saves too",
        )
