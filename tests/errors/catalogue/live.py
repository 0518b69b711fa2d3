"""Errors of runs whose world changes."""

from __future__ import annotations

import json

import indexplan as ip
from tests.errors.catalogue.made import CURSOR, OPEN, PLAN, Case, without_steps
from tests.support.bins import Shrinking

LIVE = ip.Plan(ip.Sequential(10), global_batch_size=4)


def standing(**changes: object) -> ip.live.Standing:
    """Load a state that was edited."""
    made = ip.live.Standing(LIVE)
    made.load_json(json.dumps({**json.loads(made.to_json()), **changes}))
    return made


def commit_all() -> None:
    """Commit steps until epochs get so short that none has one."""
    made = ip.live.Standing(ip.Plan(Shrinking(9), global_batch_size=4, remainder="drop"))
    while True:
        made.deal(1, 0)
        made.commit()


def deal_later() -> None:
    """Deal the fewer units of a later epoch to as many ranks as before."""
    made = ip.live.Standing(ip.Plan(Shrinking(20), global_batch_size=100))
    while True:
        made.deal(made.max_world, 0)
        made.commit()


CASES: list[Case] = [
    ("a live plan that is none", lambda: ip.live.Standing(3)),  # type: ignore[arg-type]
    ("a live plan with the batch size of a rank", lambda: ip.live.Standing(OPEN)),
    (
        "a live plan with a world size",
        lambda: ip.live.Standing(PLAN.replace(global_batch_size=4)),
    ),
    (
        "a live plan without steps",
        lambda: ip.live.Standing(without_steps(ip.Sequential(3), epoch=2**32 - 1)),
    ),
    ("a live plan whose epochs get too short", commit_all),
    ("a live plan from another cursor", lambda: ip.live.Standing(LIVE, CURSOR)),
    ("more ranks than a live plan's steps have units", lambda: ip.live.Standing(LIVE, max_world=9)),
    ("a step for more ranks than there may be", lambda: ip.live.Standing(LIVE).deal(9, 0)),
    ("a step for a rank that is not there", lambda: ip.live.Standing(LIVE).deal(2, 2)),
    ("a step of a later epoch that is too small", deal_later),
    ("a step committed that nobody was dealt", lambda: ip.live.Standing(LIVE).commit()),
    (
        "the padding of a rank that is not there",
        lambda: ip.live.Standing(LIVE).num_valid(world_size=2, rank=2),
    ),
    ("a standing of another version", lambda: standing(version=1)),
    ("a standing of another plan", lambda: standing(plan="0" * 64)),
    ("a standing whose place is no four numbers", lambda: standing(place=[0, 1])),
    ("a standing past the end of its epoch", lambda: standing(place=[0, 0, 3, 11])),
    ("a standing with another field", lambda: standing(step=1)),
    ("a standing that is no object", lambda: ip.live.Standing(LIVE).load_json("[]")),
]
