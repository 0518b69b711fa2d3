"""What an order is: the row of units that each epoch reads, and the registry of its kinds."""

from __future__ import annotations

import abc
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from indexplan.canonical import canonical_json, check_fields
from indexplan.errors import whole, wrong
from indexplan.seeds import check_epoch, check_seed

Int64 = NDArray[np.int64]

NUM_SAMPLES_STOP = 2**63


READS = ("once", "at most once", "any")


@dataclass(frozen=True, kw_only=True)
class Traits:
    """What an order promises of all of its epochs; a plan directory remembers it.

    Parameters
    ----------
    deals_bins, constant_num_units : bool
        As the order's attributes say.
    reads : {"once", "at most once", "any"}
        How often an epoch reads each sample.
    """

    deals_bins: bool = False
    constant_num_units: bool = True
    reads: str = "once"


class Order(abc.ABC):
    """A row of units for every epoch, complete in itself: it carries its size and its seed.

    A unit is what an order deals: one sample, or one bin of several. A new kind of order is a
    frozen dataclass (`eq=False`: orders compare by what they deal) that sets `algorithm`, writes
    `_fill` and `_locate`, and is passed to `register`. If it deals bins it also sets
    `deals_bins`, and writes `num_units` and `_offsets`; if it repeats or leaves out samples on
    purpose, it sets `every_sample_once`.

    Examples
    --------
    An order is asked for the indices at positions, and for the positions of indices:

    >>> import indexplan as ip
    >>> order = ip.Shuffle(10, seed=3)
    >>> order.take(0, 2, 5)
    array([1, 7, 5])
    >>> order.locate(0, [7, 5])
    array([3, 4])
    """

    algorithm: str
    """Name and version of the algorithm: other bits are another algorithm."""

    deals_bins: bool = False
    """Whether units may hold other than one sample."""

    constant_num_units: bool = True
    """Whether all epochs have the same number of units, which "carry" needs."""

    every_sample_once: bool = True
    """Whether each epoch reads every sample exactly once. `verify` holds an order to it; one that
    repeats or leaves out samples on purpose, such as weighted sampling, says False."""

    num_samples: int

    @property
    def traits(self) -> Traits:
        """What the order promises, as one record of its three attributes."""
        return Traits(
            deals_bins=self.deals_bins,
            constant_num_units=self.constant_num_units,
            reads="once" if self.every_sample_once else "any",
        )

    @property
    def stream_key(self) -> int:
        """What seeds of augmentation are hashed from: the order's `seed`; 0 where it has none.

        Raises
        ------
        IndexPlanError
            If the order has a `seed` that is not an integer from 0 to 2**128 - 1.

        Examples
        --------
        >>> import indexplan as ip
        >>> ip.Shuffle(10, seed=3).stream_key, ip.Sequential(10).stream_key
        (3, 0)
        """
        return check_seed(getattr(self, "seed", 0))

    @abc.abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the order as JSON types: its algorithm and its fields."""

    @abc.abstractmethod
    def _fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        """Write the indices of valid intervals of positions to `out`, which has just their size.

        Several threads may call it at once, each with an `out` of its own.
        """

    @abc.abstractmethod
    def _locate(self, epoch: int, indices: Int64) -> Int64:
        """Return the positions of valid indices, flat; -1 where no unit holds one."""

    def num_units(self, epoch: int) -> int:  # noqa: ARG002 (bins may differ between epochs)
        """Return how many units the epoch has: for orders of single samples, `num_samples`."""
        return self.num_samples

    def _offsets(self, epoch: int, starts: Int64, stops: Int64) -> Int64:  # noqa: ARG002
        """Return where the units of valid intervals start among their samples, and the end."""
        return np.arange(int((stops - starts).sum()) + 1, dtype=np.int64)

    def _take(self, epoch: int, starts: Int64, stops: Int64) -> Int64:
        """Return the indices of valid intervals of positions."""
        if self.deals_bins:
            size = int(self._offsets(epoch, starts, stops)[-1])
        else:
            size = int((stops - starts).sum())
        out = np.empty(size, np.int64)
        self._fill(epoch, starts, stops, out)
        return out

    def take(self, epoch: int, starts: ArrayLike, stops: ArrayLike | None = None) -> Int64:
        """Return the indices at some positions of an epoch.

        Parameters
        ----------
        epoch : int
            0 <= epoch < 2**32.
        starts, stops : array_like of int, shape (num_runs,), or int
            Intervals [start, stop) of positions, read one after another: one contiguous interval,
            or a rank's share of many steps. Without `stops`, `starts` are single positions.

        Returns
        -------
        numpy.ndarray
            int64, shape (units,), or (samples,) where the order deals bins.

        Raises
        ------
        IndexPlanError
            If the epoch is out of range, or an interval is reversed or leaves [0, num_units).

        Examples
        --------
        >>> import indexplan as ip
        >>> ip.Sequential(10).take(0, [2, 7], [5, 9])
        array([2, 3, 4, 7, 8])
        """
        epoch = check_epoch(epoch)
        return self._take(epoch, *self._check_runs(epoch, starts, stops))

    def offsets(self, epoch: int, starts: ArrayLike, stops: ArrayLike | None = None) -> Int64:
        """Return where each unit starts among the samples that `take` returns, and the end.

        Returns
        -------
        numpy.ndarray
            int64, shape (units + 1,): unit i holds the samples [offsets[i], offsets[i + 1]).

        Raises
        ------
        IndexPlanError
            As `take` does.
        """
        epoch = check_epoch(epoch)
        return self._offsets(epoch, *self._check_runs(epoch, starts, stops))

    def locate(self, epoch: int, indices: ArrayLike) -> Int64:
        """Return the positions at which an epoch reads some samples: the inverse of `take`.

        Parameters
        ----------
        epoch : int
            0 <= epoch < 2**32.
        indices : array_like of int
            Samples, 0 <= index < num_samples.

        Returns
        -------
        numpy.ndarray
            int64, the shape of `indices`; -1 where no unit of the epoch holds the sample.

        Raises
        ------
        IndexPlanError
            If the epoch or an index is out of range.

        Examples
        --------
        >>> import indexplan as ip
        >>> order = ip.Shuffle(10, seed=3)
        >>> order.locate(0, order.take(0, 0, 4))
        array([0, 1, 2, 3])
        """
        array = as_int64("index", indices)
        if array.size and not 0 <= array.min() <= array.max() < self.num_samples:
            bad = array.flat[np.argmax((array < 0) | (array >= self.num_samples))]
            cure = f"name one of the order's {self.num_samples} samples"
            raise wrong("index", f"from 0 to {self.num_samples - 1}", int(bad), cure)
        flat = np.ascontiguousarray(array).ravel()
        return self._locate(check_epoch(epoch), flat).reshape(array.shape)

    def _check_runs(self, epoch: int, starts: Any, stops: Any) -> tuple[Int64, Int64]:
        num_units = self.num_units(epoch)
        if type(starts) is int and type(stops) is int and 0 <= starts <= stops <= num_units:
            return np.array([starts], np.int64), np.array([stops], np.int64)  # 2 us sooner
        first = np.ascontiguousarray(as_int64("position", starts)).ravel()
        if stops is None:
            last = np.minimum(first, num_units) + 1  # no wrap past 2**63
        else:
            last = np.ascontiguousarray(as_int64("stop", stops)).ravel()
        if first.shape != last.shape:
            rule = f"of the shape of starts, {first.shape}"
            raise wrong("stops", rule, last.shape, "give each start a stop")
        bad = (first < 0) | (last > num_units) | (first > last)
        if bad.any():
            i = int(np.argmax(bad))
            rule = f"an interval inside [0, {num_units}), the positions of epoch {epoch}"
            cure = f"name some of the epoch's {num_units} units"
            raise wrong("positions", rule, (int(first[i]), int(last[i])), cure)
        return first, last

    @property
    def fingerprint(self) -> str:
        """The sha256, in hexadecimal, of the order's canonical JSON, its algorithm inside."""
        return hashlib.sha256(canonical_json(self.to_dict()).encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, Order) else NotImplemented

    def __hash__(self) -> int:
        return hash(canonical_json(self.to_dict()))


