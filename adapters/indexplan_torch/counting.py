"""Trainers that resume by counting steps: refused where they would read other data.

Hugging Face Trainer and Composer load no state of a loader. They go on at the step number that they
saved, which is right only where a pass has the same steps as before. What they saved is in their
local variables, so this code looks at those, but only to refuse: no batch depends on it.
"""

from __future__ import annotations

import importlib
import sys
from types import FrameType
from typing import Any

_DEPTH = 8  # frames from a sampler's method, through loader, torch and callback, to the trainer
_TRAINERS = {
    "transformers.trainer": "indexplan_torch.transformers",
    "composer.trainer.trainer": "indexplan_torch.composer",
}


def refuse_counting(feed: Any) -> None:
    """If one of these trainers is asking for a pass, let its callback's module check that.

    Raises
    ------
    IndexPlanError
        If the trainer resumes by counting steps that are not those of this plan.
    """
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 (there is no other way)
    for _ in range(_DEPTH):
        if frame is None:
            return
        module = _TRAINERS.get(frame.f_globals.get("__name__", ""))
        if module is not None:
            importlib.import_module(module).refuse_counting(feed, frame)
            return
        frame = frame.f_back


def refuse_counting_bins(feed: Any) -> None:
    """Refuse to tell Composer how many bins a batch has, where it means samples.

    Raises
    ------
    IndexPlanError
        If Composer would cut batches into micro-batches by that number.
    """
    if feed.form.keep_bins or not feed.plan.order.deals_bins:
        return
    frame = sys._getframe(2)  # noqa: SLF001 (there is no other way)
    if frame.f_globals.get("__name__", "").startswith("composer."):
        module = importlib.import_module("indexplan_torch.composer")
        module.refuse_counting_bins(frame)
