"""Verification: it passes what is right, and cannot pass what is wrong."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import indexplan as ip
from indexplan.orders import Traits
from indexplan.partition import ranks as shares
from indexplan.partition.remainders import REMAINDERS
from indexplan.partition.steps import Partition, steps_in
from indexplan.reports import laws as checks
from indexplan.reports.show import show_plan
from tests.laws.test_pathological import peak
from tests.support.examples import examples
from tests.support.planned import planned
from tests.support.strategies import resumed_plans


def test_samples_that_are_read_very_often() -> None:
    """They are verified as far as their reads can be listed."""
    order = ip.Weighted([2**30, 1, 1], epoch_size=2**30)
    assert ip.verify(ip.Plan(order, world_size=2**12, batch_size=2**12), epochs=[0]).ok


@dataclass(frozen=True, eq=False)
class Pausing(ip.Sequential):
    """An order of one's own, with an epoch that has no unit."""

    empty: int = 0

    algorithm = "test-pausing-v1"
    traits = Traits(reads="any")

    def num_units(self, epoch: int) -> int:
        """Return the number of units of an epoch."""
        return 0 if epoch == self.empty else super().num_units(epoch)

    def tally(self, epoch: int, indices: Any) -> Any:
        """Return how often an epoch reads samples."""
        return super().tally(epoch, indices) * (epoch != self.empty)


@pytest.mark.parametrize("empty", [0, 1])
@pytest.mark.parametrize("remainder", ["spread", "pad"])
def test_an_epoch_without_units(remainder: Any, empty: int) -> None:
    """It has no step, and every report says so of a plan that is not saved."""
    plan = ip.Plan(Pausing(7, empty), world_size=2, batch_size=2, remainder=remainder)
    report = ip.verify(plan, range(3))
    assert report.ok, str(report)
    assert (0, 0) == (plan.account(empty).num_units, plan.account(empty).num_steps)
    assert (1 - empty, 0, 0) == ip.diff(plan, plan.replace(batch_size=1)).steps_from
    assert show_plan(plan, None, empty, None).data["accounts"][0]["num_read"] == 0


LABELS = np.arange(1000) % 10
LARGE = {
    "class batches": lambda: ip.ClassBatches(LABELS, 2, 2, epoch_size=10**11),
    "copies of bins": lambda: ip.Repeat(ip.Packed(np.arange(1, 2000), 4096), 2**28),
    "windows": lambda: ip.DocumentWindows(np.full(1000, 10**12), length=2048),
}


@pytest.mark.parametrize("name", LARGE)
def test_little_memory_for_any_number_of_bins(name: str) -> None:
    """However many units an epoch has, a few of them are looked at."""
    plan = ip.Plan(LARGE[name](), world_size=64, batch_size=32)
    report, most = peak(lambda: ip.verify(plan))
    assert report.ok, str(report)
    assert most < 2**27


@pytest.mark.parametrize("remainder", REMAINDERS)
@pytest.mark.parametrize("world_size", [6, 1000])
def test_the_largest_sizes(remainder: str, world_size: int) -> None:
    """The last step of an epoch may end, and a rank's part begin, past the largest int64."""
    for n in (2**63 - 1, 2**63 - 129):
        plan = ip.Plan(
            ip.Shuffle(n), world_size=world_size, batch_size=65, sub_epochs=2, remainder=remainder
        )
        report = ip.verify(plan, range(2))
        assert report.ok, str(report)
        assert 2 * n == report.checks[-1].num_checked


def test_what_is_left_is_verified() -> None:
    """By default from the epoch of the cursor on; what was read before is said to be unchecked."""
    plan = ip.Plan(ip.Shuffle(1000), world_size=3, batch_size=7)
    rest = plan.resume(plan.cursor(2, step=5))
    assert str(ip.verify(rest, [2])) == str(ip.verify(rest))
    assert 43 == ip.verify(rest).checks[1].num_checked
    why = "they were read before the plan was resumed"
    assert (ip.types.Check("laws of these epochs", 0, skipped=why),) == ip.verify(
        rest, [0, 1]
    ).checks


@examples(20)
@given(plan=resumed_plans())
def test_resumed_plans_are_not_passed_unseen(plan: ip.Plan) -> None:
    """Whatever epoch a run goes on in, its laws are looked at."""
    report = ip.verify(plan)
    assert report.ok, str(report)
    assert "every unit is accounted for" == report.checks[-1].name
    assert report.checks[-1].num_checked