def as_int64(what: str, values: ArrayLike) -> Int64:
    """Return integers as an int64 array; booleans and floats are errors, even where whole."""
    if isinstance(values, np.ndarray) and values.dtype == np.int64:
        return values
    rule = "an integer below 2**63, or an array of them"
    cure = "pass integers, such as an int64 array"
    try:
        array = np.asarray(values)
    except Exception:  # rows of different lengths, or whatever a class of somebody's raises
        raise wrong(what, rule, values, cure) from None
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind not in "iu" or (array.dtype.kind == "u" and array.max() >= 2**63):
        raise wrong(what, rule, values, cure)
    return array.astype(np.int64)


def check_num_samples(value: Any) -> int:
    """Return `value` as an int in [1, 2**63), or raise `IndexPlanError`."""
    return whole("num_samples", value, 1, NUM_SAMPLES_STOP, "pass len(dataset)")


_REGISTRY: dict[str, type[Order]] = {}

OrderType = TypeVar("OrderType", bound=Order)


def register(order: type[OrderType]) -> type[OrderType]:
    """Let plans from JSON and files know a kind of order; a class decorator.

    Raises
    ------
    IndexPlanError
        If another class has the same `algorithm`.

    Examples
    --------
    >>> import numpy as np
    >>> from dataclasses import dataclass
    >>> @register
    ... @dataclass(frozen=True, eq=False)
    ... class Backwards(Order):
    ...     num_samples: int
    ...     algorithm = "backwards-v1"
    ...
    ...     def to_dict(self):
    ...         return {"algorithm": self.algorithm, "num_samples": self.num_samples}
    ...
    ...     def _fill(self, epoch, starts, stops, out):
    ...         runs = zip(starts, stops)
    ...         positions = np.concatenate([np.arange(start, stop) for start, stop in runs])
    ...         out[:] = self.num_samples - 1 - positions
    ...
    ...     def _locate(self, epoch, indices):
    ...         return self.num_samples - 1 - indices
    >>> Backwards(10).take(0, 0, 3)
    array([9, 8, 7])
    """
    known = _REGISTRY.setdefault(order.algorithm, order)
    if known is not order:
        rule = "a name that no other order has"
        raise wrong("algorithm", rule, order.algorithm, "give it another name")
    return order


def registered() -> list[type[Order]]:
    """Return the registered kinds of orders, by the names of their algorithms."""
    return [kind for _, kind in sorted(_REGISTRY.items())]


def order_from_dict(data: Mapping[str, Any]) -> Order:
    """Return the order that `to_dict` described.

    Raises
    ------
    IndexPlanError
        If the algorithm is unknown, or a field is missing, unknown or wrong.
    """
    if not isinstance(data, Mapping) or not isinstance(data.get("algorithm"), str):
        rule = "an object with the field 'algorithm'"
        raise wrong("an order", rule, data, "pass what to_dict returned")
    kind = _REGISTRY.get(data["algorithm"])
    if kind is None:
        known = ", ".join(sorted(_REGISTRY))
        cure = "upgrade indexplan, or import the module that registers it"
        raise wrong("an order's algorithm", f"one of {known}", data["algorithm"], cure)
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # orders are dataclasses
    check_fields(f"an order of {kind.algorithm}", data, ["algorithm", *names])
    return kind(**{name: data[name] for name in names})
