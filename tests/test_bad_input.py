"""Each bad input is one error, where it is given, that names the value, the rule and the cure."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import indexplan as ip

PLAN = ip.Plan(ip.Sequential(10), world_size=2, batch_size=2, sub_epochs=2)
WHOLE = ip.Plan(ip.Sequential(10), world_size=2, batch_size=2)
RESUMED = PLAN.resume(PLAN.cursor(1, 1, step=1))
EMPTY = ip.Plan(ip.Sequential(2), world_size=1, batch_size=5, remainder="drop")
CURSOR = PLAN.cursor(0, 1, step=1)
CARRY = ip.Plan(ip.Sequential(10), world_size=1, batch_size=3, remainder="carry")


def refuses(message: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Check that a call raises an error with this message, and leaves plans as they were."""
    before = [repr(plan) for plan in (PLAN, WHOLE, RESUMED, EMPTY, CURSOR)]
    with pytest.raises(ip.IndexPlanError, match=f"^{re.escape(message)}$"):
        function(*args, **kwargs)
    assert before == [repr(plan) for plan in (PLAN, WHOLE, RESUMED, EMPTY, CURSOR)]


def a_plan(**fields: Any) -> ip.Plan:
    """Return a plan that is right but for what is given."""
    sizes = {} if {"batch_size", "global_batch_size"} & set(fields) else {"batch_size": 2}
    return ip.Plan(**{"order": ip.Sequential(10), "sub_epochs": 2, **sizes, **fields})


NOT_INTEGERS = [1.0, 10.5, True, "10", None, np.float64(5), np.True_, np.array([3])]


@pytest.mark.parametrize(
    "value", [0, -1, 2**63, np.int64(-3), np.uint64(2**63), *NOT_INTEGERS], ids=repr
)
@pytest.mark.parametrize("kind", [ip.Sequential, ip.Shuffle, lambda n: ip.BlockShuffle(n, 4)])
def test_num_samples(kind: Callable[[Any], Any], value: Any) -> None:
    """num_samples is an integer from 1 to 2**63 - 1, of whatever integer type."""
    got = int(value) if isinstance(value, np.integer) else value
    rule = "num_samples must be an integer from 1 to 2**63 - 1"
    refuses(f"{rule}; got {got!r}; pass len(dataset)", kind, value)


@pytest.mark.parametrize("value", [0, -1, 2**63, 2.0, True, None], ids=repr)
@pytest.mark.parametrize("name", ["block_size", "window"])
def test_block_size_and_window(name: str, value: Any) -> None:
    """They are integers from 1 to 2**63 - 1."""
    message = f"{name} must be an integer from 1 to 2**63 - 1; got {value!r}"
    fields = {"block_size": 2, name: value}
    refuses(message, ip.BlockShuffle, 10, **fields)


@pytest.mark.parametrize("value", [-1, 2**128, 1.5, "0", True, None], ids=repr)
def test_seed(value: Any) -> None:
    """A seed is an integer from 0 to 2**128 - 1."""
    message = f"seed must be an integer from 0 to 2**128 - 1; got {value!r}"
    refuses(message, ip.Shuffle, 10, seed=value)
    refuses(message, ip.BlockShuffle, 10, 2, seed=value)


