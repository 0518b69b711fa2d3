"""What is refused is refused by every question, however it is asked, and leaves plans as they were.

The sentences themselves are in errors.txt.
"""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from tests.support.refusals import CURSOR, EMPTY, PLAN, RESUMED, WHOLE, refuses

RANGES = ["indices", "batches", "batch_sizes"]
SAVE = "save cursors with plan.cursor(...)"
REWRITE = "restore what was written, or read it with the version of indexplan that wrote it"
SIZE = "pass how many units a batch holds, or a tuple such as (5, 3)"


@pytest.mark.parametrize("size", [(0,), (2, 2.0), [2, 3, -1], [True, 2], (), [], {2, 3}, b"ab"])
def test_sizes(size: Any) -> None:
    """Each level of a batch is a positive integer, and none is left out."""
    plan = ip.Plan(ip.Sequential(10), batch_size=2)
    for name in ("batch_size", "global_batch_size"):
        for make in (lambda **given: ip.Plan(ip.Sequential(10), **given), plan.replace):
            with pytest.raises(ip.IndexPlanError, match=rf"^{name}.*{re.escape(SIZE)}$"):
                make(**{name: size})
    with pytest.raises(ip.IndexPlanError, match=rf"^size.*{re.escape(SIZE)}$"):
        ip.Phase(size=size)


@pytest.mark.parametrize("text", ["32", "5x3", "0:512 250000:768", " ", "[Phase(0, 2)]"])
def test_text_for_a_batch_size(text: str) -> None:
    """It's refused, in Python and in a plan's JSON: a number that nobody converted, for one."""
    for name in ("batch_size", "global_batch_size"):
        message = f"{name} must be an integer from 1 to 2**62 - 1; got {text!r}; {SIZE}"
        refuses(message, ip.Plan, ip.Sequential(10), **{name: text})
        given = {**PLAN.to_dict(), "batch_size": None, "global_batch_size": None, name: text}
        refuses(message, ip.Plan.from_dict, given)


@pytest.mark.parametrize(
    "ats",
    [
        *([0, 0], [0, (0, 0)], [(0, 0), 0], [0, 5, 5], [0, (2, 0), (1, 1)], [0, (1, 1), (1, 1)]),
        *([0, 5, (0, 1)], [0, (0, 1), 5], [0, (0, 1), 4]),
    ],
)
def test_phases_that_do_not_rise(ats: list[Any]) -> None:
    """Places by units and by epochs are compared with one another."""
    message = (
        f"at must be rising from phase to phase; got ({ats[-2]}, {ats[-1]}); sort the phases by "
        "their place, and keep one at each"
    )
    phases = [ip.Phase(at, size) for size, at in enumerate(ats, 1)]
    refuses(message, lambda: ip.Plan(ip.Sequential(10), batch_size=phases, sub_epochs=2))


def test_sizes_and_phases_do_not_mix() -> None:
    """Whichever comes first."""
    message = "each phase of batch_size must be a Phase; got 5; pass Phase(at, size)"
    for sizes in ([5, ip.Phase(1, 2)], (ip.Phase(0, 2), 5)):
        refuses(message, ip.Plan, ip.Sequential(10), batch_size=sizes)


@pytest.mark.parametrize("value", ["ab", ["ab"], (("a", 1), ("a", 2)), {"a": np.int64(1)}])
def test_parameters(value: Any) -> None:
    """A phase's parameters are a mapping of names to what JSON has."""
    with pytest.raises(ip.IndexPlanError, match=r"pass a dict such as {'resolution': 192}$"):
        ip.Phase(parameters=value)


def test_an_order_that_takes_anothers_name() -> None:
    """Two orders of one algorithm's name would read each other's plans."""
    kind = type("Impostor", (ip.Sequential,), {"algorithm": "sequential-v1"})
    message = (
        "algorithm must be a name that no other class has registered; got 'sequential-v1'; give "
        "it another name"
    )
    refuses(message, ip.register, kind)
    assert type(ip.Plan.from_json(PLAN.to_json()).order) is ip.Sequential


