"""Trainers that count for themselves: refused where they would read other data, or tell other sums.

Hugging Face Trainer and Composer load no state of a loader. They go on at the step number that they
saved, which is right only where a pass has the same steps as before. And Hugging Face Trainer
fetches all micro-batches of an update before it trains on the first. What they count is in their
local variables, so this code looks at those, but only to refuse: no batch depends on it.
"""

from __future__ import annotations

import importlib
import sys
from types import FrameType
from typing import Any

from indexplan import IndexPlanError

UNPREPARED = (
    "return the PlanLoader itself from get_train_dataloader, and use "
    "trainer.add_callback(indexplan_torch.transformers.KeepState(trainer))"
)
_DEPTH = 8  # frames from a sampler's method, through loader, torch and callback, to the trainer
_FABRIC = {"lightning.fabric.wrappers", "lightning_fabric.wrappers"}
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


def refuse_fetched_ahead(feed: Any) -> None:
    """Refuse to say which batch a loop holds while Hugging Face Trainer holds an earlier one.

    Raises
    ------
    IndexPlanError
        If the trainer has fetched several micro-batches of this feed, and is not at the last.
    """
    trainer = sys.modules.get("transformers.trainer")
    if trainer is None:
        return
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 (there is no other way)
    while frame is not None:
        if frame.f_globals is vars(trainer) and "batch_samples" in frame.f_locals:
            importlib.import_module(_TRAINERS["transformers.trainer"]).refuse_ahead(feed, frame)
            return
        frame = frame.f_back


def under_transformers() -> bool:
    """Return whether Hugging Face Trainer is calling, through whatever it calls."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 (only the words of an error depend on it)
    while frame is not None and frame.f_globals.get("__name__") != "transformers.trainer":
        frame = frame.f_back
    return frame is not None


def refuse_rows_without_a_batch() -> None:
    """Refuse `join` as a loader's collate_fn where its rows go to a model as they are.

    Raises
    ------
    IndexPlanError
        If Hugging Face Trainer asks the loader for its first batch, for a model of transformers.
    """
    asking = sys._getframe(2)  # noqa: SLF001 (there is no other way)
    if asking.f_globals.get("__name__") != "transformers.trainer":
        return
    models = sys.modules["transformers.modeling_utils"]
    model = getattr(asking.f_locals.get("self"), "model", None)
    if model is not None and any(isinstance(e, models.PreTrainedModel) for e in model.modules()):
        raise IndexPlanError(
            "collate_fn",
            "must return rows with a batch axis under transformers.Trainer, which "
            "passes them to the model",
            "join",
            "use join_causal of indexplan_torch.causal, or a function of your own",
        )


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


def counts_iterations() -> bool:
    """Return whether Fabric's loader names a pass: it counts how often it was asked for batches."""
    # this, Feed.set_epoch_from_trainer, PlanView.set_epoch, _set_sampler_epoch, Fabric's __iter__
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 (there is no other way)
    for _ in range(4):
        frame = None if frame is None else frame.f_back
    return frame is not None and frame.f_globals.get("__name__") in _FABRIC