INTEGER_TO = "must be an integer from 1 to"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        *(
            ({"world_size": value}, f"world_size {INTEGER_TO} 2**31 - 1; got {value!r}")
            for value in (0, -1, 2**31, 2.0, True, "2")
        ),
        *(
            ({"sub_epochs": value}, f"sub_epochs {INTEGER_TO} 2**63 - 1; got {value!r}")
            for value in (0, -1, 2**63, 1.0, True, None)
        ),
        *(
            ({name: value}, f"{name} {INTEGER_TO} 2**62 - 1; got {value!r}")
            for name in ("batch_size", "global_batch_size")
            for value in (0, -1, 2**62, 2.0, True, np.array([2, 3]))
        ),
        *(
            (
                {"batch_size": value},
                "batch_size must be a positive integer or a non-empty tuple of them; "
                f"got {value!r}",
            )
            for value in ((), [])
        ),
        *(
            ({"batch_size": value}, f"batch_size[{i}] {INTEGER_TO} 2**62 - 1; got {value[i]!r}")
            for i, value in [(0, (0,)), (1, (2, 0)), (1, (2, 2.0)), (2, [2, 3, -1]), (0, [True, 2])]
        ),
        (
            {"global_batch_size": (2**40, 2**40)},
            f"the product of global_batch_size {INTEGER_TO} 2**62 - 1; got {2**80}",
        ),
        (
            {"batch_size": 2**40, "world_size": 2**30},
            f"batch_size * world_size {INTEGER_TO} 2**62 - 1; got {2**70}",
        ),
        (
            {"batch_size": "0:512"},
            "batch_size must be a size or a list of phases; got '0:512'; "
            "use parse_schedule for text",
        ),
        (
            {"batch_size": None},
            "exactly one of batch_size and global_batch_size must be given; got neither",
        ),
        (
            {"batch_size": 1, "global_batch_size": 2},
            "exactly one of batch_size and global_batch_size must be given; "
            "got batch_size and global_batch_size",
        ),
        *(
            (
                {"remainder": value},
                f"remainder must be one of drop, pad, spread, carry; got {value!r}",
            )
            for value in ("wrap", "Spread", "", None, 3)
        ),
        *(
            (
                {"order": value},
                f"order must be an Order, such as Shuffle(len(dataset)); got {value!r}",
            )
            for value in (10, "shuffle", None, [1, 2], ip.Shuffle)
        ),
        (
            {"resumed": (0, 0)},
            "resumed must be a Resume; got (0, 0); use plan.resume(cursor)",
        ),
    ],
)
def test_a_plans_fields(fields: dict[str, Any], message: str) -> None:
    """A plan refuses a field that breaks its rule, when constructed and when replaced."""
    refuses(message, a_plan, **fields)
    if "resumed" not in fields and "neither" not in message:
        refuses(message, a_plan().replace, **fields)


ORDERED = "at must be strictly increasing, from one phase to the next; got "


@pytest.mark.parametrize(
    ("ats", "message"),
    [
        (
            [5],
            "the first phase of batch_size must be at 0; got 5; "
            "start the schedule with Phase(at=0, ...)",
        ),
        (
            [(0, 1)],
            "the first phase of batch_size must be at 0; got (0, 1); "
            "start the schedule with Phase(at=0, ...)",
        ),
        ([0, 0], f"{ORDERED}'0 before 0'"),
        ([0, (0, 0)], f"{ORDERED}'0 before (0, 0)'"),
        ([(0, 0), 0], f"{ORDERED}'(0, 0) before 0'"),
        ([0, 5, 5], f"{ORDERED}'5 before 5'"),
        ([0, 7, 5], f"{ORDERED}'7 before 5'"),
        ([0, (2, 0), (1, 1)], f"{ORDERED}'(2, 0) before (1, 1)'"),
        ([0, 5, (0, 1)], f"{ORDERED}'5 before (0, 1)'"),
        ([0, (0, 1), 5], f"{ORDERED}'(0, 1) before 5'"),
        ([0, (0, 1), 4], f"{ORDERED}'(0, 1) before 4'"),
        ([0, (1, 2)], "at's sub_epoch must be below 2, the sub_epochs; got (1, 2)"),
    ],
)
def test_schedules(ats: list[Any], message: str) -> None:
    """Phases start at 0 and at places that increase, in sub-epochs that there are."""
    phases = [ip.Phase(at, size) for size, at in enumerate(ats, 1)]
    refuses(message, a_plan, batch_size=phases)