@pytest.mark.parametrize("name", [name for name in dir(ip.Order) if name.startswith("ip_")])
def test_a_field_named_like_what_the_library_asks(name: str) -> None:
    """It would answer in place of the method, and batches would be others."""
    message = (
        "a field of Odd must be given another name, as orders have a method or property of that "
        f"name; got '{name}'; call it {name}_ or another word"
    )
    refuses(message, type, "Odd", (ip.Order,), {"__annotations__": {name: "int"}})
    assert type("Even", (ip.Order,), {"__annotations__": {f"{name}_": "int", "ip_of": "str"}})


def test_ranges_of_steps() -> None:
    """A range of steps lies within the sub-epoch; even an iterator refuses it at once."""
    for ask in (getattr(PLAN, question) for question in RANGES):
        message = "stop_step must be at least 2, the start_step; got 1; swap them"
        refuses(message, ask, 0, 1, rank=0, start_step=2, stop_step=1)
        cure = "use plan.replace(world_size=...) to change how many ranks there are"
        refuses(f"rank must be an integer from 0 to 1; got 2; {cure}", ask, 0, 1, rank=2)


def test_indices_and_positions() -> None:
    """What there is not is an error, in arrays too, and never wraps."""
    for value, bad in [(-1, -1), (10, 10), ([[0, 10]], 10), (np.uint8(200), 200)]:
        message = f"index must be from 0 to 9; got {bad}; name one of the order's 10 samples"
        refuses(message, PLAN.locate, value, 0)
        refuses(message, PLAN.order.locate, 0, value)
    for value in ([0.5], np.uint64(2**63), 2**70, None):
        with pytest.raises(ip.IndexPlanError, match=r"^index must be an integer below 2\*\*63"):
            PLAN.locate(value, 0)
    rule = "positions must be an interval inside [0, 10), the positions of epoch 3"
    for starts, stops, got in [
        (10, None, (10, 11)),
        ([0, -1], None, (-1, 0)),
        ([0, 3], [1, 2], (3, 2)),
    ]:
        message = f"{rule}; got {got}; name some of the epoch's 10 units"
        refuses(message, PLAN.order.take, 3, starts, stops)
        refuses(message, PLAN.order.offsets, 3, starts, stops)


def test_what_is_finished() -> None:
    """A resumed plan has no answers about what was read before."""
    cure = "name one of the unfinished steps of epoch 1, sub-epoch 1, or their end"
    message = f"start_step must be an integer from 1 to 2; got 0; {cure}"
    refuses(message, RESUMED.indices, 1, 1, rank=0, start_step=0)
    refuses(message.removeprefix("start_"), RESUMED.cursor, 1, 1, step=0)
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
    with pytest.raises(ip.IndexPlanError, match="of epoch 0, and there is none; got 0"):
        EMPTY.step_size(0, step=0)
    assert EMPTY.indices(0, rank=0).tolist() == []


def test_an_open_world_size() -> None:
    """What depends on the world size says so, and what to do."""
    message = (
        "world_size must be set for this; got None; "
        "use plan.replace(world_size=...), with the number of running ranks"
    )
    batches = WHOLE.replace(world_size=None)
    for plan in (batches, batches.replace(global_batch_size=4)):
        for question in ("batch", "units"):
            refuses(message, getattr(plan, question), 0, step=0, rank=0)
        for question in RANGES:
            refuses(message, getattr(plan, question), 0, rank=0)
        refuses(message, plan.locate, 0, 0)
    for question in ("steps", "account"):
        refuses(message, getattr(batches, question), 0)
    for question in ("step_size", "phase", "cursor"):
        refuses(message, getattr(batches, question), 0, step=0)


def test_the_last_epoch_has_no_next() -> None:
    """The run ends with epoch 2**32 - 1: no cursor stands behind it."""
    with pytest.raises(ip.IndexPlanError, match=f"^epoch must be an integer .* got {2**32};"):
        PLAN.cursor(2**32 - 1, 1, step=2)


@pytest.mark.parametrize("name", ["resumed", "_resumed", "order_", ""])
def test_replace_of_what_is_not_a_field(name: str) -> None:
    """Only fields are replaced, and where a plan was resumed is not one to set by hand."""
    near = "did you mean order? " if name == "order_" else ""
    message = (
        f"{name} must be a keyword of plan.replace; got None; {near}it takes order, world_size, "
        "batch_size, global_batch_size, sub_epochs, remainder, balance"
    )
    refuses(message, PLAN.replace, **{name: None})


