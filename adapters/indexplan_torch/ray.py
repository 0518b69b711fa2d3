"""Ray Train's `prepare_data_loader` fetches one batch ahead of the loop, and so would be a state.

Nothing of Ray is imported here: where its wrapper draws, it has been.
"""

from __future__ import annotations

from indexplan import IndexPlanError
from indexplan_torch.callers import Caller, look

FETCHING_AHEAD = Caller(
    package="ray",
    module="ray.train.torch.train_loop_utils",
    functions=("_WrappedDataLoader._prefetch_next_batch",),
    why="it asks a loader for nothing but its batches",
)


def refuse_fetching_ahead() -> None:
    """Refuse to begin a pass for Ray's wrapper, which asks for a batch more than the loop has.

    Raises
    ------
    IndexPlanError
        If it is what draws the batches.
    """
    if look(FETCHING_AHEAD) is not None:
        raise IndexPlanError(
            "a PlanLoader",
            "must be read by the loop itself, as its state counts what is drawn",
            "ray.train.torch.prepare_data_loader, which draws one batch ahead",
            "leave that out, and write batch.to(ray.train.torch.get_device()) in the loop",
        )
