"""Plans, cursors and datasets that are read as they were saved."""

from __future__ import annotations

import json

import indexplan as ip
from tests.errors.catalogue.made import CURSOR, PLAN
from tests.errors.catalogue.saves import CASES, DATASET

LATER = ("another partition", "an unknown order")  # take another version, or its module
CURSORS = ("JSON that is no object", "a list for a cursor", "a plan without fields")


def read_plan() -> None:
    """Read what to_json and to_dict returned, with its order or without."""
    assert ip.Plan.from_json(PLAN.to_json()) == PLAN
    for order in (None, PLAN.order):
        assert ip.Plan.from_dict(PLAN.to_dict(), order=order) == PLAN


def read_cursor() -> None:
    """Read what plan.cursor returned, and resume."""
    for cursor in (ip.Cursor.from_json(CURSOR.to_json()), ip.Cursor.from_dict(CURSOR.to_dict())):
        assert PLAN.resume(cursor) == PLAN.resume(PLAN.cursor(0, 1, step=1))


def resumed() -> None:
    """Write a resumed plan with to_json, which has phases and where it was resumed."""
    plan = PLAN.resume(PLAN.cursor(0, 1, step=1)).replace(batch_size=3)
    assert ip.Plan.from_dict(json.loads(plan.to_json())) == plan


def read_dataset() -> None:
    """Read what a dataset's to_dict returned."""
    known = ip.Dataset.from_dict({**DATASET, **KNOWN})
    assert ip.Dataset.from_dict(known.to_dict()) == known


KNOWN = {"names_sha256": "0" * 64, "sizes_sha256": "0" * 64}
CURED = {
    name: read_dataset
    if "dataset" in name
    else read_cursor
    if name in CURSORS or name.startswith("a cursor")
    else resumed
    if name in ("a resume that is none", "a phase that is none", "parameters that are none")
    else read_plan
    for name, _ in CASES
    if name not in LATER
}
