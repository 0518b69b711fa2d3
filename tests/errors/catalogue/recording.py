"""Errors of loaders that keep a run's ledger."""

from __future__ import annotations

import os
from typing import Any
from unittest.mock import patch

from torch.utils.data import DataLoader

import indexplan as ip
from tests.errors.catalogue.made import OPEN, Case
from tests.errors.catalogue.torches import first, loader


def kept(**options: Any) -> Any:
    """Make a loader that keeps a ledger."""
    return loader(ledger="run.ledger", **options)


def of_another_run() -> None:
    """Load the state of a run with another ledger."""
    other = loader(ledger="other.ledger", plan=OPEN.replace(batch_size=3))
    first(other)
    resumed = kept()
    resumed.load_state_dict(other.state_dict())
    first(resumed)


def twice() -> None:
    """Read a pass once more."""
    made = kept()
    list(made)
    made.set_epoch(0)
    first(made)


def past_the_end() -> None:
    """Save a state of a pass that does not come next."""
    made = kept()
    list(made)
    made.set_epoch(3)
    made.state_dict()


def never_there() -> None:
    """Start in an epoch that an earlier run has not reached."""
    first(kept())
    made = kept()
    made.set_epoch(3)
    first(made)


def elsewhere() -> None:
    """Return to a line with a plan that starts elsewhere."""
    plan, ledger = OPEN.replace(world_size=1), ip.Ledger("run.ledger")
    ledger.record(plan, plan.cursor(epoch=0, step=3))
    ledger.begin(plan.resume(plan.cursor(epoch=0, step=2)), ledger.hash)


def of_another_process() -> None:
    """Read on in a process that has not begun."""
    made = kept()
    first(made)
    with patch.object(os, "getpid", return_value=1):
        first(made)


def saved_in_a_fork() -> None:
    """Save a state in a process that has not begun."""
    made = kept()
    first(made)
    with patch.object(os, "getpid", return_value=1):
        made.state_dict()


def by_another_loader() -> None:
    """Draw the batches through a DataLoader of torch."""
    first(DataLoader(range(10), batch_sampler=kept().batch_sampler))


def without_it(**options: Any) -> None:
    """Load the state of a run with a ledger in a loader that keeps none."""
    made = kept()
    first(made)
    loader(**options).load_state_dict(made.state_dict())


def without_a_hash() -> None:
    """Load a state that was read on without the ledger."""
    made = kept()
    first(made)
    left = loader(ledger=False)
    left.load_state_dict(made.state_dict())
    next(iter(left))
    made.load_state_dict(left.state_dict())
    first(made)


def for_validation() -> None:
    """Read a second loader with the ledger of the first."""
    training = kept()
    first(training)
    first(kept())


def continued() -> Any:
    """Have another loader continue the run of one that is in a pass; return them, and the pass."""
    made, resumed = kept(), kept()
    batches = iter(made)
    next(batches)
    resumed.load_state_dict(made.state_dict())
    first(resumed)
    return made, resumed, batches


def begun_by_the_first() -> None:
    """Begin a pass of a loader whose run another one has continued."""
    made, _resumed, batches = continued()
    batches.close()
    made.set_epoch(0)
    first(made)


def saved_by_the_first() -> None:
    """Save a state of a loader whose run another one has continued."""
    made, _resumed, batches = continued()
    next(batches)
    try:
        made.state_dict()
    finally:
        made.run.forget()  # or the process's end would come upon the error once more


CASES: list[Case] = [
    ("a ledger that is no path", lambda: loader(ledger=7)),
    ("a ledger of passes that are left", lambda: kept(partial=True)),
    ("a ledger of an evaluation", lambda: kept(evaluation=True)),
    (
        "a state whose ledger is a number",
        lambda: kept().load_state_dict({**loader().state_dict(), "ledger": 7}),
    ),
    ("a state of another ledger", of_another_run),
    ("a state of a run with a ledger, without one", without_it),
    ("a state without a hash for a ledger that holds steps", without_a_hash),
    ("a second loader with the ledger of the first", for_validation),
    ("a pass of a loader whose run another has continued", begun_by_the_first),
    ("a state of a loader whose run another has continued", saved_by_the_first),
    ("a pass read twice, with a ledger", twice),
    ("a state of a pass out of sequence", past_the_end),
    ("a start where the run never stood", never_there),
    ("a return to a line with a start elsewhere", elsewhere),
    ("a ledger of another process", of_another_process),
    ("a state of another process", saved_in_a_fork),
    ("a ledger of another loader's batches", by_another_loader),
    ("a rank that nobody tells", lambda: first(kept(rank=1, world_size=2))),
]
