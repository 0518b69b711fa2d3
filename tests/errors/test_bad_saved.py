"""Cursors and JSON of another order, past the end, or edited by hand are refused where read."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

import indexplan as ip
from indexplan.partition.remainders import REMAINDERS
from tests.support.refusals import CURSOR, PLAN, refuses

AS_SAVED = "pass what to_json returned, unchanged"
WRITE = "write plans with to_json"
SAVE = "save cursors with plan.cursor(...)"
REWRITE = "restore what was written, or read it with the version of indexplan that wrote it"


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
        ({"position": -1}, "position must be an integer from 0 to 2**63 - 1; got -1"),
        ({"position": 2**63}, f"position must be an integer from 0 to 2**63 - 1; got {2**63}"),
        ({"sub_epoch": -1}, "sub_epoch must be an integer from 0 to 2**63 - 1; got -1"),
        ({"step": 1.0}, "step must be an integer from 0 to 2**63 - 1; got 1.0"),
        ({"step": True}, "step must be an integer from 0 to 2**63 - 1; got True"),
        ({"step": "1"}, "step must be an integer from 0 to 2**63 - 1; got '1'"),
    ],
)
def test_cursors_that_stand_nowhere(changes: dict[str, Any], rule: str) -> None:
    """A cursor past the end, or of no place at all, is refused."""
    message = f"a cursor's {rule}; {SAVE}"
    refuses(message, lambda: PLAN.resume(dataclasses.replace(CURSOR, **changes)))
    fields = {**CURSOR.to_dict(), **changes}
    refuses(message, lambda: PLAN.resume(ip.Cursor.from_json(json.dumps(fields))))


@pytest.mark.parametrize("value", [-1, 2**32, 1.0, True, None], ids=repr)
def test_cursors_of_no_epoch(value: Any) -> None:
    """A cursor's epoch is an epoch."""
    message = (
        f"epoch must be an integer from 0 to 2**32 - 1; got {value!r}; "
        "count from 0; a run ends with epoch 2**32 - 1"
    )
    refuses(message, dataclasses.replace, CURSOR, epoch=value)
    fields = {**CURSOR.to_dict(), "epoch": value}
    refuses(message, ip.Cursor.from_json, json.dumps(fields))


def test_cursors_that_are_not_read_yet() -> None:
    """Saved text is read by Cursor.from_json before a plan goes on from it."""
    for value in (None, (0, 1, 1, 8), CURSOR.to_json(), CURSOR.to_dict()):
        cure = "load it with Cursor.from_json or from_dict"
        message = f"cursor must be a Cursor; got {value!r}; {cure}"
        refuses(message, PLAN.resume, value)


def test_cursors_of_steps_that_there_are_not() -> None:
    """A cursor stands after a step of the sub-epoch, or before its first."""
    for step in (-1, 3, True):
        message = (
            f"step must be an integer from 0 to 2; got {step!r}; "
            "name one of the unfinished steps of epoch 0, sub-epoch 1, or their end"
        )
        refuses(message, PLAN.cursor, 0, 1, step=step)


@pytest.mark.parametrize("what", ["a plan", "a cursor"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "",
            f"must be JSON; got '' (Expecting value: line 1 column 1 (char 0)); {AS_SAVED}",
        ),
        ("null", f"must be a JSON object; got None; {AS_SAVED}"),
        ('{"a":1,"a":2}', f"must name each field once; got ['a', 'a']; {AS_SAVED}"),
        (
            '{"a":NaN}',
            f"must be JSON without NaN and infinity; got 'NaN'; {AS_SAVED}",
        ),
        (None, f"must be JSON text; got None; {AS_SAVED}"),
    ],
)
def test_text_that_is_not_a_json_object(what: str, text: Any, message: str) -> None:
    """Plans and cursors are read from strict JSON objects only."""
    kind = ip.Plan if what == "a plan" else ip.Cursor
    refuses(f"{what} {message}", kind.from_json, text)


