"""torchdata's `SamplerWrapper` resumes by drawing as many batches as before, on any ranks.

Nothing of torchdata is imported here: where its wrapper draws, it has been.
"""

from __future__ import annotations

from indexplan import IndexPlanError
from indexplan_torch.callers import Caller, look

COUNTING_DRAWS = Caller(
    package="torchdata",
    modules=("torchdata.nodes.adapters",),
    functions=("SamplerWrapper.reset",),
    depth=4,
    why="it asks a sampler that has no state for its iterator, and then for batches",
    otherwise="the loop receives what is drawn",
)


def refuse_counting_draws() -> None:
    """Refuse to be read by a wrapper whose state is a number of batches, whatever ranks drew them.

    Raises
    ------
    IndexPlanError
        If it is what draws the batches.
    """
    if look(COUNTING_DRAWS) is not None:
        raise IndexPlanError(
            "a plan's sampler",
            "must be outside SamplerWrapper, which resumes by its number of batches on any ranks",
            "torchdata.nodes.SamplerWrapper",
            "use torchdata.nodes.IterableWrapper(PlanLoader(dataset, plan))",
        )
