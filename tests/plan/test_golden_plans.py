"""Known answers of whole plans, which no version may change: goal 1 of the design."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan.partition.remainders import REMAINDERS
from tests.support.planned import READS_NOTHING, phase_at

GOLDEN = Path(__file__).parents[1] / "golden" / "plans.json"

NAMES = [
    f"{remainder}-{case}"
    for remainder in sorted(REMAINDERS, key="spread".__ne__)
    for case in (
        *("sequential", "shuffle", "one-sample", "fewer-units-than-ranks"),
        *("fewer-units-than-sub-epochs", "sub-epochs", "global", "nested", "phases", "resumed"),
        *("large", "large-blocks"),
    )
]

REFUSED = ("drop-fewer-units-than-ranks", "drop-fewer-units-than-sub-epochs", "drop-large")


def known(name: str) -> dict[str, Any]:
    """Return the known answers of a plan; one that is missing is a failure."""
    return {plan["name"]: plan for plan in json.loads(GOLDEN.read_text())["plans"]}[name]


def test_there_is_a_golden_plan_for_every_case() -> None:
    """The file holds these plans and no others."""
    assert NAMES == [plan["name"] for plan in json.loads(GOLDEN.read_text())["plans"]]


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_is_refused_if_an_epoch_has_no_step(name: str) -> None:
    """The known answers hold three such plans, from before they were refused."""
    expected = known(name)
    resumed = expected["spec"]["resumed"]
    steps: Counter[int] = Counter()
    for each in expected["sub_epochs"]:
        steps[each["epoch"]] += each["num_steps"] - each["first_step"]
    started = 0 if resumed is None else resumed["epoch"] + 1
    drops = expected["spec"]["remainder"] == "drop"  # "carry" may begin none in an epoch
    empty = drops and any(epoch >= started and not num for epoch, num in steps.items())
    assert (name in REFUSED) == empty
    if empty:
        with pytest.raises(ip.IndexPlanError, match="must have a full step") as caught:
            ip.Plan.from_json(json.dumps(expected["spec"]))
        assert READS_NOTHING == caught.value.rule


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_gives_its_known_answers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON, fingerprint, steps, phases, cursors and batches are those of the plain models."""
    expected = known(name)
    if name in REFUSED:  # where it does have steps, they are what they were
        monkeypatch.setattr("indexplan.plan.plan.check_every_epoch_reads", lambda _: None)
    plan = ip.Plan.from_json(json.dumps(expected["spec"]))
    assert expected["spec"] == json.loads(plan.to_json())
    assert expected["fingerprint"] == plan.fingerprint
    for answers in expected["sub_epochs"]:
        pair = answers["epoch"], answers["sub_epoch"]
        assert answers["first_step"] == plan.steps(*pair).start
        assert answers["num_steps"] == plan.steps(*pair).stop
        steps = range(answers["first_step"], answers["num_steps"])
        phases = [plan._layout.phases.index(phase_at(plan, *pair, step)) for step in steps]
        assert answers["phases"] == phases
        large = isinstance(answers["batches"], int)
        stops = range(answers["first_step"], answers["num_steps"] + 1)[:: 9 if large else 1]
        cursors = [plan.cursor(*pair, step=step) for step in stops]
        assert answers["cursors"] == [[c.epoch, c.sub_epoch, c.step, c.position] for c in cursors]
        ranks = range(plan.world_size or 0)
        valid = [[plan.units(*pair, step=s, rank=rank).num_valid for rank in ranks] for s in steps]
        batches = [[plan.batch(*pair, step=s, rank=rank) for rank in ranks] for s in steps]
        if large:
            assert answers["num_valid"] == zlib.crc32(json.dumps(valid).encode())
            indices = np.array([i for step in batches for b in step for i in b], "<i8")
            assert answers["batches"] == zlib.crc32(indices.tobytes())
        else:
            assert answers["num_valid"] == valid
            assert answers["batches"] == [[b.tolist() for b in step] for step in batches]