def test_open_world() -> None:
    """While nobody says how many ranks there are, laws are checked for one, and the report says so.

    A resume is kept.
    """
    plan = ip.Plan(ip.Shuffle(100), global_batch_size=8, sub_epochs=3)
    plan = plan.resume(plan.cursor(1, 1, step=2))
    report = ip.verify(plan, epochs=range(3))
    assert report.ok, str(report)
    words = "the plan's world_size is open; pass plan.replace(world_size=...), or --world-size"
    assert f"--  laws of more than one rank: not checked; {words}" in str(report)
    one = plan.replace(world_size=1).resume(plan.start)
    assert ip.verify(one, epochs=range(3)).checks == tuple(
        check for check in report.checks if check.skipped != words
    )
    assert "rank" in str(ip.verify(plan.replace(world_size=1)))
    assert words not in str(ip.verify(plan.replace(world_size=1)))


@pytest.mark.slow
@pytest.mark.parametrize("remainder", REMAINDERS)
@pytest.mark.parametrize("sub_epochs", [1000, 2**60])
def test_many_sub_epochs(remainder: str, sub_epochs: int) -> None:
    """Of many sub-epochs some are looked at, and the report says how many of how many."""
    phases = [ip.Phase(0, 7), ip.Phase(10**6, 9), ip.Phase((1, 0), 2)]
    fields = {"world_size": 2, "batch_size": phases, "sub_epochs": sub_epochs}
    plan = planned(ip.Shuffle(10**9), **fields, remainder=remainder)
    report = ip.verify(plan, epochs=range(2))
    assert report.ok, str(report)
    seen = report.checks[0].num_checked
    assert 500 < seen < 600
    words = f"{seen:,} of {2 * sub_epochs:,} were: those where something changes, and some between"
    assert f"--  all other sub-epochs: not checked; {words}" in str(report)
    accounted = {check.name: check.num_checked for check in report.checks}
    assert 2 * 10**9 == accounted["every unit is accounted for"]


def test_sub_epochs_that_are_looked_at() -> None:
    """Those at which something changes are among them: sizes, phases, a resume, both ends."""
    phases = [ip.Phase(0, 7), ip.Phase(12_345, 9), ip.Phase((0, 7_000), 2)]
    plan = ip.Plan(ip.Sequential(23_456), world_size=1, batch_size=phases, sub_epochs=10_000)
    resumed = plan.resume(plan.cursor(0, 2_222, step=0))
    chosen = set(checks._sampled_sub_epochs(resumed._layout.partition, 0))
    inside = next(n for n in range(10_000) if resumed._layout.partition.sub_epoch(0, n)[1] > 12_345)
    for place in (2_222, 3_456, inside, 7_000):  # 3,456 are larger by one
        assert {place - 1, place, place + 1} <= chosen, place
    assert {0, 1, 9_998, 9_999} <= chosen
    gaps = np.diff(sorted(chosen))
    assert gaps.max() <= 10_000 // checks.FEW + 1


@pytest.mark.parametrize("wrong_one", [0, 3_456, 9_999])
def test_wrong_sub_epochs_fail(monkeypatch: pytest.MonkeyPatch, wrong_one: int) -> None:
    """A partition whose sub-epochs leave a gap is caught."""
    right = Partition.sub_epoch

    def shifted(self: Partition, epoch: int, sub_epoch: int) -> tuple[int, int]:
        start, stop = right(self, epoch, sub_epoch)
        return start + (sub_epoch == wrong_one), stop

    plan = ip.Plan(ip.Sequential(23_456), world_size=1, batch_size=9, sub_epochs=10_000)
    monkeypatch.setattr(Partition, "sub_epoch", shifted)
    report = ip.verify(plan)
    assert "sub-epochs tile the epoch" in failed(report)


@dataclass(frozen=True, eq=False)
class Lost(ip.Sequential):
    """An order that is not one-to-one: its last two positions hold the same sample."""

    algorithm = "lost-test"

    def fill(self, epoch: int, starts: np.ndarray, stops: np.ndarray, out: np.ndarray) -> None:
        super().fill(epoch, starts, stops, out)
        np.minimum(out, 98, out=out)


