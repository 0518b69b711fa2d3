"""What an order is: the sequence in which each epoch reads its units."""

from __future__ import annotations

import abc
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from indexplan.answers import html_of_fields
from indexplan.canonical import check_fields
from indexplan.errors import IndexPlanError, counted, integer, wrong
from indexplan.once import once
from indexplan.orders.columns import Column, as_array
from indexplan.orders.fields import HasFields, field_names
from indexplan.orders.traits import PLAIN, Traits
from indexplan.seeds import check_epoch, check_seed, key_words

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Draws: TypeAlias = tuple[tuple[Any, ...], ...]  # of each: algorithm, size, seed

NUM_SAMPLES_STOP = 2**63
DEEPEST = 8  # levels of orders inside orders
MOST_READS = 2**27  # most reads that one call lists: 1 GiB of positions
SAID_IN_TRAITS = ("deals_bins", "constant_num_units", "every_sample_once")
PLAIN_VALUES = {int, float, str, bool, type(None), Column}


class Order(HasFields, abc.ABC):
    """The sequence in which each epoch reads the samples; the base of `Shuffle` and all others.

    An order holds the size of its dataset and its seed, and knows nothing of ranks and batches: a
    `Plan` divides it among them. It deals *units*: single samples, or bins of several samples that
    stay together.

    To write an order of your own, make a frozen dataclass with `eq=False` (`Order` compares
    algorithms and fields itself), set `algorithm`, write `_fill` and `_locate`, and pass the class
    to `register`. Set `traits` unless units are single samples and each epoch reads every sample
    exactly once. An order that repeats samples writes `_locate_all` instead of `_locate`; one whose
    units are bins also writes `num_units` and `_offsets`. docs/orders.md has examples, and
    `indexplan.testing.check_order` checks an order.

    Examples
    --------
    Ask an order which samples are at some positions, and at which positions some samples are:

    >>> import indexplan as ip
    >>> order = ip.Shuffle(10, seed=3)
    >>> order.take(0, 2, 5)
    array([2, 9, 5])
    >>> order.locate(0, [7, 5])
    array([8, 4])
    """

    algorithm: str
    """Name and version of the algorithm; an order that deals other indices needs another name."""

    num_samples: int

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        said = [name for name in SAID_IN_TRAITS if name in vars(cls)]
        if said:  # as orders did before there were traits
            names = ", ".join(said)
            words = f"{cls.__name__} sets {names}; say it in traits = indexplan.Traits(...)"
            warnings.warn(words, DeprecationWarning, stacklevel=2)
            values = {name: vars(cls)[name] for name in said}
            if (each := values.pop("every_sample_once", None)) is not None:
                values["reads"] = "once" if each else "any"
            inherited = cls.traits if isinstance(cls.traits, Traits) else PLAIN
            cls.traits = replace(inherited, **values)  # type: ignore[assignment, method-assign]

    @property
    def traits(self) -> Traits:
        """What the order promises of every epoch; a class that promises less sets its own."""
        return PLAIN

    @property
    def deals_bins(self) -> bool:
        """Whether a unit may hold another number of samples than one, as `traits` says."""
        return self.traits.deals_bins

    @property
    def constant_num_units(self) -> bool:
        """Whether all epochs have the same number of units, as `traits` says."""
        return self.traits.constant_num_units

    @property
    def every_sample_once(self) -> bool:
        """Whether each epoch reads every sample exactly once; deprecated: use `traits.reads`."""
        words = 'every_sample_once is now traits.reads == "once"'
        warnings.warn(words, DeprecationWarning, stacklevel=2)
        return self.traits.reads == "once"

    @property
    def stream_key(self) -> int:
        """The seed from which loaders derive those of augmentation: `seed`, or 0 without one.

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

    @property
    def _draws(self) -> Draws:
        """What determines all that the order draws, orders inside it included; () if nothing.

        Orders that share a member draw the same: a mixture of them would read them in step.
        """
        seed = getattr(self, "seed", None)
        return () if seed is None else ((self.algorithm, self.num_samples, seed),)

    def _key_words(self, purpose: int, epoch: int, count: int) -> NDArray[np.uint32]:
        """Return the key words of what the order draws for one purpose in one epoch."""
        return key_words(getattr(self, "seed", 0), purpose, epoch, count, self.num_samples)

    @property
    def group_names(self) -> tuple[str, ...]:
        """The names of the groups, such as classes, whose shares the order controls; or ()."""
        return ()

    @property
    def shares_of(self) -> str:
        """What `group_shares` are shares of: "samples", or "units" where the order counts units.

        Examples
        --------
        >>> import indexplan as ip
        >>> sources = {"a": ip.Shuffle(10), "b": ip.Shuffle(20)}
        >>> bins = {name: ip.TokenBudget([5] * 20, 20, seed=i) for i, name in enumerate(sources)}
        >>> [ip.Mixture(each, {"a": 1, "b": 1}).shares_of for each in (sources, bins)]
        ['samples', 'units']
        """
        return "samples"

    @property
    def shard_sizes(self) -> Column | None:
        """Samples in each shard of the dataset, if the order knows of shards; else None."""
        return None

    @classmethod
    def _from_fields(cls, values: dict[str, Any]) -> Order:
        """Return the order that `to_dict` wrote, with the columns and orders that it holds."""
        check_fields(f"an order of {cls.algorithm}", values, ["algorithm", *field_names(cls)])
        return cls(**{name: values[name] for name in field_names(cls)})

    def continues(self, saved: Mapping[str, Any], epoch: int, position: int) -> bool:
        """Return whether a run that was saved under the order `saved` may continue with this one.

        It may if both read the same units before the given position. By default that is true of
        equal orders only; an order whose later epochs may change, such as `Mixture`, overrides it.

        Parameters
        ----------
        saved : mapping
            The dict form of the order that the run was saved under.
        epoch, position : int
            The first epoch and position that are left to read, each from 0 to 2**63 - 1.

        Raises
        ------
        IndexPlanError
            If `saved` is not a mapping, or a number is not an integer in that range.
        """
        check_saved(saved, epoch, position)
        return self.to_dict() == saved

    def _repr_html_(self) -> str:
        return html_of_fields(self)

    @abc.abstractmethod
    def _fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        """Write the indices at some intervals of positions, which are valid, to `out`.

        `out` has exactly their size. Several threads may call this at once, each with its own.
        """

    def _fill_epochs(
        self, epochs: Int64, cuts: Int64, starts: Int64, stops: Int64, out: Int64
    ) -> None:
        """Write the indices at intervals of positions of several epochs; units are single samples.

        The intervals numbered [cuts[i], cuts[i + 1]) belong to epochs[i]. An order whose epochs are
        short, and costly to set up one by one, overrides this.
        """
        done = 0
        for epoch, a, b in zip(epochs.tolist(), cuts.tolist(), cuts[1:].tolist(), strict=False):
            until = done + int((stops[a:b] - starts[a:b]).sum())
            self._fill(epoch, starts[a:b], stops[a:b], out[done:until])
            done = until

    def _locate(self, epoch: int, indices: Int64) -> Int64:
        """Return the first position of each valid index, flat; -1 where no unit holds it."""
        if type(self)._locate_all is Order._locate_all:  # noqa: SLF001 (whether it is written)
            raise IndexPlanError(
                type(self).__name__,
                "must write _locate, or _locate_all if it repeats samples",
                "neither",
                "see docs/orders.md",
            )
        positions, offsets = self._locate_all(epoch, indices)
        found = offsets[1:] > offsets[:-1]
        first = np.full(len(indices), -1, np.int64)
        first[found] = positions[offsets[:-1][found]]
        return first

    def _locate_all(self, epoch: int, indices: Int64) -> tuple[Int64, Int64]:
        """Return all positions of valid indices, and where those of each index start and end."""
        if self.traits.reads == "any":
            raise IndexPlanError(
                type(self).__name__,
                "must write _locate_all, as it may repeat samples",
                "only _locate",
                "see docs/orders.md",
            )
        positions = self._locate(epoch, indices)
        found = positions >= 0
        return positions[found], np.concatenate([np.zeros(1, np.int64), np.cumsum(found)])

    def _count(self, epoch: int, indices: Int64) -> Int64:
        """Return how often an epoch reads each valid index, flat."""
        return np.diff(self._locate_all(epoch, indices)[1])

    def _group_of(self, indices: Int64) -> Int64:  # noqa: ARG002 (of an order without groups)
        """Return the group of each valid index, flat; -1 where it belongs to none."""
        raise IndexPlanError(
            type(self).__name__,
            "must write _group_of, as it names groups",
            "none",
            "see docs/orders.md",
        )

    def _group_shares(self, epoch: int, start: int, stop: int) -> Float64:  # noqa: ARG002
        """Return each group's share of a valid interval of positions, which is not empty."""
        raise IndexPlanError(
            type(self).__name__,
            "must write _group_shares, as it names groups",
            "none",
            "see docs/orders.md",
        )

    def _groups_read(self, epoch: int, start: int, stop: int) -> Int64:
        """Return the group of each sample of a valid interval; -1 where it belongs to none.

        Of each unit, where `shares_of` counts those. An order that knows the groups without drawing
        the samples may override this.
        """
        starts, stops = np.array([start]), np.array([stop])
        samples = self._take(epoch, starts, stops)
        if self.shares_of == "samples":
            return self._group_of(samples)
        offsets = self._offsets(epoch, starts, stops)
        groups = np.full(stop - start, -1)
        filled = offsets[1:] > offsets[:-1]
        groups[filled] = self._group_of(samples[offsets[:-1][filled]])
        return groups

    @property
    def _no_groups(self) -> IndexPlanError:
        cure = "ask an order whose group_names are not empty"
        return wrong("an order", "one with groups, such as a Mixture", self.algorithm, cure)

    def num_units(self, epoch: int) -> int:  # noqa: ARG002 (bins may differ between epochs)
        """Return how many units the epoch has: for orders of single samples, `num_samples`."""
        return self.num_samples

    def _offsets(self, epoch: int, starts: Int64, stops: Int64) -> Int64:  # noqa: ARG002
        """Return at which sample each unit of valid intervals starts, and the number of samples."""
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

    def _costs(
        self,
        epoch: int,
        starts: Int64,
        stops: Int64,
        lengths: Column,
        cost: Callable[[Int64], Int64],
    ) -> Int64:
        """Return what each unit of valid intervals costs: the sum of its samples' costs.

        `cost` maps lengths to costs. The lengths are those of the column, or, where the order cuts
        samples, those of the parts. An order that knows the lengths in its units without drawing
        the samples may override this.
        """
        if self.traits.cuts_samples:
            spans = self._spans(epoch, starts, stops)
            costs = cost(spans[:, 1] - spans[:, 0])
        else:
            costs = cost(lengths.array[self._take(epoch, starts, stops)].astype(np.int64))
        if not self.deals_bins:
            return costs
        return summed(costs, self._offsets(epoch, starts, stops))

    def take(self, epoch: int, starts: ArrayLike, stops: ArrayLike | None = None) -> Int64:
        """Return which samples an epoch reads at some positions.

        Parameters
        ----------
        epoch : int
            0 <= epoch < 2**32.
        starts, stops : array_like of int, shape (num_runs,), or int
            Intervals [start, stop) of positions, read one after another: a single interval, or for
            example a rank's share of many steps. Without `stops`, `starts` are single positions.

        Returns
        -------
        numpy.ndarray
            int64, the samples' indices: shape (units,), or (samples,) where units are bins.

        Raises
        ------
        IndexPlanError
            If a number is not an integer, the epoch is out of range, `stops` has another shape than
            `starts`, or an interval is reversed or leaves [0, num_units).

        Examples
        --------
        >>> import indexplan as ip
        >>> ip.Sequential(10).take(0, [2, 7], [5, 9])
        array([2, 3, 4, 7, 8])
        """
        epoch = check_epoch(epoch)
        return self._take(epoch, *self._check_runs(epoch, starts, stops))

    def offsets(self, epoch: int, starts: ArrayLike, stops: ArrayLike | None = None) -> Int64:
        """Return where each unit starts among the samples that `take` returns, and where all end.

        Where units are bins of several samples, this tells which samples belong together.

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

    @once
    def _hidden_cuts(self) -> tuple[str, str] | None:
        """The name of a class that does not pass on that an order inside it cuts samples; or None.

        The class is this order's, or that of one inside; with the algorithm of the hidden order.
        """
        orders: list[Order] = [self]
        for order in orders:  # grows meanwhile
            names = getattr(type(order), "__dataclass_fields__", None) or ()
            values = [getattr(order, name, None) for name in names]
            if PLAIN_VALUES.issuperset(map(type, values)):  # a mixture has many such orders
                continue
            for inside in _orders(values):
                if inside.traits.cuts_samples and not order.traits.cuts_samples:
                    return type(order).__name__, inside.algorithm
                orders.append(inside)
        return None

    def _spans(self, epoch: int, starts: Int64, stops: Int64) -> Int64:  # noqa: ARG002
        """Return which part of each sample of valid intervals is read."""
        raise IndexPlanError(
            type(self).__name__,
            "must write _spans, as it cuts samples",
            "none",
            "see docs/orders.md",
        )

    def spans(self, epoch: int, starts: ArrayLike, stops: ArrayLike | None = None) -> Int64:
        """Return which part of each sample that `take` returns is read, if the order cuts samples.

        Returns
        -------
        numpy.ndarray
            int64, shape (samples, 2): the tokens [start, stop) of each sample, or frames, or
            whatever its length is counted in.

        Raises
        ------
        IndexPlanError
            As `take` does; also if the order reads whole samples, whose lengths it does not know.

        Examples
        --------
        >>> import indexplan as ip
        >>> order = ip.DocumentWindows([5, 3, 9, 4], length=10)
        >>> order.take(0, 0), order.spans(0, 0).tolist()
        (array([0, 2]), [[0, 5], [0, 6]])
        """
        epoch = check_epoch(epoch)
        runs = self._check_runs(epoch, starts, stops)
        check_cuts_samples(self)
        return self._spans(epoch, *runs)

    def locate(self, epoch: int, indices: ArrayLike) -> Int64:
        """Return the position at which an epoch first reads each sample: the inverse of `take`.

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
        array = self._check_indices(indices)
        return self._locate(check_epoch(epoch), array.ravel()).reshape(array.shape)

    def locate_all(self, epoch: int, indices: ArrayLike) -> tuple[Int64, Int64]:
        """Return all positions at which an epoch reads each of some samples.

        Parameters
        ----------
        epoch : int
            0 <= epoch < 2**32.
        indices : array_like of int
            k samples, 0 <= index < num_samples.

        Returns
        -------
        positions : numpy.ndarray
            int64, shape (reads,): those of the first sample, rising, then those of the second, and
            so on. A unit that holds a sample twice appears twice.
        offsets : numpy.ndarray
            int64, shape (k + 1,): sample i has the positions [offsets[i], offsets[i + 1]).

        Raises
        ------
        IndexPlanError
            If the epoch or an index is out of range, or the order may repeat samples and reads
            these more than 2**27 times.

        Examples
        --------
        >>> import indexplan as ip
        >>> ip.Sequential(10).locate_all(0, [7, 2])
        (array([7, 2]), array([0, 1, 2]))
        """
        epoch, flat = check_epoch(epoch), self._check_indices(indices).ravel()
        if self.traits.reads == "any" and type(self)._count is not Order._count:  # noqa: SLF001
            reads = sum(self._count(epoch, flat).tolist())  # counts them without listing any
            if reads > MOST_READS:
                raise too_many(reads)
        return self._locate_all(epoch, flat)

    def count(self, epoch: int, indices: ArrayLike) -> Int64:
        """Return how often an epoch reads each of some samples.

        Parameters
        ----------
        epoch : int
            0 <= epoch < 2**32.
        indices : array_like of int
            Samples, 0 <= index < num_samples.

        Returns
        -------
        numpy.ndarray
            int64, the shape of `indices`.

        Raises
        ------
        IndexPlanError
            If the epoch or an index is out of range.

        Examples
        --------
        >>> import indexplan as ip
        >>> ip.Shuffle(10).count(0, [7, 2])
        array([1, 1])
        """
        array = self._check_indices(indices)
        return self._count(check_epoch(epoch), array.ravel()).reshape(array.shape)

    def group_of(self, indices: ArrayLike) -> Int64:
        """Return which group, such as which source of a `Mixture`, each of some samples is in.

        Parameters
        ----------
        indices : array_like of int
            Samples, 0 <= index < num_samples.

        Returns
        -------
        numpy.ndarray
            int64, the shape of `indices`: where in `group_names` the sample's group is; -1 if the
            sample is in none.

        Raises
        ------
        IndexPlanError
            If the order has no groups, or an index is out of range.
        """
        if not self.group_names:
            raise self._no_groups
        array = self._check_indices(indices)
        return self._group_of(array.ravel()).reshape(array.shape)

    def group_shares(self, epoch: int, start: int, stop: int) -> Float64:
        """Return the share of each group at which the order aims over some positions of an epoch.

        Parameters
        ----------
        epoch : int
            0 <= epoch < 2**32.
        start, stop : int
            The positions [start, stop), at least one.

        Returns
        -------
        numpy.ndarray
            float64, shape (groups,): fractions of the samples, or of the units where `shares_of`
            says so; they sum to 1.

        Raises
        ------
        IndexPlanError
            If the order has no groups, the epoch is out of range, or the interval is empty or
            leaves [0, num_units).
        """
        epoch = check_epoch(epoch)
        if not self.group_names:
            raise self._no_groups
        num_units = self.num_units(epoch)
        cure = f"name some of the epoch's {counted(num_units, 'unit')}"
        start = integer("start", start, 0, num_units, cure)
        stop = integer("stop", stop, start + 1, num_units + 1, cure)
        return self._group_shares(epoch, start, stop)

    def _check_indices(self, indices: ArrayLike) -> Int64:
        array = as_int64("index", indices)
        if array.size and not 0 <= array.min() <= array.max() < self.num_samples:
            bad = array.flat[np.argmax((array < 0) | (array >= self.num_samples))]
            cure = f"name one of the order's {counted(self.num_samples, 'sample')}"
            raise wrong("index", f"from 0 to {self.num_samples - 1}", int(bad), cure)
        return np.ascontiguousarray(array).reshape(array.shape)

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
            rule = f"of the same shape as starts, {first.shape}"
            raise wrong("stops", rule, last.shape, "give each start a stop")
        bad = (first < 0) | (last > num_units) | (first > last)
        if bad.any():
            i = int(np.argmax(bad))
            rule = f"an interval inside [0, {num_units}), the positions of epoch {epoch}"
            cure = f"name some of the epoch's {counted(num_units, 'unit')}"
            raise wrong("positions", rule, (int(first[i]), int(last[i])), cure)
        return first, last