def test_a_schedule_is_of_phases() -> None:
    """Sizes and phases do not mix."""
    message = "each phase of batch_size must be a Phase; got 5"
    refuses(message, a_plan, batch_size=[ip.Phase(0, 2), 5])
    refuses(message, a_plan, batch_size=[5, ip.Phase(1, 2)])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        *(
            ({"at": value}, f"at must be an integer from 0 to 2**95 - 1; got {value!r}")
            for value in (-1, 1.5, True, "5", None, 2**95)
        ),
        *(
            ({"at": value}, f"at must be a stream place or (epoch, sub_epoch); got {value!r}")
            for value in ((), (1,), (1, 2, 3))
        ),
        *(
            ({"at": value}, f"at's epoch must be an integer from 0 to 2**32 - 1; got {value[0]!r}")
            for value in ((-1, 0), (2**32, 0), (0.0, 1), (True, 0))
        ),
        ({"at": (0, -1)}, "at's sub_epoch must be an integer from 0 to 2**63 - 1; got -1"),
        *(
            ({"size": value}, f"size {INTEGER_TO} 2**62 - 1; got {value!r}")
            for value in (0, -2, 2.0, None)
        ),
        ({"size": ()}, "size must be a positive integer or a non-empty tuple of them; got ()"),
        ({"size": (3, 0)}, f"size[1] {INTEGER_TO} 2**62 - 1; got 0"),
        *(
            (
                {"parameters": value},
                f"parameters must be a mapping of names to JSON scalars; got {value!r}",
            )
            for value in (5, "ab")
        ),
        ({"parameters": {1: 2}}, "a parameter's name must be a string; got 1"),
        *(
            (
                {"parameters": {"a": value}},
                "parameter 'a' must be a finite JSON scalar (str, int, float, bool or None); "
                f"got {value!r}",
            )
            for value in ([1], float("nan"), float("inf"), np.int64(1))
        ),
    ],
)
def test_a_phases_fields(fields: dict[str, Any], message: str) -> None:
    """A phase refuses a field that breaks its rule."""
    refuses(message, ip.Phase, **fields)


QUESTIONS = ["batch", "micro_batches", "offsets", "num_valid"]


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("value", [-1, 2, True, 0.0, None], ids=repr)
def test_ranks_and_steps(question: str, value: Any) -> None:
    """A rank is one of world_size, a step one of the sub-epoch's; negative numbers do not wrap."""
    ask = getattr(PLAN, question)
    message = f"rank must be an integer from 0 to 1; got {value!r}; the plan's world_size is 2"
    refuses(message, ask, 0, 1, step=0, rank=value)
    message = (
        f"step must be an integer from 0 to 1; got {value!r}; "
        "the unfinished steps of epoch 0, sub-epoch 1"
    )
    refuses(message, ask, 0, 1, step=value, rank=0)
    refuses(message, PLAN.step_size, 0, 1, step=value)
    refuses(message, PLAN.phase, 0, 1, step=value)


@pytest.mark.parametrize("value", [-1, 2**32, True, 0.0, None, "0"], ids=repr)
def test_epochs(value: Any) -> None:
    """An epoch is an integer from 0 to 2**32 - 1, in every question."""
    message = f"epoch must be an integer from 0 to 2**32 - 1; got {value!r}"
    refuses(message, PLAN.batch, value, 0, step=0, rank=0)
    refuses(message, PLAN.indices, value, 0, rank=0)
    refuses(message, PLAN.batches, value, 0, rank=0)
    refuses(message, PLAN.batch_sizes, value, 0, rank=0)
    refuses(message, PLAN.num_steps, value, 0)
    refuses(message, PLAN.first_step, value, 0)
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
    message = f"sub_epoch must be an integer from 0 to 1; got {value!r}"
    refuses(message, PLAN.batch, 0, value, step=0, rank=0)
    refuses(message, PLAN.num_steps, 0, value)
    refuses(message, PLAN.account, 0, value)
    refuses(message, PLAN.cursor, 0, value, step=0)
    message = "sub_epoch must be given, from 0 to 1, as the plan has sub_epochs; got None"
    refuses(message, PLAN.batch, 0, step=0, rank=0)
    refuses(message, PLAN.num_steps, 0)
    refuses("sub_epoch must be an integer from 0 to 0; got 1", WHOLE.num_steps, 0, 1)


