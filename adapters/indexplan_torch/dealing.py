"""Accelerate deals a rank's own batches out to ranks, and Ray Train fetches them ahead of the loop.

`accelerator.prepare` reads what our loaders and samplers refuse, unless it or `prepare_data_loader`
is to use a seedable sampler. So who draws from a sampler is looked at too, where Accelerate is
imported and no PlanLoader has begun the pass.

A loader in Ray's `prepare_data_loader` is one batch ahead of the loop, and so would be its state.
"""

from __future__ import annotations

from indexplan import IndexPlanError
from indexplan_torch.callers import Caller, look

DEALING_OUT = Caller(
    package="accelerate",
    modules=("accelerate.data_loader",),
    functions=(
        "BatchSamplerShard._iter_with_no_split",
        "BatchSamplerShard._iter_with_split",
    ),
    depth=7,
    why="with a seedable sampler, Accelerate reads nothing of ours before it draws",
    otherwise="a rank gets the batches that are drawn",
)

DISPATCHING = Caller(
    package="accelerate",
    modules=("accelerate.data_loader",),
    functions=("DataLoaderDispatcher.__iter__", "DataLoaderDispatcher._fetch_batches"),
    depth=14,
    why="with dispatch_batches, Accelerate reads nothing of ours before rank 0 draws for all",
    otherwise="a rank gets the batches that are drawn",
)
FETCHING_AHEAD = Caller(
    package="ray",
    modules=("ray.train.torch.train_loop_utils",),
    functions=("_WrappedDataLoader._prefetch_next_batch",),
    depth=4,
    why="it asks a loader for nothing but its batches",
    otherwise="the loop receives what is drawn",
)


def dealt_out() -> IndexPlanError:
    """Return the error of a sampler that Accelerate deals out again."""
    return IndexPlanError(
        "a plan's sampler",
        "must not be given to accelerator.prepare, which would deal its batches out again",
        "one of this rank",
        "use indexplan_torch.accelerate.prepare(accelerator, PlanLoader(dataset, plan))",
    )


def refuse_dealing_out(world_size: int | None) -> None:
    """Refuse to hand one rank's batches, of several, to Accelerate, which deals them to all.

    Raises
    ------
    IndexPlanError
        If it is what draws them.
    """
    if look(DEALING_OUT) is not None:
        raise dealt_out()
    seen = look(DISPATCHING)
    if seen is not None and world_size != 1 and hasattr(seen["self"], "_fetch_batches"):
        raise dealt_out()


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