def as_int64(what: str, values: ArrayLike) -> Int64:
    """Return integers as an int64 array; refuse booleans, and floats even if they are whole."""
    if isinstance(values, np.ndarray) and values.dtype == np.int64:
        return values
    rule = "an integer below 2**63, or an array of them"
    cure = "pass integers, such as an int64 array"
    try:
        array = as_array(values)
    except Exception:  # lists of different lengths, or whatever a user's class raises
        raise wrong(what, rule, values, cure) from None
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind not in "iu" or (array.dtype.kind == "u" and array.max() >= 2**63):
        raise wrong(what, rule, values, cure)
    return array.astype(np.int64)


def check_cuts_samples(order: Order) -> None:
    """Raise `IndexPlanError` if the order reads whole samples, so that there are no spans."""
    if not order.traits.cuts_samples:
        rule = "one that cuts samples, such as DocumentWindows, to have spans"
        cure = "read its samples whole"
        raise wrong("an order", rule, order.algorithm, cure)


def check_parts_known(order: Order) -> None:
    """Raise `IndexPlanError` if an order hides that one inside it cuts samples."""
    if (hidden := order._hidden_cuts) is not None:  # noqa: SLF001 (of an order, for this)
        rule = f"True in {hidden[0]}, as {hidden[1]} inside it cuts samples"
        cure = "write _spans too, and set cuts_samples=True in its traits"
        raise wrong("cuts_samples", rule, False, cure)


