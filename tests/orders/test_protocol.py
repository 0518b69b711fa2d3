"""Orders and layers that somebody writes: what plans ask, and what the base classes do."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import indexplan as ip
from indexplan.orders import expand
from indexplan.orders.registry import order_from_dict
from indexplan.testing import check_order
from tests.support.bins import Bins
from tests.support.listed import Wrapped
from tests.support.nested import layers
from tests.support.planted import Keeps


@dataclass(frozen=True, eq=False)
class Later(ip.Sequential):
    """An order that may change from an epoch on."""

    since: int = 0

    algorithm = "test-later-v1"

    def continues(self, saved: Mapping[str, Any], epoch: int, position: int) -> bool:
        """Return whether the change comes after what was read."""
        return {**saved, "since": 0} == {**self.to_dict(), "since": 0} and epoch < self.since


def test_an_order_that_may_go_on_otherwise() -> None:
    """A cursor asks the order whether a run may go on with it."""
    plan = ip.Plan(Later(20), world_size=1, batch_size=2)
    cursor = plan.cursor(1, step=3)
    assert 3 == plan.replace(order=Later(20, since=2)).resume(cursor).steps(1).start
    for order in (Later(20, since=1), Later(21, since=2), ip.Sequential(20)):
        with pytest.raises(ip.IndexPlanError, match="a cursor must belong to the plan's order"):
            plan.replace(order=order).resume(cursor)


def test_orders_inside_orders() -> None:
    """They come back from JSON, up to eight deep; errors.txt has one that is deeper."""
    order: ip.Order = ip.BlockShuffle(30, 4, seed=2)
    for _ in range(7):
        order = Wrapped(order)
    assert order.stream_key == 0
    plan = ip.Plan(order, world_size=2, batch_size=3)
    assert ip.Plan.from_json(plan.to_json()) == plan


@ip.register
@dataclass(frozen=True, eq=False)
class Held(ip.Sequential):
    """An order with a constant of its class, and columns inside a mapping."""

    parts: Mapping[str, Any] = field(default_factory=dict)

    algorithm: ClassVar[str] = "test-held-v1"
    STEP: ClassVar[int] = 3


def test_what_an_order_is_made_of() -> None:
    """Constants of a class are no fields; columns in a mapping are columns, there and back."""
    order = Held(5, {"a": ip.Column([3, 1]), "b": [ip.Column([0.5])]})
    assert {"algorithm", "num_samples", "parts"} == set(order.to_dict())
    plan = ip.Plan(order, batch_size=1)
    again = ip.Plan.from_json(plan.to_json(), columns=[[3, 1], [0.5]])
    assert again == plan
    assert again.order.columns == order.columns
    with pytest.raises(ip.IndexPlanError, match="parts needs a column of"):
        ip.Plan.from_json(plan.to_json())


def test_equal_orders_have_one_fingerprint() -> None:
    """1 and True are equal to Python, and are not in a fingerprint."""
    one, other = Held(5, {"a": 1}), Held(5, {"a": True})
    assert one != other
    assert one.fingerprint != other.fingerprint


ROOT = Path(__file__).parents[2]
Int64 = NDArray[np.int64]


@ip.register
@dataclass(frozen=True, eq=False)
class Backwards(ip.Layer):
    """Every epoch of another order, from its end to its start."""

    order: ip.Order

    algorithm = "test-layer-backwards-v1"

    def turned(self, epoch: int, positions: Int64) -> Int64:
        return self.order.num_units(epoch) - 1 - positions

    def inside(self, epoch: int, starts: Int64, stops: Int64) -> list[tuple[int, Int64, Int64]]:
        units = self.turned(epoch, expand(starts, stops))
        return [(epoch, units, units + 1)]

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        which, positions = self.order.find(epoch, indices)
        return which, self.turned(epoch, positions)

    def tally(self, epoch: int, indices: Int64) -> Int64:
        return self.order.tally(epoch, indices)


@dataclass(frozen=True, eq=False)
class Reaching(Backwards):
    """The same; it says that all of an epoch may have been read once one unit was."""

    algorithm = "test-layer-reaching-v1"

    def reach(self, epoch: int, position: int) -> tuple[int, int]:
        return epoch + (position > 0), 0


MIXTURE = ip.Mixture({"a": ip.Shuffle(30), "b": ip.Shuffle(50, seed=1)}, {"a": 1, "b": 1})


@pytest.mark.parametrize(
    "order", [ip.Shuffle(30), Bins(20), MIXTURE, ip.DocumentWindows([5, 3, 9, 4] * 5, 10)]
)
def test_a_layer_of_a_few_lines(order: ip.Order) -> None:
    """It passes all laws over single samples, bins, groups and parts of samples."""
    assert check_order(Backwards(order), epochs=(0, 1), fresh_process=False).ok


def test_a_layer_that_reads_elsewhere_does_not_continue_over_a_changed_order() -> None:
    """What it has read may lie behind the cursor's place inside: it must say where."""
    changed = MIXTURE.with_phase(8, {"a": 1, "b": 3})
    saved = Backwards(MIXTURE).to_dict()
    assert Backwards(MIXTURE).continues(saved, 0, 8)
    assert not Backwards(changed).continues(saved, 0, 8)
    saved = Reaching(MIXTURE).to_dict()
    later = MIXTURE.with_phase(MIXTURE.epoch_size, {"a": 1, "b": 3})
    assert not Reaching(changed).continues(saved, 0, 8)
    assert Reaching(later).continues(saved, 0, 8)


