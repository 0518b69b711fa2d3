"""Runs that take samples out: what is left is read as if nothing had happened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import indexplan as ip
from indexplan.cli.main import main
from tests.histories.runs import run_of
from tests.support.examples import examples

SHUFFLE = ip.Shuffle(1000, seed=1)
PLAN = ip.Plan(SHUFFLE, world_size=4, batch_size=8)


@pytest.mark.slow
@examples(60)
@example(seed=22)  # in which a bin loses a part of what it holds
@given(seed=st.integers(0, 2**32))
def test_drawn_histories(seed: int) -> None:
    """Samples leave, sources join, and ranks come and go, in any order."""
    with TemporaryDirectory() as folder:
        run_of(seed, 8, Path(folder))


def test_a_cursor_of_an_earlier_order() -> None:
    """A run continues with a cursor of any of its earlier orders, up to where samples left."""
    first = ip.Without(SHUFFLE, [5, 3], since=PLAN.cursor(0, step=3))
    plan = PLAN.replace(order=first)
    both = plan.replace(order=ip.Without(first, [9, 1], since=plan.cursor(1, step=2)))
    for cursor in (PLAN.cursor(0, step=2), PLAN.cursor(0, step=3), plan.cursor(1, step=1)):
        assert cursor.position == both.resume(cursor).start.position
    for cursor in (PLAN.cursor(0, step=4), plan.cursor(1, step=3)):
        with pytest.raises(ip.IndexPlanError, match="since which units are left out"):
            both.resume(cursor)
    with pytest.raises(ip.IndexPlanError, match="must belong to the plan's order"):
        PLAN.resume(both.cursor(1, step=4))


@settings(deadline=None)
@given(st.data())
def test_a_run_continues_up_to_a_change_inside(data: st.DataObject) -> None:
    """It does as long as nothing has been read of what the change moves, in whatever sequence."""
    num, weights = 50, {"a": 3, "b": 2}
    mixture = ip.Mixture({"a": ip.Shuffle(30, seed=1), "b": ip.Shuffle(20, seed=2)}, weights)
    samples = data.draw(st.sets(st.integers(0, num - 1), min_size=1, max_size=20), label="samples")
    place = data.draw(st.integers(0, num - 1), label="place")

    def taken_out(inside: ip.Order) -> ip.Order:
        return ip.Without(inside, sorted(samples))

    order = taken_out(mixture)
    changed = taken_out(mixture.with_phase(place, {"a": 1, "b": 1}, planned="drop"))
    inner = mixture.take(0, 0, num).tolist()
    read = [inner.index(sample) for sample in order.take(0, 0, order.num_units(0)).tolist()]
    for position in range(len(read) + 1):
        untouched = all(each < place for each in read[:position])
        assert untouched == changed.continues(order.to_dict(), 0, position), position


def test_what_the_command_shows(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A plan in JSON is shown with what it excludes."""
    plan = PLAN.replace(order=ip.Without(SHUFFLE, range(100), since=PLAN.cursor(0, step=7)))
    np.save(tmp_path / "samples.npy", np.arange(100))
    (tmp_path / "plan.json").write_text(plan.to_json())
    main(["show", str(tmp_path / "plan.json"), "--column", str(tmp_path / "samples.npy")])
    shown = capsys.readouterr().out
    assert "epoch   steps      read dropped excluded padded" in shown
    assert "1          29       900       0      100      0" in shown


def test_the_stream_of_a_carry() -> None:
    """Places count what is read, so frameworks that count samples find their place."""
    cursor = PLAN.cursor(1, step=7)
    plan = PLAN.replace(order=ip.Without(SHUFFLE, range(100), since=cursor), remainder="carry")
    for epoch, step in ((0, 5), (1, 3), (2, 9), (5, 1)):
        expected = plan.cursor(epoch, step=step)
        place = sum(plan.order.num_units(each) for each in range(expected.epoch))
        assert expected == plan.cursor_at(place + expected.position)
    phases = [ip.Phase(0, 8), ip.Phase(1500, 4)]
    scheduled = plan.replace(batch_size=phases)
    assert 8 == scheduled.units(1, step=0, rank=0).phase.size
    assert 4 == scheduled.units(2, step=0, rank=0).phase.size


Int64 = NDArray[np.int64]


@ip.register
@dataclass(frozen=True, eq=False)
class Counted(ip.Sequential):
    """The samples in turn; it counts those that it was asked to find."""

    algorithm = "tests-counted-v1"
    asked: ClassVar[list[int]] = []

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        self.asked.append(len(indices))
        return super().find(epoch, indices, most)


@pytest.mark.parametrize("remainder", ["spread", "pad", "carry", "drop"])
@pytest.mark.parametrize("num", [16, 64])
def test_an_exclusion_costs_its_own_samples(num: int, remainder: Any) -> None:
    """A run that excludes samples often finds each of them a fixed number of times, not each time.

    Before, the 64 groups of one epoch, 640 samples, were found 32 times each.
    """
    plan = ip.Plan(Counted(5000), world_size=2, batch_size=5, remainder=remainder)
    Counted.asked.clear()
    for group in range(num):
        cursor = plan.cursor(0, step=group + 1)
        samples = np.arange(10) * 300 + group
        order = ip.Without(plan.order, samples + 1000, since=cursor)
        plan = plan.replace(order=order).resume(cursor)
        plan.batch(0, step=group + 1, rank=1)
    assert plan.account(0).num_excluded <= 10 * num
    assert sum(Counted.asked) <= 4 * 10 * num
    first = plan.batch(2, step=8, rank=0)
    Counted.asked.clear()  # once an epoch is known, nothing is searched for again
    assert first.tolist() == plan.batch(2, step=8, rank=0).tolist()
    plan.units(2, step=9, rank=1)
    plan.account(2)
    plan.cursor(2, step=10)
    assert Counted.asked == []
