"""What frameworks do with a plan's batches and tell no loader, so that data would be read wrongly.

Hugging Face Trainer and Composer count steps, Accelerate deals a rank's batches out to all ranks,
Ray and Keras fetch ahead, mmengine skips and torchdata draws again. `transformers`, `accelerate`
and `drawing` refuse what they can detect. They are imported only if a framework has been, and only
when a loader's length is taken, or a sampler's pass is set or begun, so an ordinary pass inspects
no callers; for Ray and mmengine, when a loader begins a pass; for Keras, when something asks a
loader for `__array__`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from indexplan import IndexPlanError

_OURS = {
    "transformers.trainer": "transformers",
    "accelerate.data_loader": "accelerate",
    "composer.trainer.trainer": "drawing",
    "ray.train.torch.train_loop_utils": "drawing",
    "mmengine.runner.loops": "drawing",
    "keras": "drawing",
    "torchdata.nodes.adapters": "drawing",
}


def refuse_under(framework: str, what: str, *arguments: Any) -> None:
    """If a module of a framework is imported, ask our file of it for what it refuses.

    Parameters
    ----------
    framework : str
        The module.
    what : str
        The function of our file, such as "refuse_counting".
    *arguments
        The function's.

    Raises
    ------
    IndexPlanError
        If the framework does that.
    """
    if framework in sys.modules:
        getattr(import_module(f"indexplan_torch.{_OURS[framework]}"), what)(*arguments)


def dealt_out(what: str, by: str = "accelerator.prepare") -> IndexPlanError:
    """Return the error of what reads a plan, and would be dealt out again by Accelerate."""
    return IndexPlanError(
        what,
        f"must not be given to {by}, which would deal its batches out again",
        "one of this rank",
        "use indexplan_torch.accelerate.prepare(accelerator, PlanLoader(dataset, plan)); under "
        "transformers.Trainer, use indexplan_torch.transformers.use_plan(trainer, plan)",
    )
