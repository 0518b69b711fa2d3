"""Drawn plans over every order answer as they did: dict form, fingerprint and batches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.every_order import every_order
from tests.support.frozen import answers, rebuilt

CASES = json.loads(Path(__file__).parents[1].joinpath("golden/drawn_plans.json").read_text())[
    "cases"
]


def algorithms(form: Any) -> set[str]:
    """Return the algorithms of all orders in a dict form."""
    if not isinstance(form, dict | list):
        return set()
    named = {form["algorithm"]} if isinstance(form, dict) and "algorithm" in form else set()
    inside = form.values() if isinstance(form, dict) else form
    return named.union(*map(algorithms, inside))


def test_plans_of_every_kind_are_frozen() -> None:
    """Each registered order stands in several, or it could change unseen."""
    forms = [algorithms(case["plan"]["order"]) for case in CASES]
    for name in every_order():
        assert sum(name in form for form in forms) > 9, name


@pytest.mark.parametrize("part", range(10))
def test_a_plan_answers_as_it_did(part: int) -> None:
    """Rebuilt from its dict form, at its start, in the next epoch, and after a resume."""
    for case in CASES[part::10]:
        plan = rebuilt(case)
        assert case["plan"] == json.loads(plan.to_json())
        assert case["answers"] == answers(plan), plan
