"""`check_order`: our orders pass it, and for each of its laws one that breaks just that fails."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.errors import shown
from indexplan.orders import Traits
from indexplan.orders.registry import _REGISTRY
from indexplan.orders.units import expand
from indexplan.testing import check_order
from indexplan.testing.copies import LAWS as OF_COPIES
from indexplan.testing.reading_laws import LAWS as OF_READING
from tests.support.bins import Bins, ChangingBins, Drawn
from tests.support.examples import examples
from tests.support.found import by_offsets
from tests.support.listed import Listed, Wrapped
from tests.support.planted import PLANTED, Good, Heavy, Int64, N, Planted
from tests.support.planted_copies import PROCESS
from tests.support.strategies import orders

ours = st.one_of(
    orders(),
    st.builds(ip.Shuffle, st.integers(2**40, 2**63 - 1), st.integers(0, 9)),
    st.builds(ip.BlockShuffle, st.integers(5000, 10**12), st.just(100), st.integers(1, 9)),
    st.builds(Bins, st.integers(1, 150)),
    st.builds(ChangingBins, st.integers(1, 150)),
    st.builds(Drawn, st.integers(1, 150), st.integers(0, 9)),
    st.lists(st.integers(0, 9), min_size=1, max_size=30).map(lambda row: Listed(row, 10)),
    st.just(Listed([2**40, 7, 2**40], 2**62, [0.5])),
)


@examples(20)
@given(st.one_of(ours, ours.map(Wrapped)))
def test_our_orders_pass(order: ip.Order) -> None:
    """Orders of this library, and those of its tests, keep all laws."""
    report = check_order(order, fresh_process=False)
    assert report.ok
    skipped = {check.name: check.skipped for check in report.checks if check.skipped}
    if order.num_units(0) > 2**20:
        number = f"{order.num_units(0):,}"
        words = f"an epoch has {number} reads, more than 1,048,576; check a smaller order too"
        assert words == skipped.pop("answer the same from a plan directory")
    assert {PROCESS: "fresh_process is False"} == skipped


@pytest.mark.parametrize("order", [ip.Shuffle(N, seed=3), Wrapped(Listed([3, 1, 3], 5)), Bins(20)])
def test_our_orders_pass_in_a_new_process(order: ip.Order) -> None:
    """The same in a process that has to import the order's class."""
    names = [law.words for law in (*OF_READING, *OF_COPIES)]
    report = check_order(order)
    assert (names, True) == ([check.name for check in report.checks], report.ok)
    assert all(check.num_checked for check in report.checks)


@pytest.mark.parametrize("order", [ip.Shuffle(N, seed=3), ChangingBins(20), Drawn(20)])
def test_stored_orders_pass(order: ip.Order, tmp_path: Path) -> None:
    """An order that is read from a plan directory keeps the laws, stored epochs or not."""
    ip.save(ip.Plan(order, batch_size=2), tmp_path / "a.plan", epochs=range(2), units_per_chunk=7)
    assert check_order(ip.types.Stored(tmp_path / "a.plan"), fresh_process=False).ok


def test_bins_of_many_samples_are_not_all_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many bins are looked at as hold 2**17 samples, and others as well as the first."""
    known(Heavy, monkeypatch)
    report = check_order(Heavy(2**20), epochs=[0], fresh_process=False)
    assert 2**16 < report.checks[4].num_checked <= 2**17


def known(kind: Any, patch: pytest.MonkeyPatch) -> None:
    """Register an order until the test ends."""
    patch.setitem(_REGISTRY, kind.algorithm, kind)


@dataclass(frozen=True, eq=False)
class Tiled(ip.Order):
    """Reads one sample often, and the others once."""

    num_samples: int
    num_reads: int

    algorithm = "test-kit-tiled-v1"
    traits = Traits(reads="any")

    def num_units(self, epoch: int) -> int:
        return self.num_samples + self.num_reads

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        out[:] = np.minimum(expand(starts, stops), self.num_samples - 1)

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        counts = self.tally(epoch, indices)
        assert counts.sum() < 10**6, "more than memory may hold"
        return by_offsets(expand(indices, indices + counts), np.append(0, np.cumsum(counts)))

    def tally(self, epoch: int, indices: Int64) -> Int64:
        return 1 + self.num_reads * (indices == self.num_samples - 1)


@pytest.mark.parametrize("num_samples", [1, 9, 10**6])
def test_a_sample_that_is_read_a_billion_times(
    num_samples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its positions are asked of nobody, but those of the other samples are."""
    known(Tiled, monkeypatch)
    report = check_order(Tiled(num_samples, 10**9), fresh_process=False)
    last = report.checks[-1]
    assert last.skipped.startswith("an epoch reads some samples more than 128 times; check a")
    located = {check.name: check.num_checked for check in report.checks}
    assert (num_samples > 1) == (located["count the reads of a sample"] > 0)
    assert check_order(Tiled(num_samples % 10 + 1, 20), fresh_process=False).ok