def summed(costs: Int64, offsets: Int64) -> Int64:
    """Return the sums of costs between rising offsets; 2**63 - 1 where a sum is larger."""
    ends = np.cumsum(np.append(0, costs))  # may wrap around, but the difference wraps back
    sums: Int64 = ends[offsets[1:]] - ends[offsets[:-1]]
    if int(np.diff(offsets).max(initial=0)) * int(costs.max(initial=0)) >= 2**63:
        halves = (np.cumsum(np.append(0, half)) for half in (costs >> 32, costs & 2**32 - 1))
        high, low = (half[offsets[1:]] - half[offsets[:-1]] for half in halves)
        sums[high + (low >> 32) >= 2**31] = 2**63 - 1
    return sums


def too_many(reads: int) -> IndexPlanError:
    """Return the error that there are more reads than one call lists."""
    cure = "ask for fewer samples at a time, or for their count"
    return wrong("the number of reads to list", f"at most {MOST_READS}", reads, cure)


def check_num_samples(value: Any) -> int:
    """Return `value` as an int in [1, 2**63), or raise `IndexPlanError`."""
    return integer("num_samples", value, 1, NUM_SAMPLES_STOP, "pass len(dataset)")


def not_located(order: Order) -> str:
    """Return why an order cannot say where it reads samples; an empty text if it can."""
    try:
        order.locate_all(0, [])
    except IndexPlanError as error:  # it may repeat samples, or is stored and its class unknown
        return str(error)
    return ""


def check_saved(saved: Any, epoch: Any, position: Any) -> None:
    """Raise `IndexPlanError` unless `Order.continues` can be called with these arguments."""
    if not isinstance(saved, Mapping):
        raise wrong("saved", "the dict form of an order", saved, "pass order.to_dict()")
    for name, number in (("epoch", epoch), ("position", position)):
        integer(name, number, 0, 2**63, f"pass the cursor's {name}")


def _orders(value: Any) -> Iterator[Order]:
    """Yield the orders in a field's value, but not those inside these."""
    level = [value]
    for each in level:  # grows meanwhile
        if type(each) in PLAIN_VALUES:  # there may be thousands of weights: skip them quickly
            continue
        if isinstance(each, (tuple, list)):
            level += each
        elif isinstance(each, Order):
            yield each
        elif isinstance(each, Mapping):
            level += each.values()
