"""torchdata's nodes resume what has no state by drawing as many batches as before, on any ranks.

Nothing of torchdata is imported here: where its nodes draw, it has been.
"""

from __future__ import annotations

from indexplan import IndexPlanError
from indexplan_torch.callers import Caller, look

COUNTING_DRAWS = Caller(
    package="torchdata",
    module="torchdata.nodes.adapters",
    functions=(
        "SamplerWrapper.reset",
        "SamplerWrapper.next",
        "IterableWrapper.reset",
        "IterableWrapper.next",
    ),
    why="it asks a sampler that has no state for its iterator, and then for batches",
)


def refuse_counting_draws() -> None:
    """Refuse to be read by a node whose state is a number of batches, whatever ranks drew them.

    Raises
    ------
    IndexPlanError
        If it is what draws the batches, itself or through a loader without a state.
    """
    seen = look(COUNTING_DRAWS)
    if seen is None:
        return
    node = seen.values["self"]
    source = getattr(node, "sampler", None) or getattr(node, "iterable", None)
    if not hasattr(source, "state_dict"):
        name = type(node).__name__
        raise IndexPlanError(
            "a plan's sampler",
            f"must be outside {name}, which resumes by its number of batches on any ranks",
            f"torchdata.nodes.{name}",
            "use torchdata.nodes.IterableWrapper(PlanLoader(dataset, plan))",
        )
