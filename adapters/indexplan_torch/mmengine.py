"""mmengine resumes by drawing and discarding batches, even if the loader has loaded its state.

Together they would skip twice. A loader can't tell whether a batch will be trained on or thrown
away. So, if mmengine is imported, its loop is looked for among the callers, but only when the pass
begins in which a run is resumed.
"""

from __future__ import annotations

from indexplan import IndexPlanError
from indexplan_torch.callers import Caller, look

SKIPPING = Caller(
    package="mmengine",
    module="mmengine.runner.loops",
    functions=("IterBasedTrainLoop.run",),
    why="it draws what it throws away as it draws what it trains on",
)


def refuse_skipping() -> None:
    """Refuse to begin the pass of a resume for a loop of mmengine that will skip a part of it.

    Raises
    ------
    IndexPlanError
        If mmengine's IterBasedTrainLoop continues a run.
    """
    seen = look(SKIPPING)
    if seen is not None and (skipped := int(seen.values["self"].iter)):
        raise IndexPlanError(
            "a loader that was resumed",
            "must be the only one that skips what the run has read",
            f"mmengine's IterBasedTrainLoop, which skips {skipped} once more",
            "leave out load_state_dict and plan.resume, and resume on as many ranks and with the "
            "same batch size",
        )