@pytest.mark.parametrize("question", ["indices", "batches", "batch_sizes"])
def test_ranges_of_steps(question: str) -> None:
    """A range of steps lies within the sub-epoch; even an iterator refuses it at once."""
    ask = getattr(PLAN, question)
    where = "within the steps of epoch 0, sub-epoch 1"
    for value in (-1, 3, True, 0.0):
        for name in ("start_step", "stop_step"):
            message = f"{name} must be an integer from 0 to 2; got {value!r}; {where}"
            refuses(message, ask, 0, 1, rank=0, **{name: value})
    message = f"stop_step must be an integer from 2 to 2; got 1; {where}"
    refuses(message, ask, 0, 1, rank=0, start_step=2, stop_step=1)
    message = "rank must be an integer from 0 to 1; got 2; the plan's world_size is 2"
    refuses(message, ask, 0, 1, rank=2)


def test_indices_and_positions() -> None:
    """Samples and positions that there are not are errors, in arrays too, and never wrap."""
    for value, bad in [(-1, -1), (10, 10), ([[0, 10]], 10), (np.uint8(200), 200)]:
        message = f"index must be an integer from 0 to 9; got {bad}"
        refuses(message, PLAN.locate, value, 0)
        refuses(message, PLAN.order.locate, 0, value)
    for value in (True, 1.0, "3", [0.5], np.uint64(2**63), 2**70, None):
        message = f"index must be an integer below 2**63, or an array of them; got {value!r}"
        refuses(message, PLAN.locate, value, 0)
    rule = "positions must be an interval inside [0, 10), the positions of epoch 3"
    for starts, stops, got in [
        (10, None, (10, 11)),
        ([0, -1], None, (-1, 0)),
        (0, 11, (0, 11)),
        ([0, 3], [1, 2], (3, 2)),
    ]:
        refuses(f"{rule}; got {got}", PLAN.order.take, 3, starts, stops)
        refuses(f"{rule}; got {got}", PLAN.order.offsets, 3, starts, stops)
    message = "stops must be of the shape of starts, (2,); got (1,)"
    refuses(message, PLAN.order.take, 0, [0, 1], [2])


def test_steps_that_are_finished() -> None:
    """A resumed plan has no answers about what was read before."""
    message = (
        "step must be an integer from 1 to 1; got 0; the unfinished steps of epoch 1, sub-epoch 1"
    )
    refuses(message, RESUMED.batch, 1, 1, step=0, rank=0)
    message = (
        "start_step must be an integer from 1 to 2; got 0; within the steps of epoch 1, sub-epoch 1"
    )
    refuses(message, RESUMED.indices, 1, 1, rank=0, start_step=0)
    message = "step must be an integer from 1 to 2; got 0; epoch 1, sub-epoch 1 has 2 steps"
    refuses(message, RESUMED.cursor, 1, 1, step=0)
    for pair in [(1, 0), (0, 1)]:
        message = (
            f"(epoch, sub_epoch) must be at least (1, 1), where the plan was resumed; got {pair}"
        )
        refuses(message, RESUMED.num_steps, *pair)
        refuses(message, RESUMED.batch, *pair, step=0, rank=0)
        refuses(message, RESUMED.cursor, *pair, step=0)


def test_epochs_without_steps() -> None:
    """Where everything is dropped there is no step to ask for, and a cursor only before it."""
    message = "step must be one of the unfinished steps of epoch 0, of which there are none; got 0"
    refuses(message, EMPTY.batch, 0, step=0, rank=0)
    refuses(message, EMPTY.step_size, 0, step=0)
    refuses(
        "step must be an integer from 0 to 0; got 1; epoch 0 has 0 steps", EMPTY.cursor, 0, step=1
    )
    assert EMPTY.indices(0, rank=0).tolist() == []


