"""Orders over another order: epochs of one's own size, copies, some samples; alone and nested."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan.orders import streams
from indexplan.orders.base import Int64
from indexplan.reports.lockstep import agrees_until
from tests.orders.test_protocol import Later
from tests.support.reweighted import reweighted


def test_known_fingerprints() -> None:
    """Those of what is written; the plans that are frozen begin with what orders say they are."""
    shuffled = ip.Epochs(ip.Shuffle(10, seed=3), epoch_size=4)
    assert "48b91b9f3c83e829" == shuffled.fingerprint[:16]
    subset = ip.Subset(ip.Shuffle(10, seed=3), range(100, 110), 200)
    assert {"range": [100, 110, 1]} == subset.to_dict()["indices"]
    assert "32510284c70ab9d7" == subset.fingerprint[:16]
    listed = ip.Subset(ip.Shuffle(3, seed=3), [5, 6, 7], 200)
    assert "09b684e0fa7eb624" == listed.fingerprint[:16]


def test_runs_may_go_on_where_the_order_inside_may() -> None:
    """A layer asks the order inside, from where on the two may differ."""
    makers: list[tuple[Any, int]] = [
        (lambda order: ip.Epochs(order, 10), 3),
        (lambda order: ip.Repeat(order, 2), 1),
        # of 75 units of the mixture, 37 or 38 are read from the order, in its epoch 1
        (
            lambda order: ip.Mixture(
                {"a": order, "b": ip.Shuffle(5)}, MIXED.weights, epoch_size=10
            ),
            7,
        ),
    ]
    for make, epoch in makers:
        saved = make(Later(20)).to_dict()
        assert not make(Later(20, since=1)).continues(saved, epoch, 5)
        assert make(Later(20, since=2)).continues(saved, epoch, 5)
        assert not make(Later(20, since=2)).continues({**saved, "algorithm": "x"}, epoch, 5)


def test_huge_streams() -> None:
    """Places up to 2**63 are exact; past that, and past the last epoch inside, there are none."""
    order = ip.Epochs(ip.Shuffle(2**40, seed=1), 2**36)
    epoch = 2**27 - 2
    inner, start = divmod(epoch * 2**36 + 12345, 2**40)
    assert order.take(epoch, 12345).tolist() == order.order.take(inner, start).tolist()
    sample = order.take(epoch, 12345)
    assert order.locate(epoch, sample).tolist() == [12345]
    with pytest.raises(ip.IndexPlanError, match="epoch must be below 134217727, where the stream"):
        order.take(2**27 - 1, 0)
    small = ip.Epochs(ip.Shuffle(3), 2)
    assert 2 == len(small.take(2**32 - 1, 0, 2))
    with pytest.raises(ip.IndexPlanError, match="epoch must be below"):
        ip.Epochs(ip.Shuffle(3), 4).take(2**32 - 1, 0)


def test_answers_cost_what_they_hold() -> None:
    """Of a billion copies, or a million short epochs, the first is found and all are counted."""
    copies = ip.Repeat(ip.Shuffle(3, seed=1), 2**30)
    assert 2**30 == copies.count(0, 1)
    assert copies.take(5, copies.locate(5, 1)).tolist() == [1]
    ends = ip.Epochs(ip.Shuffle(3, seed=1), 10**9)
    assert 10**9 == ends.count(1, [0, 1, 2]).sum()
    assert ends.take(1, ends.locate(1, [0, 1, 2])).tolist() == [0, 1, 2]
    plan = ip.Plan(copies, world_size=1, batch_size=1)
    assert plan.locate(1, 0).step == copies.locate(0, 1)
    rest = plan.resume(plan.cursor(0, step=2**31))  # which every first read comes before
    for listed in (rest.locate, plan.locate_all):
        with pytest.raises(ip.IndexPlanError, match="reads to list must be at most 134217728"):
            listed(1, 0)


def test_layers_over_a_stored_order(tmp_path: Any) -> None:
    """They are saved, and read again, as over the order that is stored."""
    inside = ip.Subset(ip.Shuffle(5, seed=1), [7, 3, 1, 9, 2], 10)
    ip.save(ip.Plan(inside, batch_size=2), tmp_path / "inside.plan")
    order = ip.Epochs(ip.load(tmp_path / "inside.plan").order, 3)
    assert order == ip.Epochs(inside, 3)
    ip.save(ip.Plan(order, batch_size=2), tmp_path / "a.plan", epochs=range(2))
    again = ip.load(tmp_path / "a.plan")
    assert again.order.take(9, 0, 3).tolist() == ip.Epochs(inside, 3).take(9, 0, 3).tolist()


@pytest.mark.parametrize("make", [list, tuple, lambda mask: mask.tolist()])
def test_masks_of_any_kind_keep_their_samples(make: Any) -> None:
    """A mask may be a list or a tuple; tests/adapters/test_items.py has tensors."""
    mask = np.arange(9) % 4 == 1
    assert ip.Subset(ip.Shuffle(2), mask, 9) == ip.Subset(ip.Shuffle(2), make(mask), 9)


def test_ranges_of_the_same_samples_are_equal() -> None:
    """However a range is written, it is its samples."""
    one, other = (ip.Subset(ip.Shuffle(2), range(0, stop, 2), 9) for stop in (3, 4))
    assert one == other
    assert ip.Subset(ip.Shuffle(1), range(5, 4, -(2**63)), 9) == ip.Subset(
        ip.Shuffle(1), range(5, 6), 9
    )


@ip.register
@dataclass(frozen=True, eq=False)
class Turned(ip.Layer):
    """Names samples from the last one on: where the order inside gets more, all names change."""

    order: ip.Order

    algorithm = "test-turned-v1"

    def renamed(self, samples: Int64) -> Int64:
        return self.num_samples - 1 - samples

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        return self.order.find(epoch, self.num_samples - 1 - indices, most)


SHUFFLED = ip.Shuffle(40, seed=3)
WEIGHTED = ip.Weighted([1, 2, 3], 9)
MIXED = ip.Mixture({"a": ip.Shuffle(30), "b": ip.Shuffle(9, seed=1)}, {"a": 1, "b": 1}, seed=4)
CHANGED: dict[str, tuple[ip.Order, ip.Order]] = {  # an order, and what it becomes during a run
    "weights of samples": (WEIGHTED, reweighted(WEIGHTED, 2, [3, 1, 1])),
    "weights of sources": (MIXED, MIXED.with_phase(50, {"a": 3, "b": 1})),
    "a source": (
        MIXED,
        MIXED.with_phase(50, {"a": 3, "b": 1, "c": 1}, sources={"c": ip.Shuffle(5, seed=2)}),
    ),
    "excluded samples": (
        SHUFFLED,
        ip.Without(SHUFFLED, [7], since=ip.Plan(SHUFFLED, global_batch_size=9).cursor(1, step=2)),
    ),
}
AROUND: dict[str, Any] = {
    "itself": lambda order: order,
    "epochs": lambda order: ip.Epochs(order, 7),
    "copies": lambda order: ip.Repeat(order, 2, 6),
    "without": lambda order: ip.Without(order, [1]),
    "turned": Turned,
    "subset": lambda order: ip.Subset(order, range(2, 2 + order.num_samples), 90),
    "mixture": lambda order: ip.Mixture({"x": order, "y": ip.Shuffle(6, seed=9)}, {"x": 2, "y": 1}),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("changed", CHANGED)
def test_a_changed_order_agrees_up_to_its_last_place(changed: str, around: str) -> None:
    """It continues there and not at the next; all before it reads the same, to `diff` too."""
    try:
        before, after = map(AROUND[around], CHANGED[changed])
    except ip.IndexPlanError:  # epochs of other lengths, which only some layers take
        assert changed == "excluded samples"
        return
    saved = before.to_dict()
    until = agrees_until(after, saved)
    renumbered = changed == "a source" and around in ("subset", "turned", "mixture")
    assert (until == (0, 0)) == renumbered
    if renumbered:
        assert not after.continues(saved, 0, 0)
        return
    epoch, position = until
    assert after.continues(saved, epoch, position)
    assert not after.continues(saved, epoch, position + 1)
    assert not after.continues(saved, epoch + 1, 0)
    for each in range(epoch + 1):
        stop = position if each == epoch else before.num_units(each)
        assert np.array_equal(before.take(each, 0, stop), after.take(each, 0, stop))
    one, other = (ip.Plan(order, world_size=2, batch_size=1) for order in (before, after))
    parted = ip.diff(one, other).steps_from
    assert parted is None or parted >= (epoch, 0, position // 2)


SIZE = 2**34  # of epochs that nobody lists: 128 GiB of positions
OFTEN = [
    ip.Weighted([1, 2, 3], epoch_size=SIZE, seed=1),
    ip.ClassBalanced([7, 7, 9], epoch_size=SIZE, seed=1),
    ip.ClassBalanced([7, 7, 9], epoch_size=SIZE, weights=[1, 2], seed=1),
    ip.Repeat(ip.Shuffle(2**17, seed=1), 2**28, span=2**45),
]


@pytest.mark.parametrize("order", OFTEN, ids=lambda order: f"{order.algorithm}")
def test_very_many_reads(order: ip.Order) -> None:
    """The first read is where reading from the start finds it, of a subset too.

    Epochs and Mixture answer about some units of an epoch that has billions of reads.
    """
    samples, first = np.unique(order.take(0, 0, 1000), return_index=True)
    np.testing.assert_array_equal(first, order.locate(0, samples))
    moved = ip.Subset(order, range(order.num_samples - 1, -1, -1), order.num_samples)
    names, counts = order.num_samples - 1 - samples, order.count(0, samples)
    np.testing.assert_array_equal(first, moved.locate(0, names))
    np.testing.assert_array_equal(counts, moved.count(0, names))
    short = ip.Epochs(order, 50)
    mixed = ip.Mixture({"a": order, "b": ip.Shuffle(9, seed=2)}, {"a": 5, "b": 1}, epoch_size=60)
    for made, epoch in product((short, mixed), (0, 3)):
        read = made.take(epoch, 0, made.num_units(epoch))
        samples, first, counts = np.unique(read, return_index=True, return_counts=True)
        np.testing.assert_array_equal(first, made.locate(epoch, samples))
        np.testing.assert_array_equal(counts, made.count(epoch, samples))
        positions, offsets = made.locate_all(epoch, samples)
        np.testing.assert_array_equal(counts, np.diff(offsets))
        np.testing.assert_array_equal(np.argsort(read, kind="stable"), positions)


def test_whole_epochs_inside_are_counted() -> None:
    """Whole epochs of billions of reads are counted, and two units of the next are read."""
    order = ip.Weighted([1, 3], epoch_size=2**30, seed=1)
    made = ip.Epochs(order, 2**30 + 2)
    expected = order.count(0, [0, 1]) + np.bincount(order.take(1, 0, 2), minlength=2)
    np.testing.assert_array_equal(expected, made.count(0, [0, 1]))


def test_the_first_read_of_a_sample_that_is_never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search ends: with an answer, or with an error where there are too many epochs."""
    made = ip.Epochs(ip.Subset(ip.Shuffle(1), [0], 2), 100)
    assert [0, -1] == made.locate(0, [0, 1]).tolist()
    monkeypatch.setattr(streams, "MOST_EPOCHS", 99)
    assert made.locate(0, [0]).tolist() == [0]
    with pytest.raises(ip.IndexPlanError, match="must be at most 99; got 100; use smaller epochs"):
        made.locate(0, [0, 1])


def test_shares_of_epochs_without_end() -> None:
    """Shares over billions of epochs inside are an error, and no endless loop."""
    made = ip.Epochs(ip.ClassBalanced([5]), 2**31)
    with pytest.raises(ip.IndexPlanError, match="got 2147483648; use smaller epochs"):
        made.group_shares(0, 0, 2**31)
    assert made.group_shares(0, 7, 2**10).tolist() == [1.0]