FIELDS = [
    *("batch_size", "global_batch_size", "order", "partition", "remainder", "resumed"),
    *("sub_epochs", "world_size"),
]
SHUFFLE = {"algorithm": "shuffle-v1", "num_samples": 3}
PHASE = {"at": 0, "size": 2, "parameters": {}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"world_size": "2"},
            "world_size must be an integer from 1 to 2**31 - 1; got '2'; "
            "leave it out to keep it open",
        ),
        (
            {"sub_epochs": 1.0},
            "sub_epochs must be an integer from 1 to 2**63 - 1; got 1.0; "
            "leave it out for one sub-epoch an epoch",
        ),
        (
            {"remainder": None},
            f"remainder must be one of {', '.join(REMAINDERS)}; got None; leave it out for spread",
        ),
        (
            {"batch_size": {}},
            "batch_size must be an integer from 1 to 2**62 - 1; got {}; "
            "pass how many units a batch holds, or a tuple such as (5, 3)",
        ),
        *(
            (
                {"order": value},
                f"an order must be an object with the field 'algorithm'; got {value!r}; "
                "pass what to_dict returned",
            )
            for value in (None, [], {"num_samples": 3}, {"algorithm": 5})
        ),
        (
            {"order": {**SHUFFLE, "seed": 0, "window": 1}},
            "an order of shuffle-v1 must have only the fields "
            f"['algorithm', 'num_samples', 'seed']; got ['window']; {REWRITE}",
        ),
        (
            {"order": {**SHUFFLE, "seed": "0"}},
            "seed must be an integer from 0 to 2**128 - 1; got '0'; "
            "hash other seeds to such an integer first",
        ),
        (
            {"resumed": {"epoch": 0}},
            "resumed must have the fields ['position', 'step', 'sub_epoch']; "
            f"got only ['epoch']; {REWRITE}",
        ),
        (
            {"resumed": {"epoch": 0, "sub_epoch": 0, "step": 0, "position": 50}},
            f"a cursor's position must be from 0 to 4, in its sub-epoch; got 50; {SAVE}",
        ),
        (
            {"resumed": {"epoch": 0, "sub_epoch": "0", "step": 0, "position": 0}},
            f"a cursor's sub_epoch must be an integer from 0 to 1; got '0'; {SAVE}",
        ),
        (
            {"batch_size": [{**PHASE, "x": 1}]},
            f"a phase must have only the fields ['at', 'parameters', 'size']; got ['x']; {REWRITE}",
        ),
        (
            {"batch_size": [{"at": 0, "size": 2}]},
            f"a phase must have the fields ['parameters']; got only ['at', 'size']; {REWRITE}",
        ),
        *(
            (
                {"batch_size": [{**PHASE, "parameters": value}]},
                f"parameters must be an object; got {value!r}; {WRITE}",
            )
            for value in (["ab"], [["a", 1]])
        ),
    ],
)
def test_json_of_plans(changes: dict[str, Any], message: str) -> None:
    """Fields that are unknown, missing or of a wrong type are errors that name them."""
    refuses(message, ip.Plan.from_json, json.dumps({**PLAN.to_dict(), **changes}))


def test_json_with_missing_fields() -> None:
    """Each field is needed, and no other is taken."""
    for name in FIELDS:
        data = PLAN.to_dict()
        del data[name]
        message = f"a plan must have the fields ['{name}']; got only {sorted(data)}; {REWRITE}"
        refuses(message, ip.Plan.from_dict, data)
    for name in CURSOR.to_dict():
        data = CURSOR.to_dict()
        del data[name]
        message = f"a cursor must have the fields ['{name}']; got only {sorted(data)}; {REWRITE}"
        refuses(message, ip.Cursor.from_dict, data)
    names = sorted(CURSOR.to_dict())
    message = f"a cursor must have only the fields {names}; got ['x']; {REWRITE}"
    refuses(message, ip.Cursor.from_dict, {**CURSOR.to_dict(), "x": 1})


@pytest.mark.parametrize("kind", [ip.Plan, ip.Cursor])
@pytest.mark.parametrize("value", [5, None, "{}"], ids=repr)
def test_dict_forms_that_are_not_objects(kind: Any, value: Any) -> None:
    """from_dict takes what to_dict returns."""
    name = kind.__name__.lower()
    message = f"a {name} must be an object; got {value!r}; pass what to_dict returned"
    refuses(message, kind.from_dict, value)
