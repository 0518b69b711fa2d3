"""Balance: give the units of a step to ranks and inner batches so that work is nearly equal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np

from indexplan import kernels
from indexplan.canonical import check_fields
from indexplan.errors import integer, invalid
from indexplan.keywords import named
from indexplan.once import once
from indexplan.orders.columns import Columns, Kept, find_column, is_identity
from indexplan.partition.locate import Cells
from indexplan.partition.steps import Int64

ALGORITHM = "balance-v1"  # to get other batches from the same fields takes another version
FIELDS = ("algorithm", "lengths", "linear", "quadratic")
SUM_STOP = 2**63  # the costs of a step are below this


@named
@dataclass(frozen=True)
class Balance:
    """Divides the units of each step among ranks so that all have nearly equal work.

    For samples of different lengths, where all ranks would wait for the slowest one. The
    work of a sample of length l is `linear * l + quadratic * l**2`; that of a bin is the sum over
    its samples. Each step reads the same units as without balance, and each rank and inner batch
    gets the same number of them. Only which ones it gets changes.

    Parameters
    ----------
    lengths : Column, array_like of int or path
        The length of each sample, 1 <= length <= 2**40, in tokens, frames or any other unit.
    linear, quadratic : int, default 1 and 0
        The factors of the length and of its square (the cost of attention); not both 0.

    Raises
    ------
    IndexPlanError
        If a number is out of range; for lengths, the message names the first sample that is wrong.

    Notes
    -----
    Starting with the costliest, each unit goes to the rank, or inner batch, that has the least work
    so far and is not full. Then ranks, or inner batches, with equally many units trade places, so
    that inner batches that run at the same time cost about the same. Padded slots stay last.

    Examples
    --------
    >>> import indexplan as ip
    >>> lengths = [80, 70, 60, 50, 40, 30, 20, 10]
    >>> plan = ip.Plan(ip.Sequential(8), world_size=2, batch_size=4, balance=ip.Balance(lengths))
    >>> [plan.batch(epoch=0, step=0, rank=rank).tolist() for rank in range(2)]
    [[0, 3, 4, 7], [1, 2, 5, 6]]
    """

    lengths: Kept
    _: KW_ONLY
    linear: int = 1
    quadratic: int = 0

    def __post_init__(self) -> None:
        from indexplan.orders.strata import lengths_of

        object.__setattr__(self, "lengths", lengths_of(self.lengths))
        for name in ("linear", "quadratic"):
            cure = "leave it out, or scale both to such integers"
            value = integer(name, getattr(self, name), 0, SUM_STOP, cure)
            object.__setattr__(self, name, value)
        if not self.linear and not self.quadratic:
            cure = "leave linear out for 1"
            raise invalid("linear and quadratic", "not both 0", (0, 0), cure)

    @once
    def longest(self) -> int:
        """The longest length."""
        with self.lengths.steady(gone=True) as array:
            return int(array.max())

    @property
    def largest(self) -> int:
        """The cost of the longest sample."""
        return (self.linear + self.quadratic * self.longest) * self.longest

    def cost(self, lengths: Int64) -> Int64:
        """Return what samples, or parts of samples, of some lengths cost: int64, of their shape."""
        if (most := int(lengths.max(initial=0))) > self.longest:
            rule = f"at most {self.longest}, the longest of balance's lengths"
            raise invalid("a part of a sample", rule, most, "pass lengths in the order's own unit")
        return (self.linear + self.quadratic * lengths) * lengths

    def to_dict(self) -> dict[str, Any]:
        """Return the balance as JSON types; the lengths as their dtype, length and sha256."""
        numbers = {"linear": self.linear, "quadratic": self.quadratic}
        return {"algorithm": ALGORITHM, "lengths": self.lengths.to_dict(), **numbers}

    @classmethod
    def from_dict(cls, data: Any, columns: Columns = None) -> Balance:
        """Return the balance that `to_dict` described, or raise `IndexPlanError`."""
        cure = "write plans with to_json"
        if not isinstance(data, Mapping):
            raise invalid("a balance", "an object", data, cure)
        check_fields("a balance", data, FIELDS)
        if data["algorithm"] != ALGORITHM:
            cure = "read it with the version of indexplan that wrote it, or a newer one"
            raise invalid("a balance's algorithm", ALGORITHM, data["algorithm"], cure)
        if not is_identity(data["lengths"]):
            raise invalid("a balance's lengths", "a column's identity", data["lengths"], cure)
        lengths = find_column("a balance's lengths", data["lengths"], columns)
        return cls(lengths, linear=data["linear"], quadratic=data["quadratic"])


class Dealt(NamedTuple):
    """A balanced step: its cells, and the unit at each of their places.

    `units` is int64, shape (num_valid,): for each place, where its unit is without balance.
    """

    cells: Cells
    units: Int64


def balanced(costs: Int64, cells: Cells) -> Int64:
    """Return which unit goes to each place of a step: longest processing time first, with room.

    Parameters
    ----------
    costs : numpy.ndarray
        int64, shape (num_valid,): what each unit costs, in the order of the plan without balance.
    """
    num = len(costs)
    keys = costs * num + np.arange(num - 1, -1, -1)  # all different: by cost, then by place
    keys.sort()
    loads, of = np.empty(len(cells.sizes), np.int64), np.empty(num, np.int64)
    kernels.balance.fill_cells(keys, cells.sizes, loads, of)
    # cells trade places: the one that is i-th by `_sides` gets what the i-th costliest holds
    to = np.empty(len(loads), np.int64 if len(loads) > 2**16 else np.uint16)
    to[np.lexsort((-loads, cells.sizes))] = _sides(cells)
    return np.argsort(to[of], kind="stable")  # in linear time, if they have 16 bits


def _sides(cells: Cells) -> Int64:
    """Return the cells by size, and cells of one size in the order in which to place the costliest.

    That order follows the ranks in even-numbered inner batches, and runs backwards in the others.
    """
    odd = cells.numbers % 2 == 1
    return np.lexsort((np.where(odd, -cells.ranks, cells.ranks), cells.numbers, cells.sizes))
