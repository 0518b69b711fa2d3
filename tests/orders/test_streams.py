"""Layers over orders that read a sample very often: answers without listing all its reads."""

from __future__ import annotations

import numpy as np
import pytest

import indexplan as ip
from indexplan.orders import streams

SIZE = 2**34  # of epochs that nobody lists: 128 GiB of positions
OFTEN = [
    ip.Weighted([1, 2, 3], epoch_size=SIZE, seed=1),
    ip.ClassBalanced([7, 7, 9], epoch_size=SIZE, seed=1),
    ip.ClassBalanced([7, 7, 9], epoch_size=SIZE, weights=[1, 2], seed=1),
    ip.Repeat(ip.Shuffle(2**17, seed=1), 2**28, span=2**45),
]


@pytest.mark.parametrize("order", OFTEN, ids=lambda order: f"{order.algorithm}")
def test_the_first_of_very_many_reads(order: ip.Order) -> None:
    """The first read is where reading from the start finds it; of a subset too."""
    start = order.take(0, 0, 1000)
    samples, first = np.unique(start, return_index=True)
    np.testing.assert_array_equal(first, order.locate(0, samples))
    moved = ip.Subset(order, range(order.num_samples - 1, -1, -1), order.num_samples)
    np.testing.assert_array_equal(first, moved.locate(0, order.num_samples - 1 - samples))
    counts = order.count(0, samples)
    np.testing.assert_array_equal(counts, moved.count(0, order.num_samples - 1 - samples))


@pytest.mark.parametrize("order", OFTEN, ids=lambda order: f"{order.algorithm}")
def test_a_short_epoch_of_a_very_long_one(order: ip.Order) -> None:
    """Epochs and Mixture answer about some units of an epoch that has billions of reads."""
    short = ip.Epochs(order, 50)
    mixed = ip.Mixture({"a": order, "b": ip.Shuffle(9, seed=2)}, {"a": 5, "b": 1}, epoch_size=60)
    for made in (short, mixed):
        for epoch in (0, 3):
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
