"""The cures of errors of runs whose world changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import indexplan as ip
from tests.errors.catalogue.live import LIVE
from tests.errors.catalogue.made import CURSOR, OPEN, PLAN, without_steps
from tests.support.bins import Shrinking

SHRINKING = ip.Plan(Shrinking(9), global_batch_size=4, remainder="drop")
LATER = ip.Plan(Shrinking(20), global_batch_size=100)
WITHOUT_STEPS = without_steps(ip.Sequential(3), epoch=2**32 - 1)


def stepped(made: ip.live.Standing, ranks: int = 1, steps: int = 1) -> ip.live.Standing:
    """Deal and commit some steps."""
    for _ in range(steps):
        for rank in range(ranks):
            made.deal(ranks, rank)
        made.commit()
    return made


def loaded() -> None:
    """Load what to_json returned, after a step."""
    made = stepped(ip.live.Standing(LIVE), 2)
    ip.live.Standing(LIVE).load_json(made.to_json())


CURED: dict[str, Callable[[], Any]] = {
    "a live plan that is none": lambda: ip.live.Standing(LIVE),
    "a live plan with the batch size of a rank": lambda: stepped(
        ip.live.Standing(OPEN.replace(global_batch_size=4))
    ),
    "a live plan with a world size": lambda: stepped(
        ip.live.Standing(PLAN.replace(global_batch_size=4).replace(world_size=None))
    ),
    "a live plan without steps": lambda: [
        stepped(ip.live.Standing(WITHOUT_STEPS.replace(global_batch_size=2))),
        stepped(ip.live.Standing(WITHOUT_STEPS.replace(remainder="spread"))),
    ],
    "a live plan whose epochs get too short": lambda: [
        stepped(ip.live.Standing(SHRINKING.replace(global_batch_size=1)), steps=20),
        stepped(ip.live.Standing(SHRINKING.replace(remainder="spread")), steps=20),
    ],
    "a live plan from another cursor": lambda: stepped(
        ip.live.Standing(LIVE.replace(sub_epochs=2), CURSOR)
    ),
    "more ranks than a live plan's steps have units": lambda: [
        ip.live.Standing(LIVE.replace(global_batch_size=10), max_world=9),
        ip.live.Standing(LIVE, max_world=3),
    ],
    "a step for more ranks than there may be": lambda: [
        stepped(ip.live.Standing(LIVE.replace(global_batch_size=10)), 9),
        stepped(ip.live.Standing(LIVE), 3),
    ],
    "a step for a rank that is not there": lambda: ip.live.Standing(LIVE).deal(3, 2),
    "a step of a later epoch that is too small": lambda: [
        stepped(ip.live.Standing(LATER.replace(remainder="pad")), 10, steps=9),
        stepped(ip.live.Standing(LATER), 1, steps=9),
    ],
    "a step committed that nobody was dealt": lambda: stepped(ip.live.Standing(LIVE)),
    "the padding of a rank that is not there": lambda: ip.live.Standing(LIVE).num_valid(
        world_size=3, rank=2
    ),
    "a standing of another plan": loaded,
    "a standing past the end of its epoch": lambda: stepped(
        ip.live.Standing(LIVE, LIVE.cursor(0, step=2))
    ),
    **dict.fromkeys(
        [
            "a standing whose place is no four numbers",
            "a standing with another field",
            "a standing that is no object",
        ],
        loaded,
    ),
}