def test_an_open_world_size() -> None:
    """What depends on the world size says so, and what to do."""
    message = (
        "world_size must be set for this; the plan leaves it open; "
        "use plan.replace(world_size=...), the number of running ranks"
    )
    open_batches = WHOLE.replace(world_size=None)
    open_shares = WHOLE.replace(world_size=None, global_batch_size=4)
    for plan in (open_batches, open_shares):
        for question in QUESTIONS:
            refuses(message, getattr(plan, question), 0, step=0, rank=0)
        for question in ("indices", "batches", "batch_sizes"):
            refuses(message, getattr(plan, question), 0, rank=0)
        refuses(message, plan.locate, 0, 0)
    for question in ("num_steps", "first_step", "account"):
        refuses(message, getattr(open_batches, question), 0)
    for question in ("step_size", "phase", "cursor"):
        refuses(message, getattr(open_batches, question), 0, step=0)


@pytest.mark.parametrize("name", ["ranks", "resumed", "order_", ""])
def test_replace_of_what_is_not_a_field(name: str) -> None:
    """Only fields are replaced, and `resumed` is not one to set by hand."""
    message = (
        "a changed field must be one of order, world_size, batch_size, global_batch_size, "
        f"sub_epochs, remainder; got {name!r}"
    )
    refuses(message, PLAN.replace, **{name: None})


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (ip.Sequential(11), "num_samples 10, not 11"),
        (ip.Shuffle(10), "algorithm 'sequential-v1', not 'shuffle-v1', seed None, not 0"),
    ],
)
def test_cursors_of_another_order(order: ip.Order, said: str) -> None:
    """A cursor names how its order differs from the plan's."""
    message = (
        f"a cursor must be of the plan's order; got one with {said}; "
        "resume it with the order it was saved under"
    )
    refuses(message, PLAN.replace(order=order).resume, CURSOR)


def test_cursors_of_other_sub_epochs() -> None:
    """A cursor counts in the sub-epochs that it was saved under."""
    message = "a cursor's sub_epochs must be 1, the plan's; got 2; use plan.replace(sub_epochs=2)"
    refuses(message, WHOLE.resume, CURSOR)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"position": 10}, "a cursor's position must be from 5 to 9, in its sub-epoch; got 10"),
        ({"position": 4}, "a cursor's position must be from 5 to 9, in its sub-epoch; got 4"),
        ({"sub_epoch": 0}, "a cursor's position must be from 0 to 4, in its sub-epoch; got 8"),
        (
            {"step": 4},
            "a cursor's step must be at most 3, as each finished step read a unit; got 4",
        ),
        ({"sub_epoch": 2}, "a cursor's sub_epoch must be an integer from 0 to 1; got 2"),
        ({"position": -1}, "position must be an integer from 0 to 2**63 - 1; got -1"),
        ({"position": 2**63}, f"position must be an integer from 0 to 2**63 - 1; got {2**63}"),
        ({"epoch": 2**32}, f"epoch must be an integer from 0 to 2**32 - 1; got {2**32}"),
        ({"epoch": -1}, "epoch must be an integer from 0 to 2**32 - 1; got -1"),
        ({"sub_epoch": -1}, "sub_epoch must be an integer from 0 to 2**63 - 1; got -1"),
        ({"step": 1.0}, "step must be an integer from 0 to 2**63 - 1; got 1.0"),
        ({"step": True}, "step must be an integer from 0 to 2**63 - 1; got True"),
        ({"sub_epochs": 0}, "sub_epochs must be an integer from 1 to 2**63 - 1; got 0"),
        ({"order": 5}, "a cursor's order must be the dict form of an order; got 5"),
        ({"order": {3: 4}}, "a cursor's order must be of JSON types; got {3: 4}"),
    ],
)
def test_cursors_that_stand_nowhere(changes: dict[str, Any], message: str) -> None:
    """A cursor past the end, or of no place at all, is refused."""
    refuses(message, lambda: PLAN.resume(dataclasses.replace(CURSOR, **changes)))
    fields = {**CURSOR.to_dict(), **changes}
    if "order" not in changes:
        refuses(message, lambda: PLAN.resume(ip.Cursor.from_json(json.dumps(fields))))


