"""Errors of streams, from which loops draw as many units as they need."""

from __future__ import annotations

import copy
from collections.abc import Callable
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


# the cures, followed


def drawn() -> None:
    """Draw all that a run's last step has left."""
    stream = ip.stream(WHOLE, WHOLE.cursor(2**32 - 1, step=2), rank=0)
    stream.draw(stream.num_left)


def given_back() -> None:
    """Give back all that is in hand."""
    stream = ip.stream(WHOLE, rank=0)
    stream.draw(2)
    stream.give_back(stream.num_in_hand)


def trained() -> None:
    """Count all that is in hand as trained."""
    stream = ip.stream(WHOLE, rank=0)
    stream.draw(2)
    stream.trained(stream.num_in_hand)


def reloaded() -> None:
    """Load a stream's state, as it returned it, into another."""
    stream = ip.stream(WHOLE, rank=0)
    stream.draw(1)
    stream.trained(1)
    ip.stream(WHOLE, rank=0).load_state_dict(stream.state_dict())


def of_two_sub_epochs() -> None:
    """Load a state whose cursor has two sub-epochs."""
    stream = ip.stream(WHOLE.replace(sub_epochs=2), rank=0)
    stream.load_state_dict({**stream.state_dict(), "cursor": CURSOR.to_dict()})


CURED: dict[str, Callable[[], Any]] = {
    "a stream of a plan that drops": lambda: ip.stream(EMPTY.replace(remainder="spread"), rank=0),
    "a stream of a balanced plan": lambda: ip.stream(
        WHOLE.replace(balance=ip.Balance([1] * 10)).replace(balance=None), rank=0
    ),
    "a draw past the run": drawn,
    "units given back that nobody drew": given_back,
    "units trained that nobody drew": trained,
    "a stream that is copied": reloaded,
    "a state of a stream that is none": reloaded,
    "a state of a stream with another field": reloaded,
    "a state of a stream with a count below 0": reloaded,
    "a state of a stream whose counts do not add up": reloaded,
    "a state of a stream of other sub-epochs": of_two_sub_epochs,
    "a draw of less than nothing": lambda: ip.stream(WHOLE, rank=0).draw(3),
    "a stream from the cursor of another plan": lambda: ip.stream(
        PLAN.replace(sub_epochs=1), WHOLE.start, rank=0
    ),
}
