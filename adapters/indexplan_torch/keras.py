"""Keras's backends but that of torch draw batches ahead of the training, and so would be a state.

Keras asks whatever it is given for `__array__` before it takes it for a loader of torch, and what
the backend is it says itself, so no caller has to be looked for.
"""

from __future__ import annotations

import sys

from indexplan import IndexPlanError
from indexplan_torch.versions import private


def refuse_drawing_ahead() -> None:
    """Refuse Keras on JAX or TensorFlow, which draw before they train.

    Raises
    ------
    IndexPlanError
        If Keras has another backend than torch.
    """
    backend = private("keras", sys.modules["keras"], "config", "backend")()
    if backend != "torch":
        raise IndexPlanError(
            "a PlanLoader under Keras",
            "must be read by the backend of torch, as its state counts what is drawn",
            f"{backend}, which may draw ahead of the training",
            "set KERAS_BACKEND=torch in the environment",
        )
