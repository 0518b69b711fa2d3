"""Errors of what was saved: the JSON of plans, cursors and datasets."""

from __future__ import annotations

from typing import Any

import indexplan as ip
from tests.errors.catalogue.made import PLAN, Case, cursor, spec

ORDER = PLAN.order.to_dict()
PHASE = {"at": 0, "size": 2, "parameters": {}}
DATASET = {
    "kind": "folder",
    "pattern": "**/*",
    "num_samples": 10,
    "num_bytes": 10,
    "names_sha256": "",
    "sizes_sha256": "",
    "header": None,
}


def resume(**changes: Any) -> ip.Plan:
    """Resume from a cursor whose saved form was edited."""
    return PLAN.resume(cursor(**changes))


def dataset(**changes: Any) -> ip.Dataset:
    """Read a dataset's identity whose saved form was edited."""
    return ip.Dataset.from_dict({**DATASET, **changes})


CASES: list[Case] = [
    (
        "a number for JSON",
        lambda: ip.Plan.from_json(5),
        "a plan must be JSON text; got 5; pass what to_json returned, unchanged",
    ),
    (
        "text that is no JSON",
        lambda: ip.Plan.from_json("{"),
        "a plan must be JSON; got '{' (Expecting property name enclosed in double quotes: line "
        "1 column 2 (char 1)); pass what to_json returned, unchanged",
    ),
    (
        "JSON that is no object",
        lambda: ip.Cursor.from_json("[]"),
        "a cursor must be a JSON object; got []; pass what to_json returned, unchanged",
    ),
    (
        "a field twice",
        lambda: ip.Plan.from_json('{"a":1,"a":2}'),
        "a plan must name each field once; got ['a', 'a']; pass what to_json returned, unchanged",
    ),
    (
        "a number that is none",
        lambda: ip.Plan.from_json('{"a":NaN}'),
        "a plan must be JSON without NaN and infinity; got 'NaN'; pass what to_json returned, "
        "unchanged",
    ),
    (
        "JSON that is deep",
        lambda: ip.Plan.from_json('{"a":' + "[" * 60 + "]" * 60 + "}"),
        "a plan must nest at most 50 levels deep; got more; pass what to_json returned, unchanged",
    ),
    (
        "a list for a plan",
        lambda: ip.Plan.from_dict([1]),
        "a plan must be an object; got [1]; pass what to_dict returned",
    ),
    (
        "a list for a cursor",
        lambda: ip.Cursor.from_dict([1]),
        "a cursor must be an object; got [1]; pass what to_dict returned",
    ),
    (
        "a plan that was resumed at a step of text",
        lambda: spec(resumed={"epoch": 0, "sub_epoch": 0, "step": "0", "position": 0}),
        "a cursor's step must be an integer from 0 to 2**63 - 1; got '0'; save cursors with "
        "plan.cursor(...)",
    ),
    (
        "a plan without fields",
        lambda: ip.Cursor.from_dict({"epoch": 0}),
        "a cursor must have the fields ['order', 'position', 'step', 'sub_epoch', "
        "'sub_epochs']; got only ['epoch']; write it with to_json, or read it with the version "
        "of indexplan that wrote it",
    ),
    (
        "a plan with more fields",
        lambda: spec(colour="red"),
        "a plan must have only the fields ['batch_size', 'global_batch_size', 'order', "
        "'partition', 'remainder', 'resumed', 'sub_epochs', 'world_size']; got ['colour']; "
        "write it with to_json, or read it with the version of indexplan that wrote it",
    ),
    (
        "another partition",
        lambda: spec(partition="partition-v9"),
        "a plan's partition must be partition-v1; got 'partition-v9'; read it with the version "
        "of indexplan that wrote it, or a newer one",
    ),
    (
        "an order that is none",
        lambda: spec(order=5),
        "an order must be an object with the field 'algorithm'; got 5; pass what to_dict returned",
    ),
    (
        "an unknown order",
        lambda: spec(order={"algorithm": "shuffle-v9"}),
        "an order's algorithm must be one of {orders}; got 'shuffle-v9'; upgrade indexplan, or "
        "import the module that registers it",
    ),
    (
        "an order without fields",
        lambda: spec(order={"algorithm": "shuffle-v1"}),
        "an order of shuffle-v1 must have the fields ['num_samples', 'seed']; got only "
        "['algorithm']; write it with to_json, or read it with the version of indexplan that "
        "wrote it",
    ),
    (
        "an order other than the plan's",
        lambda: ip.Plan.from_dict(PLAN.to_dict(), order=ip.Sequential(11)),
        "a plan's order must be {'algorithm': 'sequential-v1', 'num_samples': 11}; got "
        "{'algorithm': 'sequential-v1', 'num_samples': 10}; leave order out, or pass one that "
        "equals the plan's",
    ),
    (
        "a resume that is none",
        lambda: spec(resumed=5),
        "resumed must be an object or null; got 5; write plans with to_json",
    ),
    (
        "a phase that is none",
        lambda: spec(batch_size=[PHASE, 5]),
        "a phase must be an object; got 5; write plans with to_json",
    ),
    (
        "parameters that are none",
        lambda: spec(batch_size=[{**PHASE, "parameters": None}]),
        "parameters must be an object; got None; write plans with to_json",
    ),
    (
        "a cursor before the start",
        lambda: cursor(step=-1),
        "a cursor's step must be an integer from 0 to 2**63 - 1; got -1; save cursors with "
        "plan.cursor(...)",
    ),
    (
        "a cursor of no sub-epochs",
        lambda: cursor(sub_epochs=0),
        "a cursor's sub_epochs must be an integer from 1 to 2**63 - 1; got 0; save cursors with "
        "plan.cursor(...)",
    ),
    (
        "a cursor of no epoch",
        lambda: cursor(epoch=-1),
        "epoch must be an integer from 0 to 2**32 - 1; got -1; count from 0; a run ends with "
        "epoch 2**32 - 1",
    ),
    (
        "a cursor of no order",
        lambda: cursor(order=5),
        "a cursor's order must be the dict form of an order; got 5; save cursors with "
        "plan.cursor(...)",
    ),
    (
        "a cursor of an order that is not JSON",
        lambda: cursor(order={3: 4}),
        "a cursor's order must be of JSON types; got {3: 4}; save cursors with plan.cursor(...)",
    ),
    (
        "a cursor of a sub-epoch too far",
        lambda: resume(sub_epoch=2),
        "a cursor's sub_epoch must be an integer from 0 to 1; got 2; save cursors with "
        "plan.cursor(...)",
    ),
    (
        "a cursor outside its sub-epoch",
        lambda: resume(position=4),
        "a cursor's position must be from 5 to 9, in its sub-epoch; got 4; save cursors with "
        "plan.cursor(...)",
    ),
    (
        "a cursor after too many steps",
        lambda: resume(step=4),
        "a cursor's step must be at most 3, as each finished step read a unit; got 4; save "
        "cursors with plan.cursor(...)",
    ),
    (
        "a list for a dataset",
        lambda: ip.Dataset.from_dict([1]),
        "a dataset must be an object; got [1]; pass what to_dict returned, or restore the file "
        "that it comes from",
    ),
    (
        "a dataset without fields",
        lambda: ip.Dataset.from_dict({"kind": "folder"}),
        "a dataset must have the fields ['header', 'names_sha256', 'num_bytes', 'num_samples', "
        "'pattern', 'sizes_sha256']; got only ['kind']; pass what to_dict returned, or restore "
        "the file that it comes from",
    ),
    (
        "a dataset of a number's kind",
        lambda: dataset(kind=5),
        "a dataset's kind must be str; got 5; pass what to_dict returned, or restore the file "
        "that it comes from",
    ),
    (
        "a dataset of nothing",
        lambda: dataset(num_samples=0),
        "a dataset's num_samples must be an integer from 1 to 2**63 - 1; got 0; pass what to_dict "
        "returned, or restore the file that it comes from",
    ),
]
