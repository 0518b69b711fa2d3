"""What is refused is refused by every question, however it is asked, and leaves plans as they were.

The sentences themselves are in errors.txt.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from tests.support.refusals import CURSOR, PLAN, WHOLE, refuses

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


@pytest.mark.parametrize("name", [name for name in dir(ip.Order) if name.startswith("ip_")])
def test_a_field_named_like_what_the_library_asks(name: str) -> None:
    """It would answer in place of the method, and batches would be others."""
    message = (
        "a field of Odd must be given another name, as orders have a method or property of that "
        f"name; got '{name}'; call it {name}_ or another word"
    )
    refuses(message, type, "Odd", (ip.Order,), {"__annotations__": {name: "int"}})
    assert type("Even", (ip.Order,), {"__annotations__": {f"{name}_": "int", "ip_of": "str"}})


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
    for question in ("step_size", "cursor"):
        refuses(message, getattr(batches, question), 0, step=0)


def test_the_last_epoch_has_no_next() -> None:
    """The run ends with epoch 2**32 - 1: no cursor stands behind it."""
    with pytest.raises(ip.IndexPlanError, match=f"^epoch must be an integer .* got {2**32};"):
        PLAN.cursor(2**32 - 1, 1, step=2)


@pytest.mark.parametrize("kind", [ip.Plan, ip.Cursor])
def test_strict_json(kind: Any) -> None:
    """Plans and cursors are read from objects with each of their fields, once, and no other."""
    right = json.loads((PLAN if kind is ip.Plan else CURSOR).to_json())
    what = f"a {kind.__name__.lower()}"
    for name in right:
        data = {key: value for key, value in right.items() if key != name}
        message = f"{what} must have the fields ['{name}']; got only {sorted(data)}; {REWRITE}"
        refuses(message, kind.from_json, json.dumps(data))
    message = f"{what} must have only the fields {sorted(right)}; got ['x']; {REWRITE}"
    refuses(message, kind.from_json, json.dumps({**right, "x": 1}))