def test_cursors_that_are_not_saved_ones() -> None:
    """Text must be read before a plan can go on, and a step must be there to be finished."""
    for value in (None, (0, 1, 1, 8), CURSOR.to_json(), CURSOR.to_dict()):
        message = f"cursor must be a Cursor; got {value!r}; read saved text with Cursor.from_json"
        refuses(message, PLAN.resume, value)
    for step in (-1, 3, True):
        message = (
            f"step must be an integer from 0 to 2; got {step!r}; epoch 0, sub-epoch 1 has 2 steps"
        )
        refuses(message, PLAN.cursor, 0, 1, step=step)


@pytest.mark.parametrize("what", ["a plan", "a cursor"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be JSON; got '': Expecting value: line 1 column 1 (char 0)"),
        (
            "{",
            "must be JSON; got '{': Expecting property name enclosed in double quotes: "
            "line 1 column 2 (char 1)",
        ),
        ("[]", "must be a JSON object; got []"),
        ("null", "must be a JSON object; got None"),
        ('{"a":1,"a":2}', "must name each field once; got ['a', 'a']"),
        ('{"a":NaN}', "must be JSON, which has no such constant; got 'NaN'"),
    ],
)
def test_text_that_is_not_a_json_object(what: str, text: str, message: str) -> None:
    """Plans and cursors are read from strict JSON objects only."""
    kind = ip.Plan if what == "a plan" else ip.Cursor
    refuses(f"{what} {message}", kind.from_json, text)


FIELDS = [
    *("batch_size", "global_batch_size", "order", "partition", "remainder", "resumed"),
    *("sub_epochs", "world_size"),
]
SHUFFLE = {"algorithm": "shuffle-v1", "num_samples": 3}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"colour": 3}, f"a plan must have only the fields {FIELDS}; got ['colour']"),
        (
            {"partition": "partition-v2"},
            "a plan's partition must be partition-v1; got 'partition-v2'; "
            "read it with the version of indexplan that wrote it, or a newer one",
        ),
        ({"world_size": "2"}, "world_size must be an integer from 1 to 2**31 - 1; got '2'"),
        ({"sub_epochs": 1.0}, "sub_epochs must be an integer from 1 to 2**63 - 1; got 1.0"),
        (
            {"remainder": None},
            "remainder must be one of drop, pad, spread, carry; got None",
        ),
        ({"batch_size": {}}, "batch_size must be an integer from 1 to 2**62 - 1; got {}"),
        ({"order": None}, "an order must be an object with the field 'algorithm'; got None"),
        ({"order": []}, "an order must be an object with the field 'algorithm'; got []"),
        (
            {"order": {"algorithm": 5}},
            "an order must be an object with the field 'algorithm'; got {'algorithm': 5}",
        ),
        (
            {"order": SHUFFLE},
            "an order of shuffle-v1 must have the fields ['seed']; "
            "got only ['algorithm', 'num_samples']",
        ),
        (
            {"order": {**SHUFFLE, "seed": 0, "window": 1}},
            "an order of shuffle-v1 must have only the fields "
            "['algorithm', 'num_samples', 'seed']; got ['window']",
        ),
        (
            {"order": {**SHUFFLE, "seed": "0"}},
            "seed must be an integer from 0 to 2**128 - 1; got '0'",
        ),
        ({"resumed": 5}, "resumed must be an object or null; got 5"),
        (
            {"resumed": {"epoch": 0}},
            "resumed must have the fields ['position', 'step', 'sub_epoch']; got only ['epoch']",
        ),
        (
            {"resumed": {"epoch": 0, "sub_epoch": 0, "step": 0, "position": 50}},
            "a cursor's position must be from 0 to 4, in its sub-epoch; got 50",
        ),
        (
            {"batch_size": [{"at": 0, "size": 2, "parameters": {}, "x": 1}]},
            "a phase must have only the fields ['at', 'parameters', 'size']; got ['x']",
        ),
        (
            {"batch_size": [{"at": 0, "size": 2}]},
            "a phase must have the fields ['parameters']; got only ['at', 'size']",
        ),
        (
            {"batch_size": [{"at": 0, "size": 2, "parameters": {}}, 5]},
            "a phase must be an object; got 5",
        ),
    ],
)
def test_json_of_plans(changes: dict[str, Any], message: str) -> None:
    """Fields that are unknown, missing or of a wrong type are errors that name them."""
    text = json.dumps({**PLAN.to_dict(), **changes})
    refuses(message, ip.Plan.from_json, text)