VARIES = {"answer the same in several threads", PROCESS}  # what is seen of what is broken


@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: fault.order.__name__)
def test_a_planted_fault(fault: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    """The law that is broken is named, with the order, the epoch and an example."""
    if fault.register:
        known(fault.order, monkeypatch)
    order = fault.order(fault.num_samples)
    with pytest.raises(ip.IndexPlanError) as caught:
        check_order(order, epochs=fault.epochs, fresh_process=fault.law == PROCESS)
    said = f"{shown(order)} must {fault.law}; got {fault.got}"
    assert said == str(caught.value)[: len(said)]
    assert fault.got or fault.law in VARIES


def test_every_law_has_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each law is broken by some order, and the orders that they start from keep them all."""
    laws = {law.words for law in (*OF_READING, *OF_COPIES)}
    assert laws == {fault.law for fault in PLANTED}
    known(Good, monkeypatch)
    assert check_order(Good(N), fresh_process=False).ok


@dataclass(frozen=True, eq=False)
class Short(Good):
    """Refuses what comes after 2**31 epochs, and breaks at one before."""

    limit: int = 2**31

    algorithm = "test-kit-short-v1"

    def num_units(self, epoch: int) -> int:
        if epoch > self.limit:
            raise ip.IndexPlanError(f"epoch must be at most {self.limit}; got {epoch}; stop there")
        return super().num_units(epoch)


def test_an_order_may_refuse_epochs_that_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """From epoch 2**31 on an `IndexPlanError` is told; before it, it breaks a law."""
    known(Short, monkeypatch)
    *_, last = check_order(Short(N), fresh_process=False).checks
    words = "epoch must be at most 2147483648; got 4294967295; stop there"
    assert ("read epoch 4294967295", f"the order refuses: {words}") == (last.name, last.skipped)
    with pytest.raises(ip.IndexPlanError, match="at least one; got IndexPlanError in epoch 6"):
        check_order(Short(N, limit=5), epochs=[0, 6])


def test_a_class_of_the_main_module() -> None:
    """A new process cannot import what a script or notebook defines: said, with the way out."""
    code = """
import dataclasses, indexplan as ip

@ip.register
@dataclasses.dataclass(frozen=True, eq=False)
class Mine(ip.Sequential):
    algorithm = "mine-v1"

print(ip.testing.check_order(Mine(5), fresh_process=False).ok)
try:
    ip.testing.check_order(Mine(5))
except ip.IndexPlanError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    begins = "Mine(num_samples=5) must answer the same in a new process; got AttributeError: "
    assert ["True", begins] == [done[0], done[1][: len(begins)]]
    assert done[1].endswith("or pass fresh_process=False")


class Counting(Good):
    """An order of one's own that counts in NumPy's integers, as `len` of arrays doesn't."""

    def num_units(self, epoch: int) -> Any:
        return np.int64(self.num_samples)


@pytest.mark.parametrize("remainder", ["spread", "drop", "pad", "carry"])
@pytest.mark.parametrize("order", [Counting(30), Good(np.int64(30))])  # type: ignore[arg-type]
def test_numbers_of_numpy_are_as_good(order: Good, remainder: Any) -> None:
    """NumPy's integers wrap, and JSON has none: locate, verify and cursors failed with them."""
    mine, same = (
        ip.Plan(each, world_size=2, batch_size=4, remainder=remainder) for each in (order, Good(30))
    )
    assert type(order.num_units(0)) is type(order.num_samples) is int
    assert ip.verify(mine).ok
    assert mine.locate(3, epoch=1) == same.locate(3, epoch=1)
    cursor = mine.cursor(epoch=0, step=2)
    assert ip.Cursor.from_json(cursor.to_json()).position == cursor.position
    assert mine.account(0) == same.account(0)
