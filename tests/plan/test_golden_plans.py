"""Known answers of whole plans, which no version may change: goal 1 of the design."""

from __future__ import annotations

import json
import zlib

import pytest

import indexplan as ip
from tests.golden.lines import cases, crc32, known
from tests.support.every_order import every_order
from tests.support.frozen import algorithms, answers, rebuilt
from tests.support.planned import phase_at

# which are from before plans were refused whose epochs have no step
REFUSED = ("drop-fewer-units-than-ranks", "drop-fewer-units-than-sub-epochs", "drop-large")


PLANS = {plan["name"]: plan for plan in known("plans")["plans"]}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_gives_its_known_answers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON, fingerprint, steps, phases, cursors and batches are those of the plain models."""
    expected = PLANS[name]
    if name in REFUSED:  # where it does have steps, they are what they were
        monkeypatch.setattr("indexplan.plan.plan.check_every_epoch_reads", lambda _: None)
    plan = ip.Plan.from_json(json.dumps(expected["spec"]))
    assert expected["spec"] == json.loads(plan.to_json())
    assert expected["fingerprint"] == plan.fingerprint
    for part in expected["sub_epochs"]:
        pair = part["epoch"], part["sub_epoch"]
        assert part["first_step"] == plan.steps(*pair).start
        assert part["num_steps"] == plan.steps(*pair).stop
        steps = range(part["first_step"], part["num_steps"])
        phases = [plan._layout.phases.index(phase_at(plan, *pair, step)) for step in steps]
        assert part["phases"] == phases
        large = isinstance(part["batches"], int)
        stops = range(part["first_step"], part["num_steps"] + 1)[:: 9 if large else 1]
        cursors = [plan.cursor(*pair, step=step) for step in stops]
        assert part["cursors"] == [[c.epoch, c.sub_epoch, c.step, c.position] for c in cursors]
        ranks = range(plan.world_size or 0)
        valid = [[plan.units(*pair, step=s, rank=rank).num_valid for rank in ranks] for s in steps]
        batches = [[plan.batch(*pair, step=s, rank=rank) for rank in ranks] for s in steps]
        if large:
            assert part["num_valid"] == zlib.crc32(json.dumps(valid).encode())
            assert part["batches"] == crc32([i for step in batches for b in step for i in b])
        else:
            assert part["num_valid"] == valid
            assert part["batches"] == [[b.tolist() for b in step] for step in batches]


CASES = cases("drawn_plans")


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
