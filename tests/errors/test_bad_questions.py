"""What a plan has no answer to is refused when it is asked, by a message that says why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import indexplan as ip
from tests.support.refusals import EMPTY, PLAN, RESUMED, WHOLE, refuses

QUESTIONS = ["batch", "units"]
RANGES = ["indices", "batches", "batch_sizes"]
WHICH = "pass one of plan.steps(...)"
HERE = "an unfinished step of epoch 0, sub-epoch 1"


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("value", [-1, 2, True, 0.0, None], ids=repr)
def test_ranks_and_steps(question: str, value: Any) -> None:
    """A rank is one of world_size, a step one of the sub-epoch's; negative numbers do not wrap."""
    ask = getattr(PLAN, question)
    cure = "use plan.replace(world_size=...) to change how many ranks there are"
    message = f"rank must be an integer from 0 to 1; got {value!r}; {cure}"
    refuses(message, ask, 0, 1, step=0, rank=value)
    message = f"step must be {HERE} from 0 to 1; got {value!r}; {WHICH}"
    refuses(message, ask, 0, 1, step=value, rank=0)
    refuses(message, PLAN.step_size, 0, 1, step=value)
    refuses(message, PLAN.phase, 0, 1, step=value)


@pytest.mark.parametrize("value", [-1, 2**32, True, 0.0, None, "0"], ids=repr)
def test_epochs(value: Any) -> None:
    """An epoch is an integer from 0 to 2**32 - 1, in every question."""
    message = (
        f"epoch must be an integer from 0 to 2**32 - 1; got {value!r}; "
        "count from 0; a run ends with epoch 2**32 - 1"
    )
    refuses(message, PLAN.batch, value, 0, step=0, rank=0)
    for question in RANGES:
        refuses(message, getattr(PLAN, question), value, 0, rank=0)
    refuses(message, PLAN.steps, value, 0)
    refuses(message, PLAN.cursor, value, 0, step=0)
    refuses(message, PLAN.account, value)
    refuses(message, PLAN.locate, 0, value)
    for order in (PLAN.order, ip.Shuffle(10), ip.BlockShuffle(10, 3)):
        refuses(message, order.take, value, 0)
        refuses(message, order.offsets, value, 0)
        refuses(message, order.locate, value, 0)


@pytest.mark.parametrize("value", [-1, 2, True, 0.0], ids=repr)
def test_sub_epochs(value: Any) -> None:
    """A sub-epoch is one of the plan's, and must be named where there are several."""
    cure = "name one of the plan's 2 sub-epochs"
    message = f"sub_epoch must be an integer from 0 to 1; got {value!r}; {cure}"
    refuses(message, PLAN.batch, 0, value, step=0, rank=0)
    refuses(message, PLAN.steps, 0, value)
    refuses(message, PLAN.cursor, 0, value, step=0)
    refuses(message.replace(cure, "leave it out for the whole epoch"), PLAN.account, 0, value)


def test_sub_epochs_left_out() -> None:
    """A sub-epoch may be left out where there is one, and only there."""
    message = (
        "sub_epoch must be an integer from 0 to 1; got None; name one of the plan's 2 sub-epochs"
    )
    refuses(message, PLAN.batch, 0, step=0, rank=0)
    cure = "leave it out, as the plan has one sub-epoch an epoch"
    message = f"sub_epoch must be the integer 0; got 1; {cure}"
    refuses(message, WHOLE.steps, 0, 1)


@pytest.mark.parametrize("question", RANGES)
def test_ranges_of_steps(question: str) -> None:
    """A range of steps lies within the sub-epoch; even an iterator refuses it at once."""
    ask = getattr(PLAN, question)
    for value in (-1, 3, True, 0.0):
        for name in ("start_step", "stop_step"):
            message = (
                f"{name} must be an integer from 0 to 2; got {value!r}; "
                "name one of the unfinished steps of epoch 0, sub-epoch 1, or their end"
            )
            refuses(message, ask, 0, 1, rank=0, **{name: value})
    message = "stop_step must be at least 2, the start_step; got 1; swap them"
    refuses(message, ask, 0, 1, rank=0, start_step=2, stop_step=1)
    cure = "use plan.replace(world_size=...) to change how many ranks there are"
    refuses(f"rank must be an integer from 0 to 1; got 2; {cure}", ask, 0, 1, rank=2)


