"""A layer that somebody writes: what it may leave to its base class, and what it may not do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

import indexplan as ip
from indexplan.orders import Units, expand
from indexplan.orders.registry import order_from_dict
from indexplan.testing import check_order
from tests.support.bins import Bins

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


@dataclass(frozen=True, eq=False)
class Keeps(Bins):
    """Deals arrays that it keeps, which an order should not."""

    algorithm = "test-layer-keeps-v1"
    kept: ClassVar[dict[Any, Units]] = {}

    def deal(self, epoch: int, starts: Int64, stops: Int64) -> Units:
        asked = epoch, starts.tobytes(), stops.tobytes()
        if asked not in self.kept:
            self.kept[asked] = super().deal(epoch, starts, stops)
        return self.kept[asked]


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
    """An order inside that keeps what it dealt deals the same again."""
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
    """As a cell of a notebook that runs twice; a class of another name is refused."""

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
        ip.register(type("Other", (ip.Sequential,), {"algorithm": "test-cell-v1"}))
