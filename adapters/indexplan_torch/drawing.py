"""Frameworks that draw batches which no loop receives, or draw and discard them to resume.

They tell a loader nothing of it, so that its state would count what they draw. Nothing of them is
imported here: where one of them asks, it has been. All but Keras are looked for among the callers.
"""

from __future__ import annotations

import sys
from typing import Any

from indexplan import IndexPlanError
from indexplan.errors import counted
from indexplan_torch.arguments import run_of
from indexplan_torch.callers import Caller, look
from indexplan_torch.cuts import check_together, check_whole
from indexplan_torch.versions import private

IN_COMPOSER = Caller(
    package="mosaicml",
    module="composer.trainer.trainer",
    functions=(
        "Trainer._eval_loop",
        "Trainer._train_loop",
        "Trainer._spin_dataloaders_to_cur_epoch",
    ),
    nearest=True,
    why="Composer's Trainer resumes by drawing as many batches as it had trained on, and asks a "
    "loader for no state",
)
FETCHING_AHEAD = Caller(
    package="ray",
    module="ray.train.torch.train_loop_utils",
    functions=("_WrappedDataLoader._prefetch_next_batch",),
    why="it asks a loader for nothing but its batches",
)
SKIPPING = Caller(
    package="mmengine",
    module="mmengine.runner.loops",
    functions=("IterBasedTrainLoop.run",),
    why="it draws what it throws away as it draws what it trains on",
)
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


def refuse_counting_steps(run: Any) -> None:
    """Refuse to resume a training without KeepState where Composer's count would read other data.

    Parameters
    ----------
    run : Run
        Of the sampler whose pass is set.
    """
    seen = look(IN_COMPOSER)
    if seen is None:
        return
    trainer = seen.values["self"]
    state: Any = getattr(trainer, "state", None)
    if run is not run_of(getattr(state, "train_dataloader", None)):
        if seen.function == "_eval_loop":
            check_whole(run, "Composer")
            check_together(run, "Composer", " or fewer ranks")
        return
    saved = private("mosaicml", trainer, "_rng_state")  # one a rank; None after Composer skipped
    if saved is None or "train" in state.dataset_resumption:
        return
    world_size = sys.modules["composer.utils"].dist.get_world_size()
    if len(saved) != world_size:
        raise IndexPlanError(
            "a resume under composer.Trainer on another number of ranks",
            "must load the loader's state",
            f"a checkpoint of {counted(len(saved), 'rank')} on {world_size}"
            ", whose steps Composer would skip by counting",
            "use Trainer(callbacks=[indexplan_torch.composer.KeepState()]), in the run "
            "that saves too",
        )


def refuse_fetching_ahead() -> None:
    """Refuse to begin a pass for the wrapper of Ray Train's `prepare_data_loader`.

    It asks for one batch more than the loop has, which would be a state.
    """
    if look(FETCHING_AHEAD) is not None:
        raise IndexPlanError(
            "a PlanLoader",
            "must be read by the loop itself, as its state counts what is drawn",
            "ray.train.torch.prepare_data_loader, which draws one batch ahead",
            "leave that out, and write batch.to(ray.train.torch.get_device()) in the loop",
        )


def refuse_skipping() -> None:
    """Refuse to begin the pass of a resume for a loop of mmengine that will skip a part of it.

    mmengine resumes by drawing and discarding batches, even if the loader has loaded its state, so
    that together they would skip twice. A loader can't tell whether a batch will be trained on or
    thrown away.
    """
    seen = look(SKIPPING)
    if seen is not None and (skipped := int(seen.values["self"].iter)):
        raise IndexPlanError(
            "a loader that was resumed",
            "must be the only one that skips what the run has read",
            f"mmengine's IterBasedTrainLoop, which skips {skipped} once more",
            "leave out load_state_dict and plan.resume, and resume on as many ranks and with the "
            "same batch size",
        )


def refuse_counting_draws() -> None:
    """Refuse to be read by a node of torchdata's that has no state to load.

    It resumes by drawing as many batches as before, whatever ranks drew them: itself, or through a
    loader without a state.
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


def refuse_drawing_ahead() -> None:
    """Refuse Keras on JAX or TensorFlow, which may draw batches ahead of the training.

    Keras asks whatever it is given for `__array__` before it takes it for a loader of torch, and
    what the backend is it says itself, so no caller has to be looked for.
    """
    backend = private("keras", sys.modules["keras"], "config", "backend")()
    if backend != "torch":
        raise IndexPlanError(
            "a PlanLoader under Keras",
            "must be read by the backend of torch, as its state counts what is drawn",
            f"{backend}, which may draw ahead of the training",
            "set KERAS_BACKEND=torch in the environment",
        )
