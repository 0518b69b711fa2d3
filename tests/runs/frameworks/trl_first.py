"""GRPOTrainer as in `trl`, of which the first epoch is counted."""

from __future__ import annotations

import indexplan as ip
from tests.runs.frameworks.trl import trained
from tests.runs.row import Leg, Steps

ENDLESS = True


def ours(leg: Leg) -> Steps:
    """Read the prompts by a plan."""
    return trained(leg, ip.Shuffle(leg.samples, seed=1), epoch=0)


def theirs(leg: Leg) -> Steps:
    """Read them as TRL's RepeatSampler does."""
    return trained(leg, None, epoch=0)
