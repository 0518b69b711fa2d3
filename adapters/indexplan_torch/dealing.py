"""Accelerate deals batches out to ranks, where they are a rank's own already.

`accelerator.prepare` reads what our loaders and samplers refuse, unless it or `prepare_data_loader`
is to use a seedable sampler. So who draws from a sampler is looked at too, where Accelerate is
imported and no PlanLoader has begun the pass.
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


def dealt_out() -> IndexPlanError:
    """Return the error of a sampler that Accelerate deals out again."""
    return IndexPlanError(
        "a plan's sampler",
        "must not be given to accelerator.prepare, which would deal its batches out again",
        "one of this rank",
        "use indexplan_torch.accelerate.prepare(accelerator, PlanLoader(dataset, plan))",
    )


def refuse_dealing_out() -> None:
    """Refuse to hand a rank's batches to Accelerate's BatchSamplerShard.

    Raises
    ------
    IndexPlanError
        If it is what draws them.
    """
    if look(DEALING_OUT) is not None:
        raise dealt_out()