@pytest.mark.parametrize("kept", [range(5, 65, 3), np.arange(5, 65, 3)])
def test_a_layer_does_not_write_over_what_is_dealt_to_it(kept: Any) -> None:
    """An order inside that keeps what it dealt, which it should not, deals the same again."""
    order = ip.Subset(Keeps(20), kept, 100)
    first = order.take(0, 0, 5).tolist()
    assert first == order.take(0, 0, 5).tolist()
    mixed = ip.Mixture({"a": ip.Shuffle(9), "b": Keeps(20)}, {"a": 1, "b": 1})
    assert mixed.take(0, 0, 8).tolist() == mixed.take(0, 0, 8).tolist()


@pytest.mark.parametrize("name", ["inside", "renamed"])
def test_only_the_layer_knows_the_way_back(name: str) -> None:
    """A layer that moves units or renames samples finds nothing by the inner order's word."""
    lost = type("Lost", (ip.Layer,), {name: lambda *given: given[-1], "algorithm": "lost"})
    order = lost()
    object.__setattr__(order, "order", ip.Shuffle(5))
    for ask in (order.find, order.tally):
        with pytest.raises(ip.IndexPlanError, match="find of Lost must be written, as the inverse"):
            ask(0, np.arange(2))


def test_a_class_that_is_made_again_replaces_the_first() -> None:
    """As a cell of a notebook that runs twice; a class of another name, beside it, is refused."""

    def cell() -> Any:
        @ip.register
        @dataclass(frozen=True, eq=False)
        class Cell(ip.Sequential):
            algorithm = "test-cell-v1"

        return Cell

    first, again = cell(), cell()
    assert first is not again
    assert again is type(order_from_dict(again(5).to_dict()))
    with pytest.raises(ip.IndexPlanError, match="must be a name that no other class"):
        ip.register(
            type("Other", (ip.Sequential,), {"algorithm": "test-cell-v1", "__module__": __name__})
        )


def test_the_page_draws_a_permutation_once_an_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of an epoch share one permutation, and so does `find`."""
    page = (ROOT / "docs" / "orders.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    (source,) = (each for each in blocks if each.startswith("# permuted.py"))
    permuted = ModuleType("permuted")
    monkeypatch.setitem(sys.modules, "permuted", permuted)
    exec(source, vars(permuted))  # noqa: S102 (our own page)
    plan = ip.Plan(permuted.Permuted(1000, seed=3), world_size=2, batch_size=16)
    read = [batch.tolist() for rank in range(2) for batch in plan.batches(4, rank=rank)]
    assert sorted(sum(read, [])) == list(range(1000))
    plan.locate(7, epoch=4)
    assert permuted.permutation.cache_info().misses == 1
    plan.replace(remainder="carry").batch(4, step=31, rank=1)  # the next epoch's first units, too
    plan.replace(remainder="carry").batch(4, step=30, rank=1)
    assert permuted.permutation.cache_info().misses == 2
    assert check_order(permuted.Permuted(100), fresh_process=False).ok


# groups of samples whose shares an order steers, and how layers pass them on


@ip.register
@dataclass(frozen=True, eq=False)
class Leaning(ip.Sequential):
    """Aims at another share of its two groups at every position, for tests."""

    algorithm = "test-leaning-v1"
    group_names = ("low", "high")

    def group(self, indices: Int64) -> Int64:
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


def test_a_sample_that_is_named_twice_is_of_the_class_that_is_read() -> None:
    """A subset may name a sample twice: as one of a class that is left out, and of one read."""
    labels = [4, 5, 5]  # the first, of a class that is too small, is never read
    batches = ip.ClassBatches(labels, classes=1, per_class=2, short="leave_out")
    order = ip.Subset(batches, [7, 7, 8], 10)
    assert [0, 0, -1] == order.group_of([7, 8, 9]).tolist()
    assert ip.draws(ip.Plan(order, world_size=1, batch_size=1)).drawn.tolist() == [2]
