"""What an order is: the sequence in which each epoch reads its units."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from indexplan import kernels
from indexplan.canonical import check_fields
from indexplan.errors import Cure, IndexPlanError, invalid
from indexplan.once import once
from indexplan.orders.arguments import check_indices, check_runs, check_saved
from indexplan.orders.columns import Column
from indexplan.orders.fields import HasFields, field_names, nested
from indexplan.orders.groups import HasGroups, unwritten
from indexplan.orders.traits import PLAIN, Traits, check_class
from indexplan.orders.units import Units, costs_of, cut_pieces
from indexplan.seeds import check_epoch, check_seed, key_words

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
DEALT_AT_ONCE = 2**9  # units, where only their sizes are needed
MOST_READS = 2**27  # most reads that one call lists: 1 GiB of positions
MOST_TOLD = 2**16  # most reads of a sample that are put into words

Draws: TypeAlias = tuple[tuple[Any, ...], ...]  # of each: algorithm, size, seed
Why: TypeAlias = tuple[str, ...]  # why a run cannot continue: rule, got and cure; or () if unknown


class Order(HasFields, HasGroups, abc.ABC):
    """The sequence in which each epoch reads the samples; the base of `Shuffle` and all others.

    An order holds the size of its dataset and its seed. It knows nothing of ranks and batches: a
    `Plan` divides it among them. It hands out *units*: single samples, or bins of several samples
    that stay together.

    To write your own order, make a frozen dataclass with `eq=False` (`Order` compares algorithms
    and fields itself). Set `algorithm`, and write two hooks: `fill`, or `deal` if its units are
    bins; and `find`. Set `traits` unless units are single samples and each epoch reads every sample
    exactly once. Then pass the class to `register`. The other methods check their arguments
    and call these hooks; they are final. docs/orders.md has examples, and
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

    # Names that begin with `ip_` are internal: what plans, layers, files and reports ask of orders,
    # with arguments that are checked already. An order of a user's has them all from here.

    algorithm: str
    """Name and version of the algorithm; an order that deals other indices needs another name."""

    num_samples: int

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        check_class(cls, Order)

    @property
    def traits(self) -> Traits:
        """What the order promises about every epoch; set it in a class that promises less."""
        return PLAIN

    @property
    def deals_bins(self) -> bool:
        """Whether units are bins, which may hold any number of samples; from `traits`."""
        return self.traits.deals_bins

    @property
    def constant_num_units(self) -> bool:
        """Whether all epochs have the same number of units; from `traits`."""
        return self.traits.constant_num_units

    @property
    def stream_key(self) -> int:
        """The seed from which loaders derive seeds for augmentation: `seed`, or 0 without one.

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
    def ip_table_bytes(self) -> int:
        """The bytes of the table that this order derives, without orders inside it. A hook."""
        return 0

    @property
    def ip_global_batch(self) -> int:
        """The units of the global batch that the order is made for; 1 if it is for any."""
        return 1

    @property
    def ip_bin_size(self) -> int | None:
        """The samples in each bin, but those of `ip_short_bins`; None if they may differ."""
        return None

    def ip_short_bins(self, epoch: int) -> Int64:
        """Return the positions of bins with fewer samples than `ip_bin_size`, rising."""
        return np.empty(0, np.int64)

    @property
    def ip_draws(self) -> Draws:
        """What determines everything that the order and those inside it draw; () if nothing.

        Orders that share a member draw the same: a mixture of them would read them in step.
        """
        seed = getattr(self, "seed", None)
        return () if seed is None else ((self.algorithm, self.num_samples, seed),)

    def _key_words(self, purpose: int, epoch: int, count: int) -> NDArray[np.uint32]:
        """Return the key words for what the order draws for one purpose in one epoch."""
        return key_words(getattr(self, "seed", 0), purpose, epoch, count, self.num_samples)

    def _shuffled(
        self,
        purpose: int,
        epoch: int,
        n: int,
        starts: Int64,
        stops: Int64,
        out: Int64 | None = None,
    ) -> Int64:
        """Return the numbers below n at some runs of a shuffle that the order draws."""
        found = np.empty(int((stops - starts).sum()), np.int64) if out is None else out
        words = self._key_words(purpose, epoch, 2 * kernels.feistel.num_rounds(n))
        kernels.permutation.permute_runs(n, words, starts, stops, found)
        return found

    def _unshuffled(self, purpose: int, epoch: int, n: int, numbers: Int64) -> Int64:
        """Return where such a shuffle has some numbers."""
        found = np.empty(len(numbers), np.int64)
        words = self._key_words(purpose, epoch, 2 * kernels.feistel.num_rounds(n))
        kernels.permutation.invert(n, words, np.ascontiguousarray(numbers), found)
        return found

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

        It may if both read the same units before the given position, as do equal orders; a
        `Mixture` whose weights change later; a `Weighted` before the first epoch with other
        weights; a `Without` before its samples are excluded; and layers around these. Override it
        if your order's later epochs can change. If it is true at one position, it must also be
        true at all earlier ones.

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
        return self.ip_form == saved or self.ip_apart(saved, epoch, position) is None

    def ip_apart(self, saved: Mapping[str, Any], epoch: int, position: int) -> Why | None:
        """Return why what was read before a place differs under a saved order that is not equal.

        None if it does not differ.
        """
        return ()

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        """Write the samples at runs of positions to `out`: the hook for single samples.

        Parameters
        ----------
        epoch : int
            0 <= epoch < 2**32.
        starts, stops : numpy.ndarray
            int64, shape (num_runs,), C-contiguous: valid runs [start, stop) of positions, in any
            order; some may be empty. `indexplan.orders.expand` turns them into positions.
        out : numpy.ndarray
            int64, with exactly one element for each position. Several threads may call this at
            once, each with its own part of one array.
        """
        raise unwritten(self, "fill", "written, or deal, with traits that say deals_bins")

    def deal(self, epoch: int, starts: Int64, stops: Int64) -> Units:
        """Return the units at runs of positions: the hook for bins, written instead of `fill`.

        Parameters
        ----------
        epoch, starts, stops
            As for `fill`.

        Returns
        -------
        Units
            New arrays, which the caller may write to. They have spans if and only if the traits
            have `cuts_samples`.
        """
        samples = np.empty(int((stops - starts).sum()), np.int64)
        self.fill(epoch, starts, stops, samples)
        return Units(samples, np.ones_like(samples))

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        """Return where an epoch reads some samples: the hook that inverts `fill` or `deal`.

        Parameters
        ----------
        epoch : int
            0 <= epoch < 2**32.
        indices : numpy.ndarray
            int64, shape (k,): valid samples, unsorted; some may be repeated.
        most : int, optional
            How many reads of each sample the caller needs, counted from the first. You may return
            more, so ignore it in an order that reads no sample very often. By default, all are
            needed.

        Returns
        -------
        which, positions : numpy.ndarray
            int64, shape (reads,): a pair for each read, in any order: where the sample is in
            `indices`, and the position of its unit. A sample that is not read has no pair, and one
            that a unit holds twice has two.
        """
        raise unwritten(self, "find", "written, as the inverse of what the order reads")

    def tally(self, epoch: int, indices: Int64) -> Int64:
        """Return how often an epoch reads each of these samples: a hook; by default it uses `find`.

        An order that may read samples more than 2**27 times needs a closed form of it, so that the
        number is known before the reads are listed.
        """
        return np.bincount(self.find(epoch, indices)[0], minlength=len(indices))

    def num_units(self, epoch: int) -> int:
        """Return the number of units in an epoch: `num_samples` for orders of single samples."""
        return self.num_samples

    def ip_take(self, epoch: int, starts: Int64, stops: Int64) -> Int64:
        """Return the samples at valid runs of positions."""
        if self.traits.deals_bins:
            return self.deal(epoch, starts, stops).samples
        out = np.empty(int((stops - starts).sum()), np.int64)
        self.fill(epoch, starts, stops, out)
        return out

    def ip_offsets(self, epoch: int, starts: Int64, stops: Int64) -> Int64:
        """Return at which sample each unit of valid runs starts, and the number of samples.

        An order that knows this without drawing the samples may override it.
        """
        if self.traits.deals_bins:  # some at a time, as their samples may fill the memory
            some = cut_pieces(starts, stops, DEALT_AT_ONCE)
            sizes = [self.deal(epoch, lows, highs).sizes for _, lows, highs in some]
            return np.cumsum(np.concatenate([np.zeros(1, np.int64), *sizes]))
        return np.arange(int((stops - starts).sum()) + 1, dtype=np.int64)

    def ip_costs(
        self,
        epoch: int,
        starts: Int64,
        stops: Int64,
        lengths: Column,
        cost: Callable[[Int64], Int64],
    ) -> Int64:
        """Return what each unit of valid intervals costs: the sum of its samples' costs.

        `cost` maps lengths to costs. The lengths are those in the column or, if the order cuts
        samples, those of the parts. An order that knows the lengths in its units without drawing
        the samples may override this.
        """
        units = self.deal(epoch, starts, stops)
        return costs_of(units, lengths, cost, bins=self.traits.deals_bins)

    @property
    def ip_num_copies(self) -> int:
        """How many copies of a unit a `Repeat` inside reads at most: `ip_copies` are below it."""
        return 1

    def ip_copies(self, epoch: int, starts: Int64, stops: Int64) -> Int64:
        """Return which copy of a `Repeat` each unit of valid runs is; 0 where there is none."""
        return np.zeros(int((stops - starts).sum()), np.int64)

    @property
    def ip_gaps(self) -> object | None:
        """How long epochs are, if positions are counted where units are left out: `extent_of`."""
        return None

    @property
    def ip_same_reads(self) -> bool:
        """Whether all epochs read each sample equally often, except those that a layer names."""
        return self.traits.reads == "once"

    def ip_told(self, epoch: int, index: int) -> list[tuple[int, str]]:
        """Return each unit of an epoch that holds a sample: its position, or -1 and why it is out.

        A layer that leaves units out asks the order inside, and tells by the formula that also
        counts them. Raises `IndexPlanError` if there are too many to be told.
        """
        asked = np.array([index], np.int64)
        if self.traits.reads == "any" and (reads := int(self.tally(epoch, asked)[0])) > MOST_TOLD:
            rule, call = f"at most {MOST_TOLD} in an epoch, to be explained", "plan.order.count"
            cure = Cure(f"call plan.locate_all or {call}", f"call {call} in Python")
            raise invalid("the reads of a sample", rule, reads, cure)
        return [(position, "") for position in np.sort(self.find(epoch, asked)[1]).tolist()]

    def take(self, epoch: int, starts: ArrayLike, stops: ArrayLike | None = None) -> Int64:
        """Return which samples an epoch reads at some positions.

        Parameters
        ----------
        epoch : int
            0 <= epoch < 2**32.
        starts, stops : array_like of int, shape (num_runs,), or int
            Intervals [start, stop) of positions, read in turn: a single one, or several, such as a
            rank's share of many steps. Without `stops`, `starts` are single positions.

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
        return self.ip_take(epoch, *check_runs(epoch, self.num_units(epoch), starts, stops))

    def offsets(self, epoch: int, starts: ArrayLike, stops: ArrayLike | None = None) -> Int64:
        """Return where each unit starts among the samples that `take` returns, and where all end.

        If units are bins of several samples, this shows which samples belong together.

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
        return self.ip_offsets(epoch, *check_runs(epoch, self.num_units(epoch), starts, stops))

    @once
    def ip_hidden_cuts(self) -> tuple[str, str] | None:
        """The name of a class that does not pass on that an order inside it cuts samples, or None.

        It is the class of this order or of one inside it, with the algorithm of the hidden order.
        """
        for inside, holder in nested(self):
            if inside.traits.cuts_samples and not holder.traits.cuts_samples:
                return type(holder).__name__, inside.algorithm
        return None

    def spans(self, epoch: int, starts: ArrayLike, stops: ArrayLike | None = None) -> Int64:
        """Return which part of each sample that `take` returns is read, if the order cuts samples.

        Returns
        -------
        numpy.ndarray
            int64, shape (samples, 2): [start, stop) of each sample, in tokens, frames, or any other
            unit that lengths are counted in.

        Raises
        ------
        IndexPlanError
            As `take` does. Also if the order reads whole samples, because it does not know how long
            they are.

        Examples
        --------
        >>> import indexplan as ip
        >>> order = ip.DocumentWindows([5, 3, 9, 4], length=10)
        >>> order.take(0, 0), order.spans(0, 0).tolist()
        (array([0, 2]), [[0, 5], [0, 6]])
        """
        epoch = check_epoch(epoch)
        runs = check_runs(epoch, self.num_units(epoch), starts, stops)
        if not self.traits.cuts_samples:
            rule = "one that cuts samples, such as DocumentWindows, to have spans"
            raise invalid("an order", rule, self.algorithm, "read its samples whole")
        return spans_of(self, self.deal(epoch, *runs))

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
        epoch, array = check_epoch(epoch), check_indices(indices, self.num_samples)
        flat = array.ravel()
        return first_of(*self.find(epoch, flat, 1), len(flat)).reshape(array.shape)

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
            int64, shape (reads,): the positions of the first sample in rising order, then those of
            the second, and so on. A unit that holds a sample twice appears twice.
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
        epoch, flat = check_epoch(epoch), check_indices(indices, self.num_samples).ravel()
        if self.traits.reads == "any" and type(self).tally is not Order.tally:
            reads = sum(self.tally(epoch, flat).tolist())  # counts them without listing any
            if reads > MOST_READS:
                raise too_many(reads)
        return by_sample(*self.find(epoch, flat), len(flat))

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
        epoch, array = check_epoch(epoch), check_indices(indices, self.num_samples)
        return self.tally(epoch, array.ravel()).reshape(array.shape)


def spans_of(order: Order, units: Units) -> Int64:
    """Return the spans of the units that an order of parts of samples returned."""
    if units.spans is None:
        raise unwritten(order, "spans", "given by its deal, as its traits say cuts_samples")
    return units.spans


def not_located(order: Order) -> str:
    """Return why an order cannot locate samples, or an empty text if it can."""
    try:
        order.locate_all(0, [])
    except IndexPlanError as error:  # it has no find, or is stored and its class unknown
        return str(error)
    return ""


def by_sample(which: Int64, positions: Int64, count: int) -> tuple[Int64, Int64]:
    """Return the positions of each of `count` samples, rising, and the offsets between samples."""
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(which, minlength=count), out=offsets[1:])
    if (which[1:] > which[:-1]).all():  # at most one read of each, sorted already
        return positions, offsets
    rising = np.lexsort((positions, which))
    return positions[rising], offsets


def first_of(which: Int64, positions: Int64, count: int) -> Int64:
    """Return the first position of each of `count` samples; -1 where there is none."""
    if len(which) == count and (which[1:] > which[:-1]).all():
        return positions
    none = np.iinfo(np.int64).max
    first = np.full(count, none)
    np.minimum.at(first, which, positions)
    first[first == none] = -1
    return first


def too_many(reads: int) -> IndexPlanError:
    """Return the error that there are more reads than one call lists."""
    cure = "ask for fewer samples at a time, or for their count, or use smaller epochs"
    return invalid("the number of reads to list", f"at most {MOST_READS}", reads, cure)
