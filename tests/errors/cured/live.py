"""The cures of errors of runs whose world changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.errors.catalogue.live import LATER, LIVE, state, stepped
from tests.errors.catalogue.made import OPEN, PLAN
from tests.live.quorums import Rank


def loaded() -> None:
    """Load what state_dict returned, after a step."""
    rank = Rank(LIVE, 0)
    rank.loader.load_state_dict(stepped(Rank(LIVE, 0)).loader.state_dict())


def in_the_loop() -> None:
    """Ask inside the loop, and after next(iter(loader))."""
    rank = Rank(LIVE, 0)
    for _ in rank.loop:
        assert rank.loader.step_size == 4
        rank.decide(counts=True)
        break
    next(iter(rank.loader))
    assert rank.loader.step_size == 3


CURED: dict[str, Callable[[], Any]] = {
    "a live plan that is none": lambda: stepped(Rank(LIVE, 0)),
    "a live plan with the batch size of a rank": lambda: stepped(
        Rank(OPEN.replace(global_batch_size=4), 0)
    ),
    "a live plan with a world size": lambda: stepped(
        Rank(PLAN.replace(global_batch_size=4).replace(world_size=None), 0)
    ),
    "more ranks than a live plan's steps have units": lambda: [
        Rank(LIVE.replace(global_batch_size=10), 0, max_world=9),
        Rank(LIVE, 0, max_world=3),
    ],
    "a step for more ranks than there may be": lambda: [
        stepped(Rank(LIVE.replace(global_batch_size=10), 0), 9),
        stepped(Rank(LIVE, 0), 3),
    ],
    "a step of a later epoch that is too small": lambda: [
        stepped(Rank(LATER.replace(remainder="pad"), 0, keep_bins=False), 10, steps=9),
        stepped(Rank(LATER, 0, keep_bins=False), 1, steps=9),
    ],
    "a live loader asked before its first batch": in_the_loop,
    "a batch of a live loader without a step": lambda: stepped(Rank(LIVE, 0), steps=2),
    "a step that a live loader did not hear of": lambda: stepped(Rank(LIVE, 0), steps=5),
    "a live run's state that is none": loaded,
    "a live run's state of another plan": lambda: [
        loaded(),
        Rank(LIVE, 0).loader.load_state_dict(state(plan="0" * 64), other_plan=True),
    ],
}
