"""Errors of what was saved: the JSON of plans, cursors and datasets."""

from __future__ import annotations

from typing import Any

import indexplan as ip
from tests.errors.catalogue.made import CURSOR, PLAN, Case, cursor, spec

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
    ("a number for JSON", lambda: ip.Plan.from_json(5)),
    ("text that is no JSON", lambda: ip.Plan.from_json("{")),
    ("JSON that is no object", lambda: ip.Cursor.from_json("[]")),
    ("a field twice", lambda: ip.Plan.from_json('{"a":1,"a":2}')),
    ("a number that is none", lambda: ip.Plan.from_json('{"a":NaN}')),
    ("JSON that is deep", lambda: ip.Plan.from_json('{"a":' + "[" * 60 + "]" * 60 + "}")),
    ("a list for a plan", lambda: ip.Plan.from_json("[1]")),
    ("a list for a cursor", lambda: ip.Cursor.from_dict([1])),
    (
        "a plan that was resumed at a step of text",
        lambda: spec(resumed={"epoch": 0, "sub_epoch": 0, "step": "0", "position": 0}),
    ),
    ("a plan without fields", lambda: ip.Cursor.from_dict({"epoch": 0})),
    ("a plan with more fields", lambda: spec(colour="red")),
    ("another partition", lambda: spec(partition="partition-v9")),
    ("an order that is none", lambda: spec(order=5)),
    ("an unknown order", lambda: spec(order={"algorithm": "shuffle-v9"})),
    ("an order without fields", lambda: spec(order={"algorithm": "shuffle-v1"})),
    (
        "an order other than the plan's",
        lambda: ip.Plan.from_json(PLAN.to_json(), order=ip.Sequential(11)),
    ),
    ("a resume that is none", lambda: spec(resumed=5)),
    ("a phase that is none", lambda: spec(batch_size=[PHASE, 5])),
    ("parameters that are none", lambda: spec(batch_size=[{**PHASE, "parameters": None}])),
    ("a cursor of no order", lambda: cursor(order=5)),
    ("a cursor of an order that is not JSON", lambda: cursor(order={3: 4})),
    ("a cursor of a sub-epoch too far", lambda: resume(sub_epoch=2)),
    ("a cursor of another size", lambda: PLAN.replace(order=ip.Sequential(11)).resume(CURSOR)),
    ("a cursor outside its sub-epoch", lambda: resume(position=4)),
    ("a cursor past its sub-epoch", lambda: resume(position=10)),
    ("a cursor after too many steps", lambda: resume(step=4)),
    ("a list for a dataset", lambda: ip.Dataset.from_dict([1])),
    ("a dataset without fields", lambda: ip.Dataset.from_dict({"kind": "folder"})),
    ("a dataset of a number's kind", lambda: dataset(kind=5)),
    ("a dataset of nothing", lambda: dataset(num_samples=0)),
]
