"""Errors of streams, from which loops draw as many units as they need."""

from __future__ import annotations

import copy
from typing import Any

import indexplan as ip
from tests.errors.catalogue.made import CURSOR, EMPTY, PLAN, WHOLE, Case

LAST = ip.stream(WHOLE, WHOLE.cursor(2**32 - 1, step=2), rank=0)


def load(**changes: Any) -> None:
    """Load a state that was edited."""
    stream = ip.stream(WHOLE, rank=0)
    stream.load_state_dict({**stream.state_dict(), **changes})


CASES: list[Case] = [
    ("a stream of a plan that drops", lambda: ip.stream(EMPTY, rank=0)),
    (
        "a stream of a balanced plan",
        lambda: ip.stream(WHOLE.replace(balance=ip.Balance([1] * 10)), rank=0),
    ),
    ("a stream of no plan", lambda: ip.stream(WHOLE.order, rank=0)),  # type: ignore[arg-type]
    ("a stream from no cursor", lambda: ip.stream(WHOLE, 4, rank=0)),  # type: ignore[arg-type]
    ("a stream of an open world", lambda: ip.stream(WHOLE.replace(world_size=None), rank=0)),
    ("a draw of less than nothing", lambda: LAST.draw(-1)),
    ("a draw past the run", lambda: LAST.draw(9)),
    ("units given back that nobody drew", lambda: LAST.give_back(1)),
    ("units trained that nobody drew", lambda: LAST.trained(1)),
    ("a stream that is copied", lambda: copy.copy(LAST)),
    ("a state of a stream that is none", lambda: LAST.load_state_dict([])),  # type: ignore[arg-type]
    ("a state of a stream with another field", lambda: load(pass_=1)),
    ("a state of a stream of another version", lambda: load(version=2)),
    ("a state of a stream with a count below 0", lambda: load(num_trained=-1)),
    ("a state of a stream whose counts do not add up", lambda: load(num_trained=1)),
    ("a state of a stream of other sub-epochs", lambda: load(cursor=CURSOR.to_dict())),
    ("a stream from the cursor of another plan", lambda: ip.stream(PLAN, WHOLE.start, rank=0)),
]
