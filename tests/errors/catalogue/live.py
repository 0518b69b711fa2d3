"""Errors of runs whose world changes, with a manager that is told of each quorum."""

from __future__ import annotations

import json
from typing import Any

import indexplan as ip
from indexplan_torch.live import LiveLoader
from tests.errors.catalogue.made import OPEN, PLAN, Case
from tests.live.quorums import Rank, Told
from tests.support.bins import Shrinking

LIVE = ip.Plan(ip.Sequential(10), global_batch_size=4)
LATER = ip.Plan(Shrinking(20), global_batch_size=100)


def made(plan: Any, **options: Any) -> LiveLoader:
    """Make a loader that is refused before it asks its manager."""
    return LiveLoader(range(10), plan, None, **options)


def stepped(rank: Rank, ranks: int = 1, steps: int = 1) -> Rank:
    """Read some steps as the first of so many ranks."""
    for _ in range(steps):
        rank.read(Told(ranks, 0, sync=True), again=False)
        rank.decide(counts=True)
    return rank


def unheard() -> None:
    """Read on where torchft has counted a step that the loader did not hear of."""
    rank = stepped(Rank(LIVE, 0))
    rank.manager.step += 1
    stepped(rank)


def without_a_step() -> None:
    """Ask for a batch, and for the next one."""
    loop = Rank(LIVE, 0).loop
    next(loop), next(loop)


def state(**changes: object) -> dict[str, Any]:
    """Return a state that was edited."""
    return {**Rank(LIVE, 0).loader.state_dict(), **changes}


CASES: list[Case] = [
    ("a live plan that is none", lambda: made(3)),
    ("a live plan with the batch size of a rank", lambda: made(OPEN)),
    ("a live plan with a world size", lambda: made(PLAN.replace(global_batch_size=4))),
    ("a live loader with a ledger", lambda: made(LIVE, ledger="run.ledger")),
    ("more ranks than a live plan's steps have units", lambda: made(LIVE, max_world=9)),
    ("a step for more ranks than there may be", lambda: stepped(Rank(LIVE, 0), 9)),
    (
        "a step of a later epoch that is too small",
        lambda: stepped(Rank(LATER, 0, keep_bins=False), 8, steps=5),
    ),
    ("a live loader asked before its first batch", lambda: Rank(LIVE, 0).loader.step_size),
    ("a batch of a live loader without a step", without_a_step),
    ("a step that a live loader did not hear of", unheard),
    ("a live run's state that is none", lambda: Rank(LIVE, 0).loader.load_state_dict({})),
    (
        "a live run's state of another plan",
        lambda: Rank(LIVE, 0).loader.load_state_dict(state(plan="0" * 64)),
    ),
    (
        "a live run's state of another version",
        lambda: Rank(LIVE, 0).manager.load(json.dumps({"version": 2})),
    ),
]