@dataclass(frozen=True, eq=False)
class Inventing(ip.Sequential):
    """An order whose `find` names a read of the next position, too."""

    algorithm = "inventing-test"
    traits = Traits(reads="any")

    def find(self, epoch: int, indices: np.ndarray, most: int | None = None) -> Any:
        found = np.arange(len(indices))
        positions = np.concatenate([indices, (indices + 1) % self.num_samples])
        return np.concatenate([found, found]), positions


@dataclass(frozen=True, eq=False)
class Rising(ip.Shuffle):
    """An order whose `find` is right only for samples in rising order, which no batch has."""

    algorithm = "rising-test"

    def find(self, epoch: int, indices: np.ndarray, most: int | None = None) -> Any:
        return super().find(epoch, np.sort(indices), most)


PADDED = {"batch_size": 60, "remainder": "pad", "balance": ip.Balance(np.arange(1, 101))}


@pytest.mark.parametrize(
    ("order", "fields"),
    [(Lost(100), {}), (Lost(100), PADDED), (Inventing(100), {}), (Rising(100), {})],
    ids=["lost", "lost, of padded steps under balance", "inventing", "rising"],
)
def test_wrong_orders_fail(order: ip.Order, fields: dict[str, Any]) -> None:
    """An order that deals a sample twice, or finds it elsewhere, is caught by its inverse."""
    report = ip.verify(ip.Plan(order, **{"world_size": 2, "batch_size": 10, **fields}))
    assert "locate is the inverse of batch" in failed(report)
    assert isinstance(order, Inventing) or len(failed(report)) == 1
    assert "BAD locate is the inverse of batch" in str(report)
    assert not report.to_dict()["ok"]


def failed(report: ip.types.Report) -> set[str]:
    """Names of the checks that failed."""
    return {check.name for check in report.checks if not check.ok}


@dataclass(frozen=True, eq=False)
class AtLast(ip.Packed):
    """An order of bins whose `find` is wrong for the samples of one of them."""

    algorithm = "at-last-test"
    position = 199

    def find(self, epoch: int, indices: np.ndarray, most: int | None = None) -> Any:
        which, positions = super().find(epoch, indices, most)
        return which, np.where(positions == self.position, 0, positions)


BALANCE = ip.Balance(np.full(400, 4))


@pytest.mark.parametrize(
    ("position", "balance"), [(1, None), (99, None), (100, None), (199, None), (199, BALANCE)]
)
def test_bins_at_both_ends_of_a_batch_are_located(
    position: int, balance: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a batch of 100 bins, the first 32 and the last 32 are looked at."""
    monkeypatch.setattr(AtLast, "position", position)
    order = AtLast(np.full(400, 4), 8)
    report = ip.verify(ip.Plan(order, world_size=2, batch_size=100, balance=balance))
    assert {"locate is the inverse of batch"} == failed(report)


def test_wrong_ranks_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition whose ranks overlap is caught."""
    right = shares.share

    def overlapping(*where: Any) -> tuple[int, int]:
        start, stop = right(*where)
        return max(0, start - 1), stop

    monkeypatch.setattr(checks, "share", overlapping)
    report = ip.verify(ip.Plan(ip.Sequential(100), world_size=3, batch_size=5))
    assert "ranks tile their step, within one unit" in failed(report)


@pytest.mark.parametrize("remainder", REMAINDERS)
@pytest.mark.parametrize(("field", "change"), [("start", 1), ("length", 9), ("step", 1)])
def test_wrong_steps_fail(remainder: str, field: str, change: int) -> None:
    """A partition whose steps leave a gap, overlap, are too long or misnumbered is caught."""
    sizes = [ip.Phase(0, 5), ip.Phase(50, 8)]
    plan = ip.Plan(ip.Sequential(100), world_size=1, batch_size=sizes, remainder=remainder)
    steps = steps_in(plan._layout.partition, 0, 0)
    *others, last = steps.spans
    wrong = last._replace(**{field: getattr(last, field) + change})
    assert [] == checks._tiling(plan, steps)
    assert [] != checks._tiling(plan, steps._replace(spans=(*others, wrong)))


def test_a_phase_without_a_step_of_its_own() -> None:
    """What is dropped is less than a step of the phase in force, which may have no step."""
    phases = [ip.Phase(0, 1), ip.Phase(1, 2)]
    plan = ip.Plan(ip.Sequential(2), world_size=1, batch_size=phases, remainder="drop")
    assert 1 == plan.account(0).num_dropped
    report = ip.verify(plan)
    assert report.ok, str(report)
