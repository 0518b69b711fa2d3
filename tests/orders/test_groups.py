"""Groups of samples whose shares an order steers, and how layers pass them on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import indexplan as ip
from indexplan.testing import check_order
from tests.support.nested import layers


@ip.register
@dataclass(frozen=True, eq=False)
class Leaning(ip.Sequential):
    """Aims at another share of its two groups at every position, for tests."""

    algorithm = "test-leaning-v1"
    group_names = ("low", "high")

    def group(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        return indices * 2 // self.num_samples

    def aim(self, epoch: int, start: int, stop: int) -> NDArray[np.float64]:
        low = np.mean([aim(epoch, position) for position in range(start, stop)])
        return np.array([low, 1 - low])


def aim(epoch: int, position: int) -> float:
    """Return the share of the first group at a position."""
    return (epoch * 7 + position * position) % 11 / 10


def aims(order: Any, epoch: int) -> list[float]:
    """Return what each unit of an epoch aims at, by the words of the docstrings alone."""
    if isinstance(order, Leaning):
        return [aim(epoch, position) for position in range(order.num_samples)]
    if isinstance(order, ip.Subset):
        return aims(order.order, epoch)
    if isinstance(order, ip.Repeat):
        row, left = [], aims(order.order, epoch)
        while left:
            row += left[: order.span // order.copies] * order.copies
            left = left[order.span // order.copies :]
        return row
    inner, skip = divmod(epoch * order.epoch_size, len(aims(order.order, 0)))
    row = aims(order.order, inner)[skip:]
    while len(row) < order.epoch_size:
        inner += 1
        row += aims(order.order, inner)
    return row[: order.epoch_size]


LEANING = st.builds(Leaning, st.integers(2, 12))
KINDS = ("range", "mask", "permutation")  # a sample that is named twice may have no group
LAYERS = LEANING | layers(LEANING, KINDS) | layers(layers(LEANING, KINDS), KINDS)


@given(LAYERS, st.sampled_from([0, 1, 5]), st.data())
def test_shares_are_those_of_the_units_inside(
    order: ip.Order, epoch: int, data: st.DataObject
) -> None:
    """Over any interval, a layer's shares are the mean of what the units that it reads aim at."""
    row = aims(order, epoch)
    start = data.draw(st.integers(0, len(row) - 1), label="start")
    stop = data.draw(st.integers(start + 1, len(row)), label="stop")
    expected = np.mean(row[start:stop])
    assert np.allclose([expected, 1 - expected], order.group_shares(epoch, start, stop))
    assert ("low", "high") == order.group_names


def test_groups_of_a_subset() -> None:
    """A sample is in the group of its numbers inside, and in none where it is left out."""
    several = ip.Subset(Leaning(4), [7, 2, 5, 7], num_samples=9)  # 7 is number 0, and number 3
    assert [[0, -1], [1, -1]] == several.group_of([[2, 0], [5, 8]]).tolist()
    with pytest.raises(ip.IndexPlanError, match=r"got \['low', 'high'\]"):
        several.group_of([2, 7])
    order = ip.Subset(Leaning(4), [7, 7, 5, 2], num_samples=9)
    assert [[0, 1], [1, -1]] == order.group_of([[7, 2], [5, 3]]).tolist()
    masked = ip.Subset(Leaning(2), np.arange(4) % 2 == 1, num_samples=4)
    assert [-1, 0, -1, 1] == masked.group_of([0, 1, 2, 3]).tolist()
    both = ip.Subset(ip.Subset(Leaning(2), [1, 3], 4), range(4), 6)
    assert [-1, 0, -1, 1, -1] == both.group_of(range(5)).tolist()
    assert np.dtype(np.int64) == order.group_of(7).dtype


class Overfull(Leaning):
    """Aims at more than there is."""

    def aim(self, epoch: int, start: int, stop: int) -> NDArray[np.float64]:
        return 2 * super().aim(epoch, start, stop)


class Elsewhere(Leaning):
    """Puts samples into groups that it has no names for."""

    def group(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        return super().group(indices) + 1


class Vague(Leaning):
    """Aims at shares of what nobody counts."""

    shares_of = "tokens"  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (Overfull(8), r"group_shares\(0, 0, 8\) \[.*\]"),
        (Elsewhere(8), r"group 2 of sample 4"),
        (Vague(8), r"shares_of 'tokens'"),
    ],
)
def test_the_kit_looks_at_groups(order: ip.Order, words: str) -> None:
    """What groups are said to be is checked with what else an order says of itself."""
    assert check_order(Leaning(8), fresh_process=False).ok
    with pytest.raises(
        ip.IndexPlanError,
        match=(f"must have valid num_samples, stream_key, traits and groups; got {words}"),
    ):
        check_order(order, fresh_process=False)


def test_a_sample_that_is_named_twice_is_of_the_class_that_is_read() -> None:
    """A subset may name a sample twice: as one of a class that is left out, and of one read."""
    labels = [4, 5, 5]  # the first, of a class that is too small, is never read
    batches = ip.ClassBatches(labels, classes=1, per_class=2, short="leave_out")
    order = ip.Subset(batches, [7, 7, 8], 10)
    assert [0, 0, -1] == order.group_of([7, 8, 9]).tolist()
    assert ip.draws(ip.Plan(order, world_size=1, batch_size=1)).drawn.tolist() == [2]
