"""Errors of loaders that keep a run's ledger."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
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


# the cures, followed


def state_of(made: Any, steps: int = 1) -> dict[str, Any]:
    """Read some steps of a loader, and return its state."""
    batches = iter(made)
    for _ in range(steps):
        next(batches)
    state = made.state_dict()
    batches.close()
    made.run.forget()  # as the end of its process does
    return dict(state)


def reloaded(state: dict[str, Any], **options: Any) -> None:
    """Load a state in a loader that goes on with the run."""
    made = loader(**{"ledger": "run.ledger", **options})
    made.load_state_dict(state)
    first(made)


def of_its_own_run() -> None:
    """Load a state with the ledger of its run, and with a copy of it."""
    plan = OPEN.replace(batch_size=3)
    state = state_of(loader(ledger="other.ledger", plan=plan))
    Path("copy.ledger").write_bytes(Path("other.ledger").read_bytes())
    reloaded(state, plan=plan, ledger="other.ledger")
    reloaded(state, plan=plan, ledger="copy.ledger")


def with_or_without() -> None:
    """Load a state with the ledger, and without one for good."""
    state = state_of(kept())
    reloaded(state)
    reloaded(state, ledger=False)


def with_the_hash() -> None:
    """Load a state that was read on without the ledger with a new file, and one of the ledger's."""
    state = state_of(kept())
    left = loader(ledger=False)
    left.load_state_dict(state)
    next(iter(left))
    reloaded(left.state_dict(), ledger="new.ledger")
    reloaded(state)


def without_a_ledger() -> None:
    """Read a second loader without the ledger of the first, and one that continues its run."""
    training = kept()
    batches = iter(training)
    next(batches)
    list(loader())
    reloaded(training.state_dict())


def once_deleted() -> None:
    """Begin with another loader where the first is deleted."""
    training = loader(ledger="once.ledger")
    state = state_of(training)
    del training
    reloaded(state, ledger="once.ledger")


def read_on() -> None:
    """Read on, to the end, the loader that has loaded the state, and save its own."""
    made, resumed = kept(), kept()
    batches = iter(made)
    next(batches)
    resumed.load_state_dict(made.state_dict())
    list(resumed)
    resumed.state_dict()


def in_sequence() -> None:
    """Read passes once and in sequence, then go back by a state."""
    made = kept()
    state = made.state_dict()
    for epoch in range(3):
        made.set_epoch(epoch)
        list(made)
    made.state_dict()
    made.load_state_dict(state)
    list(made)


def by_a_state() -> None:
    """Start in the epoch of a checkpoint."""
    Path("run.ledger").unlink()  # that of another run
    made = kept()
    for epoch in range(3):
        made.set_epoch(epoch)
        list(made)
    state = made.state_dict()
    made.run.forget()
    reloaded(state)


def as_read() -> None:
    """Record what was read up to the later epoch, and start there."""
    first(kept())
    ledger = ip.Ledger("run.ledger")
    ledger.record(ledger.plan.resume(ledger.cursor), ledger.plan.cursor(3, step=0))
    made = kept()
    made.set_epoch(3)
    first(made)


def as_skipped() -> None:
    """Move the loader from where the run stands, or begin there."""
    Path("run.ledger").unlink()  # that of another run
    first(kept())
    ledger = ip.Ledger("run.ledger")
    later = OPEN.resume(ledger.plan.cursor(3, step=0))
    made = kept(plan=OPEN.resume(ledger.cursor))
    made.move(later)
    first(made)
    made.run.forget()
    later = ip.Ledger("run.ledger").plan.resume(ledger.plan.cursor(5, step=0))
    ip.Ledger("run.ledger").begin(later, skip=True)


def back_to_a_line() -> None:
    """Return to a line with a plan that starts there, or in a ledger of its own."""
    plan, ledger = OPEN.replace(world_size=1), ip.Ledger("run.ledger")
    ledger.record(plan, plan.cursor(epoch=0, step=3))
    ledger.begin(plan.resume(plan.cursor(epoch=0, step=3)), ledger.hash)
    ip.Ledger("own.ledger").begin(plan.resume(plan.cursor(epoch=0, step=2)))


def in_the_process() -> None:
    """Make the loader in the process that reads it."""
    state = state_of(kept())
    with patch.object(os, "getpid", return_value=1):
        made = kept()
        made.load_state_dict(state)
        state_of(made)


def skipped_by_a_state() -> None:
    """Load a state where batches were to be skipped."""
    reloaded(state_of(kept(), steps=3))


def kept_by_rank_0() -> None:
    """Leave the ledger to rank 0, and load its state on the other."""
    state = state_of(kept(rank=0, world_size=2))
    for rank in (0, 1):
        made = (
            kept(rank=0, world_size=2) if not rank else loader(ledger=False, rank=1, world_size=2)
        )
        made.load_state_dict(state)
        first(made)


CURED: dict[str, Callable[[], Any]] = {
    "a ledger that is no path": lambda: [
        first(kept()),
        first(loader(ledger=ip.Ledger("other.ledger"))),
    ],
    "a ledger of passes that are left": lambda: [first(kept()), first(loader(partial=True))],
    "a ledger of an evaluation": lambda: [first(kept()), first(loader(evaluation=True))],
    "a state whose ledger is a number": lambda: reloaded(state_of(kept())),
    "a state of another ledger": of_its_own_run,
    "a state of a run with a ledger, without one": with_or_without,
    "a state without a hash for a ledger that holds steps": with_the_hash,
    "a second loader with the ledger of the first": lambda: [without_a_ledger(), once_deleted()],
    "a pass of a loader whose run another has continued": read_on,
    "a state of a loader whose run another has continued": read_on,
    "a pass read twice, with a ledger": in_sequence,
    "a state of a pass out of sequence": in_sequence,
    "a start where the run never stood": lambda: [as_read(), as_skipped(), by_a_state()],
    "a return to a line with a start elsewhere": back_to_a_line,
    "a ledger of another process": in_the_process,
    "a state of another process": in_the_process,
    "a ledger of another loader's batches": skipped_by_a_state,
    "a rank that nobody tells": kept_by_rank_0,
}
