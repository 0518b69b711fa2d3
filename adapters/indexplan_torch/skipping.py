"""Frameworks that skip what a run has trained on by drawing it, where a state was loaded as well.

Both together skip twice. A loader can't tell in general: it is asked for a batch by `next`, whether
the batch is trained on or thrown away. So these frameworks are looked for among the callers, when
the pass begins in which a run is resumed, and then only.
"""

from __future__ import annotations

import sys

from indexplan import IndexPlanError
from indexplan_torch.callers import WHOLE, Caller, look

_RESUME = "load_state_dict and plan.resume"
# package, module, class, method that draws, where it keeps how many it skips, and what to leave out
_SKIP = (
    (
        "mmengine",
        "mmengine.runner.loops",
        "IterBasedTrainLoop",
        "run",
        "iter",
        f"{_RESUME}, and resume on as many ranks and with the same batch size",
    ),
    (
        "accelerate",
        "accelerate.data_loader",
        "SkipBatchSampler",
        "__iter__",
        "skip_batches",
        f"skip_first_batches, or {_RESUME}",
    ),
)


def refuse_skipping() -> None:
    """Refuse to begin the pass of a resume for a framework that will skip batches of it itself.

    Raises
    ------
    IndexPlanError
        If mmengine's IterBasedTrainLoop continues a run, or accelerate's skip_first_batches draws
        from the sampler.
    """
    for package, module, owner, function, counts, cure in _SKIP:
        found = sys.modules.get(module)
        if found is None:
            continue
        caller = Caller(
            package=package,
            owner=getattr(found, owner),
            functions=(function,),
            depth=WHOLE,
            why="it draws what it throws away as it draws what it trains on",
            otherwise="what is drawn is trained on",
        )
        seen = look(caller)
        if seen is not None and (skipped := int(getattr(seen["self"], counts))):
            raise IndexPlanError(
                "a loader that was resumed",
                "must be the only one that skips what the run has read",
                f"{package}'s {owner}, which skips {skipped} once more",
                f"leave out {cure}",
            )
