"""Lightning's Trainer, which `configure_optimizers` asks for `estimated_stepping_batches`.

Trainer makes its loaders for that before it loads the checkpoint, and then drops a stateful
loader's state: https://github.com/Lightning-AI/pytorch-lightning/issues/20550.
"""

from __future__ import annotations

from tests.runs.frameworks import lightning_trainer
from tests.runs.frameworks.lightning_trainer import Estimating
from tests.runs.row import Leg, Steps

ENDLESS = False


def ours(leg: Leg) -> Steps:
    """Read a PlanLoader."""
    return lightning_trainer.ours(leg, Estimating)


def theirs(leg: Leg) -> Steps:
    """Read by the DistributedSampler that Lightning puts in."""
    return lightning_trainer.theirs(leg, Estimating)


def recommended(leg: Leg) -> Steps:
    """Read by torchdata's loader."""
    return lightning_trainer.recommended(leg, Estimating)
