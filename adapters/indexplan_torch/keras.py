"""Keras's backends but that of torch draw batches ahead of the training, and so would be a state.

Nothing of Keras is imported here: where its adapter draws, it has been.
"""

from __future__ import annotations

from indexplan import IndexPlanError
from indexplan_torch.callers import Caller, look

DRAWING_AHEAD = Caller(
    package="keras",
    module="keras.src.trainers.data_adapters.torch_data_loader_adapter",
    functions=(
        "TorchDataLoaderAdapter.get_numpy_iterator",
        "TorchDataLoaderAdapter.get_tf_dataset",
    ),
    depth=5,
    why="it asks a loader for nothing but its batches and its length",
    otherwise="the loop receives what is drawn",
)


def refuse_drawing_ahead() -> None:
    """Refuse to begin a pass for Keras on JAX or TensorFlow, which draw before they train.

    Raises
    ------
    IndexPlanError
        If Keras turns the batches into arrays, as it does for these backends alone.
    """
    if look(DRAWING_AHEAD) is not None:
        raise IndexPlanError(
            "a PlanLoader under Keras",
            "must be read by the backend of torch, as its state counts what is drawn",
            "another backend, which may draw ahead of the training",
            "set KERAS_BACKEND=torch in the environment",
        )