def test_cursors_of_another_size() -> None:
    """A cursor of the plan's algorithm names the field in which its order differs."""
    message = (
        "a cursor must belong to the plan's order; got one with num_samples 10, not 11; "
        "resume it with the order it was saved under"
    )
    refuses(message, PLAN.replace(order=ip.Sequential(11)).resume, CURSOR)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"position": 10}, "position must be from 5 to 9, in its sub-epoch; got 10"),
        ({"position": 4}, "position must be from 5 to 9, in its sub-epoch; got 4"),
        ({"sub_epoch": 0}, "position must be from 0 to 4, in its sub-epoch; got 8"),
        ({"position": 2**63}, f"position must be an integer from 0 to 2**63 - 1; got {2**63}"),
        ({"sub_epoch": -1}, "sub_epoch must be an integer from 0 to 2**63 - 1; got -1"),
        ({"step": True}, "step must be an integer from 0 to 2**63 - 1; got True"),
    ],
)
def test_cursors_that_stand_nowhere(changes: dict[str, Any], rule: str) -> None:
    """A cursor past the end, or of no place at all, is refused, and so is its JSON."""
    message = f"a cursor's {rule}; {SAVE}"
    refuses(message, lambda: PLAN.resume(dataclasses.replace(CURSOR, **changes)))
    fields = {**CURSOR.to_dict(), **changes}
    refuses(message, lambda: PLAN.resume(ip.Cursor.from_json(json.dumps(fields))))


@pytest.mark.parametrize("kind", [ip.Plan, ip.Cursor])
def test_strict_json(kind: Any) -> None:
    """Plans and cursors are read from objects with each of their fields, once, and no other."""
    right = (PLAN if kind is ip.Plan else CURSOR).to_dict()
    what = f"a {kind.__name__.lower()}"
    for text, rule in [
        ("", "must be JSON; got ''"),
        ("null", "must be a JSON object; got None"),
        ('{"a":1,"a":2}', "must name each field once; got ['a', 'a']"),
        ('{"a":NaN}', "must be JSON without NaN and infinity; got 'NaN'"),
        (None, "must be JSON text; got None"),
    ]:
        with pytest.raises(ip.IndexPlanError, match=f"^{what} {re.escape(rule)}"):
            kind.from_json(text)
    for value in (5, None, "{}"):
        message = f"{what} must be an object; got {value!r}; pass what to_dict returned"
        refuses(message, kind.from_dict, value)
    for name in right:
        data = {key: value for key, value in right.items() if key != name}
        message = f"{what} must have the fields ['{name}']; got only {sorted(data)}; {REWRITE}"
        refuses(message, kind.from_dict, data)
    message = f"{what} must have only the fields {sorted(right)}; got ['x']; {REWRITE}"
    refuses(message, kind.from_dict, {**right, "x": 1})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"order": {"algorithm": 5}}, "an order must be an object with the field 'algorithm'"),
        (
            {"order": {**ip.Shuffle(3).to_dict(), "window": 1}},
            "an order of shuffle-v1 must have only the fields",
        ),
        ({"order": {**ip.Shuffle(3).to_dict(), "seed": "0"}}, "seed must be an integer from 0"),
        ({"resumed": {"epoch": 0}}, "resumed must have the fields ['position', 'step', 'sub_epoch"),
        (
            {"resumed": {"epoch": 0, "sub_epoch": "0", "step": 0, "position": 0}},
            "a cursor's sub_epoch must be an integer from 0 to 1; got '0'",
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
            {"batch_size": [{"at": 0, "size": 2, "parameters": [["a", 1]]}]},
            "parameters must be an object; got [['a', 1]]",
        ),
    ],
)
def test_json_inside_a_plan(changes: dict[str, Any], message: str) -> None:
    """Fields of what is inside that are unknown, missing or wrong are errors that name them."""
    with pytest.raises(ip.IndexPlanError, match=f"^{re.escape(message)}"):
        ip.Plan.from_json(json.dumps({**PLAN.to_dict(), **changes}))