def test_indices() -> None:
    """Samples that there are not are errors, in arrays too, and never wrap."""
    for value, bad in [(-1, -1), (10, 10), ([[0, 10]], 10), (np.uint8(200), 200)]:
        message = f"index must be from 0 to 9; got {bad}; name one of the order's 10 samples"
        refuses(message, PLAN.locate, value, 0)
        refuses(message, PLAN.order.locate, 0, value)
    for value in (True, 1.0, "3", [0.5], np.uint64(2**63), 2**70, None):
        message = (
            f"index must be an integer below 2**63, or an array of them; got {value!r}; "
            "pass integers, such as an int64 array"
        )
        refuses(message, PLAN.locate, value, 0)


def test_positions() -> None:
    """Positions that an epoch has not are errors, and so are intervals that run backwards."""
    rule = "positions must be an interval inside [0, 10), the positions of epoch 3"
    for starts, stops, got in [
        (10, None, (10, 11)),
        ([0, -1], None, (-1, 0)),
        (0, 11, (0, 11)),
        ([0, 3], [1, 2], (3, 2)),
    ]:
        message = f"{rule}; got {got}; name some of the epoch's 10 units"
        refuses(message, PLAN.order.take, 3, starts, stops)
        refuses(message, PLAN.order.offsets, 3, starts, stops)


def test_steps_that_are_finished() -> None:
    """A resumed plan has no answers about what was read before."""
    cure = "name one of the unfinished steps of epoch 1, sub-epoch 1, or their end"
    message = f"start_step must be an integer from 1 to 2; got 0; {cure}"
    refuses(message, RESUMED.indices, 1, 1, rank=0, start_step=0)
    message = f"step must be an integer from 1 to 2; got 0; {cure}"
    refuses(message, RESUMED.cursor, 1, 1, step=0)
    for pair in [(1, 0), (0, 1)]:
        message = (
            "(epoch, sub_epoch) must be not before (1, 1), where the plan was resumed; "
            f"got {pair}; begin there, or ask the plan that was not resumed"
        )
        refuses(message, RESUMED.steps, *pair)
        refuses(message, RESUMED.batch, *pair, step=0, rank=0)
        refuses(message, RESUMED.cursor, *pair, step=0)


def test_epochs_without_steps() -> None:
    """Where everything is dropped there is no step to ask for, and a rank reads nothing."""
    rule = "step must be an unfinished step of epoch 0, and there is none"
    message = f"{rule}; got 0; plan.account says why; use smaller batches"
    refuses(message, EMPTY.step_size, 0, step=0)
    assert EMPTY.indices(0, rank=0).tolist() == []


def test_an_open_world_size() -> None:
    """What depends on the world size says so, and what to do."""
    message = (
        "world_size must be set for this; got None; "
        "use plan.replace(world_size=...), with the number of running ranks"
    )
    open_batches = WHOLE.replace(world_size=None)
    open_shares = WHOLE.replace(world_size=None, global_batch_size=4)
    for plan in (open_batches, open_shares):
        for question in QUESTIONS:
            refuses(message, getattr(plan, question), 0, step=0, rank=0)
        for question in RANGES:
            refuses(message, getattr(plan, question), 0, rank=0)
        refuses(message, plan.locate, 0, 0)
    for question in ("steps", "account"):
        refuses(message, getattr(open_batches, question), 0)
    for question in ("step_size", "phase", "cursor"):
        refuses(message, getattr(open_batches, question), 0, step=0)


def test_the_last_epoch_has_no_next() -> None:
    """The run ends with epoch 2**32 - 1: no cursor stands behind it."""
    rule = f"epoch must be an integer from 0 to 2**32 - 1; got {2**32}"
    message = f"{rule}; count from 0; a run ends with epoch 2**32 - 1"
    refuses(message, PLAN.cursor, 2**32 - 1, 1, step=2)


@pytest.mark.parametrize("name", ["resumed", "_resumed", "order_", ""])
def test_replace_of_what_is_not_a_field(name: str) -> None:
    """Only fields are replaced, and where a plan was resumed is not one to set by hand."""
    near = "did you mean order? " if name == "order_" else ""
    message = (
        f"{name} must be a keyword of plan.replace; got None; {near}it takes order, world_size, "
        "batch_size, global_batch_size, sub_epochs, remainder, balance"
    )
    refuses(message, PLAN.replace, **{name: None})
