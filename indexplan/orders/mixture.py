"""Several datasets read together, each as often as its weight says: mixture-v1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from indexplan import kernels
from indexplan.canonical import check_fields
from indexplan.errors import IndexPlanError, as_integer, difference_in_words, few, integer, invalid
from indexplan.once import latest, once
from indexplan.orders.arguments import (
    NUM_SAMPLES_STOP,
    check_indices,
    keeps_planned,
    place_of,
    saved_in,
)
from indexplan.orders.base import Draws, Float64, Int64, Order, Why
from indexplan.orders.batched import Flat
from indexplan.orders.fields import nest
from indexplan.orders.groups import Place
from indexplan.orders.phases import PLACE_STOP, Phases, Sorted
from indexplan.orders.registry import register
from indexplan.orders.shares import SharesFrom, phases_of
from indexplan.orders.shuffle import UInt32, plain_shuffles
from indexplan.orders.sources import Former, check_different, num_sources, sources_of
from indexplan.orders.streams import count_between, reads_between
from indexplan.orders.traits import READS, Traits
from indexplan.orders.units import Units, cut_pieces, joined
from indexplan.seeds import EPOCH_STOP, MIXTURE, SHUFFLE, check_epoch, check_seed, key_words

KEPT = 4  # epochs that are known to be read whole
AT_ONCE = 2**17  # units that are sorted at a time: some 3 MB
FIRST, ALL = "first_exhausted", "all_exhausted"


@register
@dataclass(frozen=True, eq=False, init=False)
class Mixture(Order):
    """Reads several datasets together, evenly interleaved, each as often as its weight says.

    For example, 70 % web text and 30 % code. The weights may change during the run. Indices are
    those of a `torch.utils.data.ConcatDataset` of the sources; `split` returns the source of each.

    Parameters
    ----------
    sources : mapping of str to Order, or sequence of (str, Order)
        The name of each dataset, and the order that reads it. Give each order its own seed: two
        of the same kind, size and seed have the same sequence, and are refused. All epochs of a
        source must have the same number of units.
    weights : mapping of str to number, or sequence of (int, mapping)
        How much to read each source, relative to the others. To change this during the run, pass
        phases `(unit, weights)`: each begins at that unit of the run, counted over all epochs, and
        the first at 0. Numbers are taken as written: 0.7, 0.2 and 0.1 are 7, 2 and 1 of every 10
        units. See the notes for weights that are extremely far apart.
    epoch_size : int or {"first_exhausted", "all_exhausted"}, optional
        Units in an epoch, 1 <= epoch_size < 2**63: by default, as many as all sources have
        together. "first_exhausted" ends the first epoch before any source would start again,
        "all_exhausted" when each source has been read to its end at least once. All later
        epochs have the same size.
    seed : int, default 0
        0 <= seed < 2**128, for the mixing; the sources have their own.

    Raises
    ------
    IndexPlanError
        If a number is out of range, the weights do not name exactly the sources, or two sources are
        equal. When an epoch is read, if it needs unit 2**63 of the run or later, or epoch 2**32 of
        a source.

    Notes
    -----
    Each source has epochs that do not depend on where the mixture's epochs begin and end: the c-th
    unit read of a source of n units is position c % n of its epoch c // n. So no unit of a source
    is repeated before all of them have been read, and none is skipped where weights change.

    At every place in a phase of weights, the number of units read from each source is within
    `within` of its share: less than 1 for two sources, about 2 for many, and never 3.36. At every
    multiple of the sum of `shares` it is exact, so weights equal to the sources' sizes read each
    unit once an epoch. Independent draws would deviate by about the square root of the units read.
    Over all seeds, a source is read at every place with its probability, to within 2**-29 for each
    choice between two parts of the sources. So only by chance does a rank get more of a source than
    others, for any number of ranks and any batch size.

    Weights become the smallest integers in the same proportions, which is exact if they add up to
    less than 2**62. Otherwise they are scaled down to about 2**61 together and rounded down, so a
    share s of k is off by at most 1 / s + k / 2**61 of itself. A weight above 0 never gets less
    than 1, so next to 1 a weight of 1e-300 is read as often as 2**-61.

    Examples
    --------
    >>> import indexplan as ip
    >>> sources = {"web": ip.Shuffle(700, seed=1), "code": ip.Shuffle(90, seed=2)}
    >>> mixture = ip.Mixture(sources, weights={"web": 0.75, "code": 0.25}, seed=3)
    >>> source, index = mixture.split(mixture.take(0, 0, 8))
    >>> mixture.names, source
    (('web', 'code'), array([1, 0, 0, 0, 0, 0, 0, 1]))
    >>> index  # in its source
    array([ 39, 262, 452,  29, 333, 509, 160,   3])
    """

    sources: tuple[tuple[str, Order], ...]
    weights: tuple[SharesFrom, ...]
    epoch_size: int
    seed: int

    algorithm = "mixture-v1"

    def __init__(
        self,
        sources: Mapping[str, Order] | Sequence[tuple[str, Order]],
        weights: Mapping[str, Any] | Sequence[tuple[int, Any]],
        *,
        epoch_size: int | str | None = None,
        seed: int = 0,
    ) -> None:
        kept = vars(self)
        kept["sources"] = sources_of(sources)
        nest(self, self._whose)
        if (num_samples := int(self._ends[-1])) >= NUM_SAMPLES_STOP:
            rule = "fewer than 2**63 together"
            raise invalid("the sources' samples", rule, num_samples, "leave some of them out")
        kept["num_samples"] = num_samples
        kept["weights"] = phases_of(weights, self.names)
        kept["seed"] = check_seed(seed)
        check_different(self.sources, self._own_draws)
        kept["epoch_size"] = self._stop(epoch_size)

    def _stop(self, epoch_size: Any) -> int:
        """Return the units in an epoch, for an epoch size given as a number or a name."""
        if not isinstance(epoch_size, str) or epoch_size not in (FIRST, ALL):
            size = sum(self._sizes.tolist()) if epoch_size is None else epoch_size
            cure = f"pass how many units an epoch has, {FIRST!r} or {ALL!r}"
            return integer("epoch_size", size, 1, PLACE_STOP, cure)
        last = epoch_size == ALL  # look for the place of each last unit, else of the one after it
        sizes = self._sizes.tolist()
        places = [self._phases.place_of(j, size - last) for j, size in enumerate(sizes)]
        known = [place for place in places if place is not None]
        if known and (epoch_size == FIRST or len(known) == len(places)):
            return min(known) if epoch_size == FIRST else max(known) + 1
        got = self.names[places.index(None)]
        raise IndexPlanError(
            f"{epoch_size!r}",
            "needs sources that are read to their ends before unit 2**63",
            f"{got!r}, which is not",
            "give it more weight",
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sources, in the order in which they were given."""
        return tuple(name for name, _ in self.sources)

    @property
    def shares(self) -> tuple[int, ...]:
        """The last phase's weights as integers without a common divisor.

        Each source's units in every `sum(shares)` units of the phase.
        """
        return self.weights[-1][1]

    @property
    def within(self) -> float:
        """The largest distance in units of a source from its share, in the last phase of weights.

        Below 1 for two sources, below 2 for three, about 2 for more.
        """
        return self._phases.pattern(len(self.weights) - 1).reach / 2**32

    @property
    def group_names(self) -> tuple[str, ...]:
        """The names of the sources."""
        return self.names

    @property
    def shares_of(self) -> str:
        """What the weights count: "units" if the sources are of bins, else "samples"."""
        return "units" if self.deals_bins else "samples"

    @once
    def _ends(self) -> tuple[int, ...]:
        """Where the indices of each source begin, and where those of the last one end."""
        return (0, *accumulate(source.num_samples for _, source in self.sources))

    @once
    def _begins(self) -> Int64:
        """Where the indices of each source begin; int64 (k,)."""
        return np.array(self._ends[:-1], np.int64)

    @once
    def _sizes(self) -> Int64:
        """The number of units in an epoch of each source; int64 (k,)."""
        return np.array([source.num_units(0) for _, source in self.sources], np.int64)

    @once
    def _soonest(self) -> int:
        """The unit of the run up to which no source can have used up its epochs; 0 if unknown."""
        own = any(type(each).num_units is not Order.num_units for each in self._whose)
        return 0 if own else EPOCH_STOP * int(self._sizes.min())

    @once
    def _phases(self) -> Phases:
        return Phases(self.weights, key_words(self.seed, MIXTURE, 0, 2, None))

    @once
    def _shuffles(self) -> tuple[Int64, UInt32]:
        return plain_shuffles(self._whose)  # most sources are shuffles, and few calls draw them all

    @property
    def ip_bin_size(self) -> int | None:
        sizes = {each.ip_bin_size for each in self._whose}
        equal = len(sizes) == 1 and not any(len(each.ip_short_bins(0)) for each in self._whose)
        return sizes.pop() if equal else None

    @property
    def _own_draws(self) -> Draws:
        """What determines the source of each unit; new sources must not change it."""
        return ((self.algorithm, None, self.seed),)

    @property
    def ip_draws(self) -> Draws:
        """What determines the mixture's own draws, and those of its sources."""
        inside = (source.ip_draws for source in self._whose)
        return (*self._own_draws, *chain.from_iterable(inside))

    @once
    def _whose(self) -> tuple[Order, ...]:
        return tuple(source for _, source in self.sources)

    @once
    def traits(self) -> Traits:
        """Samples are read once if every epoch consists of whole epochs of all sources."""
        inner = [source.traits for source in self._whose]
        reads = max((each.reads for each in inner), key=READS.index)
        if reads != "any":
            mine = self._phases.reads(self.epoch_size, self._sizes.tolist())
            reads = max(reads, mine, key=READS.index)
        return Traits(
            deals_bins=any(each.deals_bins for each in inner),
            reads=reads,
            cuts_samples=inner[0].cuts_samples,  # which all have in common
        )

    @property
    def _said(self) -> dict[str, Any]:
        """The sources by name, and the phases of shares."""
        sizes = {"phases": self.weights, "epoch_size": self.epoch_size, "seed": self.seed}
        return {"sources": self.sources, **sizes}

    @classmethod
    def _from_fields(cls, values: dict[str, Any]) -> Order:
        names = ["algorithm", "sources", "phases", "epoch_size", "seed"]
        check_fields(f"an order of {cls.algorithm}", values, names)
        size, seed = values["epoch_size"], values["seed"]
        return cls(values["sources"], values["phases"], epoch_size=size, seed=seed)

    def with_phase(
        self,
        place: Any,
        weights: Mapping[str, Any],
        *,
        sources: Mapping[str, Order] | Sequence[tuple[str, Order]] | None = None,
        planned: str | None = None,
    ) -> Mixture:
        """Return this mixture with other weights, or more sources, from some place of the run on.

        Earlier reads do not change, so a run can stop and resume with it:
        `plan.replace(order=mixture.with_phase(cursor, ...)).resume(cursor)`. It takes time in
        proportion to the phases so far, times the sources.

        Parameters
        ----------
        place : int or Cursor
            Where the weights begin: a cursor of a plan with this mixture, or with `Flat` of it,
            whose next bin is the first; or the unit of the whole run, epoch * epoch_size +
            position. A phase that begins right there is replaced.
        weights : mapping of str to number
            As for `Mixture`; for all sources, new ones included.
        sources : mapping of str to Order, or sequence of (str, Order), optional
            Sources that join there. They come last, so that all samples keep their numbers, and
            epochs keep their size. If a dataset has grown, pass its new rows as one more source.
        planned : {"keep", "drop"}, optional
            What becomes of phases that begin later: "keep" lets them begin as planned, "drop" keeps
            the new weights to the end of the run. Required if there are any; it must be "drop" if
            sources join, because later phases have no weights for these.

        Raises
        ------
        IndexPlanError
            If place is not a unit of the run or a cursor of a plan with this mixture, the weights
            do not name exactly the sources, a source has the name of another, or `planned` does not
            say what becomes of later phases.

        Examples
        --------
        >>> import indexplan as ip
        >>> sources = {"web": ip.Shuffle(700, seed=1), "code": ip.Shuffle(90, seed=2)}
        >>> mixture = ip.Mixture(sources, weights={"web": 0.75, "code": 0.25})
        >>> mixture.with_phase(1000, {"web": 1, "code": 1}).weights
        ((0, (3, 1)), (1000, (1, 1)))
        >>> new = {"books": ip.Shuffle(300, seed=3)}
        >>> mixture.with_phase(1000, {"web": 2, "code": 1, "books": 1}, sources=new).weights
        ((0, (3, 1, 0)), (1000, (2, 1, 1)))
        >>> phases = [(0, {"web": 1, "code": 0}), (500, {"web": 3, "code": 1})]
        >>> later = ip.Mixture(sources, phases)
        >>> later.with_phase(200, {"web": 9, "code": 1}, planned="keep").weights
        ((0, (1, 0)), (200, (9, 1)), (500, (3, 1)))
        """
        cure = "pass a cursor, or epoch * epoch_size + position, of where the weights begin"
        if as_integer(place) is None:
            epoch, position = self._reached(place, cure)
            place = epoch * self.epoch_size + position
        begin = integer("place", place, 0, PLACE_STOP, cure)
        joined = () if sources is None else self._new(sources)
        every = (*self.sources, *joined)
        ((_, shares),) = phases_of([(0, weights)], [name for name, _ in every])
        none = (0,) * len(joined)
        before = [(at, (*each, *none)) for at, each in self.weights if at < begin]
        phases = [*before, (begin, shares), *self._later(begin, planned, bool(joined))]
        return Mixture(every, phases, epoch_size=self.epoch_size, seed=self.seed)

    def _reached(self, cursor: Any, cure: str) -> tuple[int, int]:
        """Return the epoch and position behind what was read at a cursor, also of `Flat` of it."""
        saved, *_ = saved_in(cursor, "place", cure)
        if self.ip_bin_size is None or saved.get("algorithm") != Flat.algorithm:
            return place_of(self, cursor, "place", cure)
        flat = Flat(self)
        return flat.reach(*place_of(flat, cursor, "place", cure))

    def _later(self, begin: int, planned: Any, grows: bool) -> tuple[SharesFrom, ...]:
        """Return the phases after a place that are kept, or raise if nobody said what to do."""
        later = tuple(phase for phase in self.weights if phase[0] > begin)
        kept = keeps_planned(planned, f"unit {later[0][0]}" if later else "")
        if later and kept and grows:
            rule = (
                f'"drop" where sources join, as the phase at unit {later[0][0]} has none for them'
            )
            cure = "pass that, and plan the later phases again, by with_phase(unit, weights)"
            raise invalid("planned", rule, planned, cure)
        return later if kept else ()

    def _new(self, sources: Any) -> tuple[tuple[str, Order], ...]:
        """Return the sources that join, or raise if one has a name that is taken."""
        joined = sources_of(sources)
        for name, _ in joined:
            if name in self.names:
                cure = "name what is new otherwise; a source itself cannot grow"
                raise invalid("the name of a new source", "one that no source has", name, cure)
        return joined

    def split(self, indices: ArrayLike) -> tuple[Int64, Int64]:
        """Return which source each index belongs to, and which of that source's samples it is.

        Parameters
        ----------
        indices : array_like of int
            0 <= index < num_samples.

        Returns
        -------
        sources, samples : numpy.ndarray
            int64, the shape of `indices`: the number of the source in `names`, and the index in it.

        Raises
        ------
        IndexPlanError
            If an index is out of range.
        """
        array = check_indices(indices, self.num_samples)
        sources = self.group(array)
        return sources, array - self._begins[sources]

    def group(self, indices: Int64) -> Int64:
        """Return the source of each sample."""
        return np.searchsorted(self._begins, indices, "right") - 1

    @property
    def ip_group_sizes(self) -> Int64:
        return self._sizes

    def ip_counted(self, start: Place, stop: Place) -> tuple[Int64, Float64]:
        low, high = (self._place(*each) for each in (start, stop))
        shares = self._phases.shares(low, high) if high > low else np.zeros(len(self.names))
        return self._phases.count(high) - self._phases.count(low), shares * (high - low)

    def _place(self, epoch: int, position: int) -> int:
        """Return the unit of the run at a position of an epoch, which may be its end."""
        return (self._begin(epoch) if position else epoch * self.epoch_size) + position

    def aim(self, epoch: int, start: int, stop: int) -> Float64:
        """Return the share of each source that the weights of these units ask for."""
        begin = self._begin(epoch)
        return self._phases.shares(begin + start, begin + stop)

    def ip_apart(self, saved: Mapping[str, Any], epoch: int, position: int) -> Why | None:
        """Return which sources, or which weights, differ before a place.

        Sources that have joined since count as having weight 0 up to there.
        """
        former = Former.of(saved, self.ip_form)
        place = epoch * self.epoch_size + position
        if former is None or place >= PLACE_STOP:
            return ()
        if former.names != self.names[: len(former.names)]:
            rule = f"of a mixture whose sources are the first of {few(self.names)}"
            return rule, few(former.names), "keep all sources, and add new ones behind them"
        at = former.parts_at(self.weights)
        if at is not None and at < place:
            rule = f"at or before unit {at} of the run, since which the weights are others"
            cure = f"pass the phases that are in the cursor's order, or change them from {place} on"
            return rule, f"unit {place}", f"{cure}, by with_phase(cursor, weights) of that mixture"
        read, sizes = self._phases.count(place).tolist(), self._sizes.tolist()
        each = zip(self.sources, former.sources, read, sizes, strict=False)
        for (name, source), inside, count, size in each:
            now = source.ip_form
            if inside == now:
                continue
            kept = isinstance(inside, Mapping) and source.continues(inside, *divmod(count, size))
            if not kept or num_sources(inside) != num_sources(now):
                cure = "leave it as it was, and let what is new join as one more source"
                return (
                    f"of a mixture with the same source {name!r}",
                    difference_in_words(inside, now),
                    cure,
                )
        return None

    def num_units(self, epoch: int) -> int:
        """Return the epoch size."""
        self._begin(check_epoch(epoch))  # raises if there is no such epoch
        return self.epoch_size

    @latest(KEPT)
    def _begin(self, epoch: int) -> int:
        """Return the unit of the run at which an epoch begins; raise if it cannot be read whole."""
        begin, end = epoch * self.epoch_size, (epoch + 1) * self.epoch_size
        if end >= PLACE_STOP:
            rule = f"below {(PLACE_STOP - 1) // self.epoch_size}, as the run ends at unit 2**63"
            raise invalid("epoch", rule, epoch, "use smaller epochs")
        if end > self._soonest:
            counts, sizes = self._phases.count(end), self._sizes.tolist()
            each = zip(self.sources, counts.tolist(), sizes, strict=True)
            for (name, source), count, size in each:
                if (last := (count - 1) // size) >= EPOCH_STOP:
                    what, cure = f"the epochs of the source {name!r}", "give it less weight"
                    raise invalid(
                        what, "below 2**32", last, f"{cure}, or read fewer or smaller epochs"
                    )
                if count:
                    source.num_units(last)  # raises if that cannot be read
        return begin

    def _sorted(self, epoch: int, starts: Int64, stops: Int64) -> Sorted:
        """Return the units at some positions of an epoch, sorted by source."""
        return Sorted.of(*self._phases.deal(self._begin(epoch), starts, stops), self._sizes)

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        done, (sizes, seeds) = 0, self._shuffles
        others = np.flatnonzero(sizes == 0).tolist()
        for num, some, ends in cut_pieces(starts, stops, AT_ONCE):
            units, drawn = self._sorted(epoch, some, ends), np.empty(num, np.int64)
            sources, begins, *runs = units
            kernels.permutation.permute_epochs(sizes, seeds, SHUFFLE, *runs, begins, drawn)
            for j in others:
                for of, part, lows, highs in units.of_source(j):
                    self._whose[j].fill(of, lows, highs, drawn[part])
            kernels.by_source.put_back(sources, begins, self._begins, drawn, out[done : done + num])
            done += num

    def deal(self, epoch: int, starts: Int64, stops: Int64) -> Units:
        if not self.traits.deals_bins:
            return super().deal(epoch, starts, stops)
        units, parts = self._sorted(epoch, starts, stops), []
        for source, j, *run in units.rows(self._whose):
            some = source.deal(*run)
            parts.append(some._replace(samples=some.samples + self._begins[j]))
        both = joined(parts, cut=self.traits.cuts_samples)
        return both.moved(np.argsort(units.sources, kind="stable"))

    def ip_offsets(self, epoch: int, starts: Int64, stops: Int64) -> Int64:
        if not self.traits.deals_bins:
            return super().ip_offsets(epoch, starts, stops)
        units = self._sorted(epoch, starts, stops)
        rows = units.rows(self._whose)
        each = [np.diff(source.ip_offsets(*run)) for source, _, *run in rows]
        offsets = np.zeros(len(units.sources) + 1, np.int64)
        offsets[np.argsort(units.sources, kind="stable") + 1] = np.concatenate([offsets[:0], *each])
        return np.cumsum(offsets)

    @once
    def ip_num_copies(self) -> int:
        return max(source.ip_num_copies for source in self._whose)

    def ip_copies(self, epoch: int, starts: Int64, stops: Int64) -> Int64:
        if self.ip_num_copies == 1:
            return super().ip_copies(epoch, starts, stops)
        units = self._sorted(epoch, starts, stops)
        parts = [source.ip_copies(*run) for source, _, *run in units.rows(self._whose)]
        copies = np.empty(len(units.sources), np.int64)
        copies[np.argsort(units.sources, kind="stable")] = np.concatenate([copies[:0], *parts])
        return copies

    def _read_of(self, epoch: int, indices: Int64) -> Iterator[tuple[int, Int64, int, int, Int64]]:
        """Yield, for each source of these samples, which belong to it, and its units in an epoch.

        That is: the source's number, where its samples are in `indices`, the first of its units and
        the one past the last, and the samples' indices in the source.
        """
        begin = self._begin(epoch)
        starts = self._phases.count(begin).tolist()
        stops = self._phases.count(begin + self.epoch_size).tolist()
        sources = self.group(indices)
        samples = indices - self._begins[sources]
        for j in np.unique(sources).tolist():
            mine = np.flatnonzero(sources == j)
            yield j, mine, starts[j], stops[j], samples[mine]

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        which, places, begin = [np.empty(0, np.int64)], [np.empty(0, np.int64)], self._begin(epoch)
        for j, mine, start, stop, samples in self._read_of(epoch, indices):
            of, units = reads_between(self._whose[j], start, stop, samples, most)
            which.append(mine[of])
            places.append(self._phases.find(j, units) - begin)
        return np.concatenate(which), np.concatenate(places)

    def tally(self, epoch: int, indices: Int64) -> Int64:
        counts = np.zeros(len(indices), np.int64)
        for j, mine, start, stop, samples in self._read_of(epoch, indices):
            counts[mine] = count_between(self._whose[j], start, stop, samples)
        return counts
