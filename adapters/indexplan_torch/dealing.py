"""Accelerate deals batches out to ranks, where they are a rank's own already.

`accelerator.prepare` reads what our loaders and samplers refuse, unless it or `prepare_data_loader`
is to use a seedable sampler. So who draws from a sampler is looked at too, where Accelerate is
imported and no PlanLoader has begun the pass.
"""

from __future__ import annotations

import sys

from indexplan import IndexPlanError

_MODULE = "accelerate.data_loader"


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
    if _MODULE not in sys.modules:
        return
    from indexplan_torch.callers import Caller, look

    caller = Caller(
        package="accelerate",
        modules=(_MODULE,),
        functions=(
            "BatchSamplerShard._iter_with_no_split",
            "BatchSamplerShard._iter_with_split",
        ),
        depth=7,
        why="with a seedable sampler, Accelerate reads nothing of ours before it draws",
        otherwise="a rank gets the batches that are drawn",
    )
    if look(caller) is not None:
        raise dealt_out()
