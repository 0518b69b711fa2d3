"""`check_order`: our orders pass it, and for each of its laws one that breaks just that fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan.errors import shown
from indexplan.orders.registry import _REGISTRY
from indexplan.testing import check_order, looking
from indexplan.testing.copies import LAWS as OF_COPIES
from indexplan.testing.reading_laws import LAWS as OF_READING
from tests.support.bins import Bins, ChangingBins, Drawn
from tests.support.fresh import printed
from tests.support.listed import Listed, Wrapped
from tests.support.planted import PLANTED, Good, Heavy, N, Planted
from tests.support.planted_copies import PROCESS


def test_what_is_too_large_is_skipped() -> None:
    """An order of 2**62 samples keeps the laws, but for what would take memory or a process."""
    report = check_order(ip.Shuffle(2**62), epochs=[1, 2**32 - 1], fresh_process=False)
    skipped = {check.name: check.skipped for check in report.checks if check.skipped}
    number = f"{2**62:,}"
    words = f"an epoch has {number} reads, more than 1,048,576; check a smaller order too"
    assert {
        "answer the same from a plan directory": words,
        PROCESS: "fresh_process is False",
    } == skipped


@pytest.mark.slow
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
    assert 2**17 == looking.MOST_READS
    monkeypatch.setattr(looking, "MOST_READS", 2**14)
    known(Heavy, monkeypatch)
    report = check_order(Heavy(2**17), epochs=[0], fresh_process=False)
    assert 2**13 < report.checks[4].num_checked <= 2**14


def known(kind: Any, patch: pytest.MonkeyPatch) -> None:
    """Register an order until the test ends."""
    patch.setitem(_REGISTRY, kind.algorithm, kind)


@pytest.mark.parametrize("num_samples", [1, 9, 10**5])
def test_a_sample_that_is_read_a_billion_times(num_samples: int) -> None:
    """Its positions are asked of nobody, but those of the other samples are."""
    weights = np.append(np.ones(num_samples - 1), 10.0**9)
    report = check_order(ip.Weighted(weights, 10**9 + num_samples - 1), fresh_process=False)
    skipped = report.checks[-1].skipped
    assert skipped.startswith("an epoch reads some samples more than 128 times; check a")
    located = {check.name: check.num_checked for check in report.checks}
    assert (num_samples > 1) == (located["count the reads of a sample"] > 0)


VARIES = {"answer the same in several threads", PROCESS}  # what is seen of what is broken


@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: fault.order.__name__)
def test_a_planted_fault(fault: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    """The law that is broken is named, with the order, the epoch and an example."""
    if fault.register:
        known(fault.order, monkeypatch)
    order = fault.order(fault.num_samples)
    with pytest.raises(ip.IndexPlanError) as caught:
        check_order(order, epochs=(0, 1), fresh_process=fault.law == PROCESS)
    said = f"{shown(order)} must {fault.law}; got {fault.got}"
    assert said == str(caught.value)[: len(said)]
    assert fault.got or fault.law in VARIES


def test_every_law_has_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each law is broken by some order, and the orders that they start from keep them all."""
    laws = {law.words for law in (*OF_READING, *OF_COPIES)}
    assert laws == {fault.law for fault in PLANTED}
    known(Good, monkeypatch)
    assert check_order(Good(N), fresh_process=False).ok


def test_an_order_may_refuse_epochs_that_nobody_reads() -> None:
    """From epoch 2**31 on an `IndexPlanError` is told; before it, it breaks a law."""
    *_, last = check_order(ip.Epochs(ip.Shuffle(3), 4), fresh_process=False).checks
    assert last.name == "read epoch 4294967295"
    assert last.skipped.startswith("the order refuses: epoch must be below 3221225472, where the")
    with pytest.raises(ip.IndexPlanError, match="at least one; got IndexPlanError in epoch 134217"):
        check_order(ip.Epochs(ip.Shuffle(2**40), 2**36), epochs=[0, 2**27], fresh_process=False)


@pytest.mark.slow
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
    done = printed("-c", code).splitlines()
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
