"""Verification: it passes what is right, and cannot pass what is wrong."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import indexplan as ip
from indexplan import checks, shares
from indexplan.partition import layout
from tests.strategies import plans


@settings(max_examples=30)
@given(plan=plans())
def test_right_plans_pass(plan: ip.Plan) -> None:
    """Every drawn plan keeps its laws."""
    report = ip.verify(plan, epochs=range(2))
    assert report.ok, str(report)


@pytest.mark.parametrize("remainder", ["drop", "pad", "spread", "carry"])
def test_any_size(remainder: str) -> None:
    """A plan of 1e12 samples is verified without touching them."""
    plan = ip.Plan(
        ip.Shuffle(10**12), world_size=4096, batch_size=256, sub_epochs=7, remainder=remainder
    )
    report = ip.verify(plan)
    assert report.ok, str(report)
    assert 10**12 == report.checks[-1].num_checked


def test_resumed() -> None:
    """A resumed plan is verified from its cursor on."""
    plan = ip.Plan(ip.Shuffle(1000), world_size=3, batch_size=7, sub_epochs=4, remainder="pad")
    resumed = plan.replace(world_size=2).resume(plan.cursor(1, 2, step=5))
    report = ip.verify(resumed, epochs=range(3))
    assert report.ok, str(report)
    assert 8 == next(c for c in report.checks if c.name == "sub-epochs tile the epoch").num_checked


def test_open_world() -> None:
    """Ranks cannot be checked while nobody says how many there are."""
    with pytest.raises(ip.IndexPlanError) as error:
        ip.verify(ip.Plan(ip.Shuffle(10), batch_size=2))
    assert (
        "world_size must be set, as ranks are checked; got None; use plan.replace(world_size=...)"
        == str(error.value)
    )


@dataclass(frozen=True, eq=False)
class Lost(ip.Order):
    """An order that is not one-to-one: its last two positions hold the same sample."""

    num_samples: int

    algorithm = "lost-test"

    def to_dict(self) -> dict[str, Any]:
        return {"algorithm": self.algorithm, "num_samples": self.num_samples}

    def _fill(self, epoch: int, starts: np.ndarray, stops: np.ndarray, out: np.ndarray) -> None:
        out[:] = np.minimum(ip.Sequential(self.num_samples).take(epoch, starts, stops), 98)

    def _locate(self, epoch: int, indices: np.ndarray) -> np.ndarray:
        return indices


def failed(report: ip.Report) -> set[str]:
    """Names of the checks that failed."""
    return {check.name for check in report.checks if not check.ok}


def test_order_that_repeats_fails() -> None:
    """An order that deals a sample twice is caught by its inverse."""
    report = ip.verify(ip.Plan(Lost(100), world_size=2, batch_size=10))
    assert {"locate is the inverse of batch"} == failed(report)
    assert "BAD locate is the inverse of batch" in str(report)
    assert not report.to_dict()["ok"]


def test_wrong_ranks_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition whose ranks overlap is caught."""
    right = shares.share

    def overlapping(*where: Any) -> tuple[int, int]:
        start, stop = right(*where)
        return max(0, start - 1), stop

    monkeypatch.setattr(checks, "share", overlapping)
    report = ip.verify(ip.Plan(ip.Sequential(100), world_size=3, batch_size=5))
    assert "ranks tile their step, within one unit" in failed(report)


@pytest.mark.parametrize("remainder", ["drop", "pad", "spread", "carry"])
@pytest.mark.parametrize(("field", "change"), [("start", 1), ("length", 9), ("step", 1)])
def test_wrong_steps_fail(remainder: str, field: str, change: int) -> None:
    """A partition whose steps leave a gap, overlap, are too long or misnumbered is caught."""
    sizes = [ip.Phase(0, 5), ip.Phase(50, 8)]
    plan = ip.Plan(ip.Sequential(100), world_size=1, batch_size=sizes, remainder=remainder)
    steps = layout(plan._partition, 100, 0, 0)
    first, last = steps.spans
    wrong = last._replace(**{field: getattr(last, field) + change})
    assert [] == checks._tiling(plan, steps)
    assert [] != checks._tiling(plan, steps._replace(spans=(first, wrong)))