def test_json_with_missing_fields() -> None:
    """Each field is needed."""
    for name in FIELDS:
        data = PLAN.to_dict()
        del data[name]
        message = f"a plan must have the fields ['{name}']; got only {sorted(data)}"
        refuses(message, ip.Plan.from_dict, data)
    for name in CURSOR.to_dict():
        data = CURSOR.to_dict()
        del data[name]
        message = f"a cursor must have the fields ['{name}']; got only {sorted(data)}"
        refuses(message, ip.Cursor.from_dict, data)
    names = sorted(CURSOR.to_dict())
    message = f"a cursor must have only the fields {names}; got ['x']"
    refuses(message, ip.Cursor.from_dict, {**CURSOR.to_dict(), "x": 1})
    for kind, what in ((ip.Plan, "a plan"), (ip.Cursor, "a cursor")):
        for value in (5, None, [1]):
            name = kind.__name__
            message = f"{what} must be an object, as {name}.to_dict returns; got {value!r}"
            refuses(message, kind.from_dict, value)


def test_an_unknown_order() -> None:
    """A plan of an order that nobody registered names those that are known."""
    data = {**PLAN.to_dict(), "order": {**SHUFFLE, "algorithm": "shuffle-v9"}}
    with pytest.raises(ip.IndexPlanError) as caught:
        ip.Plan.from_dict(data)
    start, known, rest = re.split("one of |; got", str(caught.value))
    assert start == "an order's algorithm must be "
    assert {"block-shuffle-v1", "sequential-v1", "shuffle-v1"} <= set(known.split(", "))
    assert rest == " 'shuffle-v9'; upgrade indexplan, or import the module that registers it"


def test_an_order_that_takes_anothers_name() -> None:
    """Two orders of one algorithm's name would read each other's plans."""

    class Impostor(ip.Sequential):
        algorithm = "sequential-v1"

    message = "algorithm must be a name that no other order has; got 'sequential-v1'"
    refuses(message, ip.register, Impostor)
    assert type(ip.Plan.from_json(PLAN.to_json()).order) is ip.Sequential


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a batch size must be a size or phases such as '0:512 250000:768'; got ''"),
        *(
            (text, f"a batch size must be a size such as 256 or 5x3; got {got!r}")
            for text, got in [("a", "a"), ("5x", "5x"), ("5:", ""), ("-5", "-5"), ("0:2.0", "2.0")]
        ),
        ("0:5 x", "a phase must be AT:SIZE or AT:SIZE:NAME=VALUE,...; got 'x'"),
        *(
            (f"{at}:4", f"AT must be a stream place or EPOCH/SUB_EPOCH; got {at!r}")
            for at in ("1/2/3", "-1", "x")
        ),
        ("0:5:a", "a parameter must be NAME=VALUE; got 'a'"),
        ("0:5:=3", "a parameter must be NAME=VALUE; got '=3'"),
    ],
)
def test_schedules_as_text(text: str, message: str) -> None:
    """What the command line takes as a batch size is read strictly."""
    refuses(message, ip.parse_schedule, text)


def test_the_last_epoch_has_no_next() -> None:
    """The run ends with epoch 2**32 - 1: nothing reads, or stands, behind it."""
    message = f"epoch must be an integer from 0 to 2**32 - 1; got {2**32}"
    last = 2**32 - 1
    refuses(message, PLAN.cursor, last, 1, step=2)
    steps = CARRY.num_steps(last)
    places = [CARRY.cursor(last, step=step).position for step in range(steps)]
    assert places[-1] + 3 > 10
    refuses(message, CARRY.batch, last, step=steps - 1, rank=0)
