"""Known answers of whole plans, which no version may change: goal 1 of the design."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan.partition.remainders import REMAINDERS

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


def known(name: str) -> dict[str, Any]:
    """Return the known answers of a plan; one that is missing is a failure."""
    return {plan["name"]: plan for plan in json.loads(GOLDEN.read_text())["plans"]}[name]


def test_there_is_a_golden_plan_for_every_case() -> None:
    """The file holds these plans and no others."""
    assert NAMES == [plan["name"] for plan in json.loads(GOLDEN.read_text())["plans"]]


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_gives_its_known_answers(name: str) -> None:
    """JSON, fingerprint, steps, phases, cursors and batches are those of the plain models."""
    expected = known(name)
    plan = ip.Plan.from_json(json.dumps(expected["spec"]))
    assert expected["spec"] == plan.to_dict()
    assert expected["fingerprint"] == plan.fingerprint
    for answers in expected["sub_epochs"]:
        pair = answers["epoch"], answers["sub_epoch"]
        assert answers["first_step"] == plan.steps(*pair).start
        assert answers["num_steps"] == plan.steps(*pair).stop
        steps = range(answers["first_step"], answers["num_steps"])
        phases = [plan._layout.phases.index(plan.phase(*pair, step=step)) for step in steps]
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
