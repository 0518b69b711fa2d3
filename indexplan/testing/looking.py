"""What a check looks at: the positions and samples of an epoch, and what the order says of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from indexplan.errors import IndexPlanError, shown
from indexplan.once import once
from indexplan.orders.base import Int64, Order

ALL = 2**12  # units that are all looked at; of more, the first, the last and some between
ENDS, STRETCHES, STRETCH, SINGLES = 2**10, 16, 64, 256  # how many of which
MOST_READS = 2**17  # samples of an epoch that are looked at
MOST_OF_ONE = 2**7  # reads of a sample that are looked at, where not all units are

Found: TypeAlias = "Iterator[tuple[int, str]]"  # how many were looked at, and what is wrong
Asked: TypeAlias = "list[tuple[int, Int64, Int64]]"  # epochs, with positions and samples


class Law(NamedTuple):
    """What an order must do, how that is checked, and what to change if it does not."""

    words: str
    found: Callable[[Look], Found]
    cure: str
    skipped: Callable[[Look], str] = lambda _: ""


class Look:
    """An order under test, and what it said when it was first asked."""

    def __init__(self, order: Order, rows: list[Row]) -> None:
        self.order = order
        self.rows = rows
        self.where = ""  # the epoch that is looked at

    def each(self) -> Iterator[Row]:
        """Yield the epochs one by one, and keep in `where` which one is looked at."""
        for row in self.rows:
            self.where = f" in epoch {row.epoch}"
            yield row
        self.where = ""

    @once
    def asked(self) -> Asked:
        """What copies of the order are asked: epochs, their positions and samples."""
        return [(row.epoch, row.positions, row.samples) for row in self.rows]

    @once
    def answers(self) -> dict[str, Any]:
        """What the order answers to these questions."""
        return answers(self.order, self.asked)

    def differs(self, name: str, answers: dict[str, Any]) -> tuple[int, str]:
        """Return how many answers were compared with an equal order's, and what differs, if any."""
        for question, answer in self.answers.items():
            if answer != answers[question]:
                place, there, here = _first_difference(answers[question], answer)
                return 0, f"{question}{place} = {there} from {name}, and {here} from the order"
        return len(answers), ""


class Row:
    """What an order reads in an epoch, all of it or some places, asked for one by one."""

    def __init__(self, order: Order, epoch: int) -> None:
        self.order = order
        self.epoch = epoch
        self.first = np.arange(0)

    def ask(self) -> str:
        """Read the epoch for the first time; if the order refuses it, return its message."""
        try:
            self.first = self.order.take(self.epoch, self.positions.copy())
        except IndexPlanError as error:
            return str(error)
        except Exception:  # whatever a user's order raises: the laws will run into it again
            return ""
        return ""

    @once
    def num_units(self) -> int:
        """How many units the epoch has."""
        return self.order.num_units(self.epoch)

    @once
    def positions(self) -> Int64:
        """The positions that are looked at, rising."""
        chosen = _chosen(self.num_units)
        if self.order.traits.deals_bins:
            mixed = np.random.default_rng(0).permutation(chosen)
            sizes = np.diff(self.order.offsets(self.epoch, mixed))
            if len(sizes) == len(mixed) and sizes.sum() > MOST_READS:
                few = max(1, int((np.cumsum(sizes) <= MOST_READS).sum()))
                chosen = np.sort(mixed[:few])
        return chosen

    @property
    def whole(self) -> bool:
        """Whether all positions are looked at."""
        return len(self.positions) == self.num_units

    @once
    def offsets(self) -> Int64:
        """Where the units at `positions` start among `indices`."""
        return self.order.offsets(self.epoch, self.positions.copy())

    @once
    def indices(self) -> Int64:
        """What is read at `positions`, one by one."""
        return self.order.take(self.epoch, self.positions.copy())

    @once
    def spans(self) -> Int64:
        """Which part of each of `indices` is read, if the order cuts samples."""
        return self.order.spans(self.epoch, self.positions.copy())

    @once
    def candidates(self) -> tuple[Int64, NDArray[np.bool_]]:
        """The samples to look at, rising, and which of them are read too often to list.

        All samples if they are few, else those read and some others.
        """
        n = self.order.num_samples
        some = np.arange(min(n, ALL))
        if n > ALL:
            others = np.random.default_rng(0).integers(n, size=SINGLES)
            some = np.unique(np.concatenate([self.indices, others, np.array([0, n - 1])]))
            some = some[:: -(-len(some) // ALL)]
        often = np.zeros(len(some), bool)
        if not self.whole:  # where there may be any number of positions to find
            counts = self.order.count(self.epoch, some.copy())
            often = counts > MOST_OF_ONE if counts.shape == some.shape else often
        return some, often

    @property
    def samples(self) -> Int64:
        """The samples that are located, rising."""
        some, often = self.candidates
        return some[~often]

    @once
    def found(self) -> tuple[Int64, Int64]:
        """What `locate_all` says of `samples`."""
        return self.order.locate_all(self.epoch, self.samples.copy())

    @once
    def reads(self) -> tuple[Int64, Int64]:
        """What `found` has to be: all reads of `samples` at positions looked at or named there."""
        named = self.found[0]
        named = named[(named >= 0) & (named < self.num_units)]
        positions, indices, offsets = self.positions, self.indices, self.offsets
        if not self.whole:
            positions = np.union1d(positions, named)
            offsets = self.order.offsets(self.epoch, positions)
            indices = self.order.take(self.epoch, positions)
        units = np.repeat(positions, np.diff(offsets))
        which = np.searchsorted(self.samples, indices)
        there = np.append(self.samples, -1)[which] == indices
        units, which = units[there], which[there]
        counts = np.bincount(which, minlength=len(self.samples))
        return units[np.lexsort((units, which))], ends(counts)

    def of(self, cuts: list[tuple[int, int]]) -> tuple[Int64, Int64]:
        """Return the samples and offsets of parts of `positions`, as each was read by itself."""
        low_high = [(self.offsets[low], self.offsets[high]) for low, high in cuts]
        parts = [self.indices[low:high] for low, high in low_high]
        sizes = [np.diff(self.offsets)[low:high] for low, high in cuts]
        none = np.arange(0)
        return np.concatenate([none, *parts]), ends(np.concatenate([none, *sizes]))

    def stretches(self) -> list[tuple[int, int]]:
        """Return the parts of `positions` that follow each other without a gap."""
        gaps = np.flatnonzero(np.diff(self.positions) != 1) + 1
        return list(pairwise([0, *gaps.tolist(), len(self.positions)]))

    def runs(self, cuts: list[tuple[int, int]]) -> tuple[Int64, Int64]:
        """Return starts and stops of parts of `positions`."""
        lows = np.array([low for low, _ in cuts], np.int64)
        after = np.append(self.positions, self.positions[-1] + 1)
        starts = after[lows]
        return starts, starts + np.array([high - low for low, high in cuts], np.int64)


def read_too_often(look: Look) -> str:
    """Say that an epoch reads some samples too often for all reads to be looked at."""
    words = f"an epoch reads some samples more than {MOST_OF_ONE} times; check a smaller order too"
    return words if any(row.candidates[1].any() for row in look.rows) else ""


def _chosen(num_units: int) -> Int64:
    """Return the positions of an epoch that are looked at."""
    if num_units <= ALL:
        return np.arange(num_units)
    rng = np.random.default_rng(0)
    starts = rng.integers(num_units - STRETCH, size=STRETCHES)
    parts = [
        np.arange(ENDS),
        np.arange(num_units - ENDS, num_units),
        np.add.outer(starts, np.arange(STRETCH)).ravel(),
        rng.integers(num_units, size=SINGLES),
    ]
    return np.unique(np.concatenate(parts))


def answers(order: Order, asked: Asked) -> dict[str, Any]:
    """Return the answers that two equal orders have in common, by question."""
    said: dict[str, Any] = {
        "to_dict()": order.to_dict(),
        "fingerprint": order.fingerprint,
        "num_samples": order.num_samples,
        "traits": asdict(order.traits),
        "stream_key": order.stream_key,
        "columns": sorted(order.columns),
    }
    if order.group_names:
        said |= {"group_names": list(order.group_names), "shares_of": order.shares_of}
    for epoch, positions, samples in asked:
        found, where = order.locate_all(epoch, samples)
        said |= {
            f"num_units({epoch})": order.num_units(epoch),
            f"take({epoch}, ...)": order.take(epoch, positions).tolist(),
            f"offsets({epoch}, ...)": order.offsets(epoch, positions).tolist(),
            f"locate({epoch}, ...)": order.locate(epoch, samples).tolist(),
            f"locate_all({epoch}, ...)": [*found.tolist(), *where.tolist()],
            f"count({epoch}, ...)": order.count(epoch, samples).tolist(),
        }
        if order.traits.cuts_samples:
            said[f"spans({epoch}, ...)"] = order.spans(epoch, positions).tolist()
    return said


def ends(counts: Int64) -> Int64:
    """Return where parts of these lengths start, one after another, and where the last ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


def few(numbers: Any) -> str:
    """Write the first numbers of an array."""
    row = np.asarray(numbers).tolist()
    if not isinstance(row, list) or len(row) <= 8:
        return str(row)
    return f"[{', '.join(map(str, row[:8]))}, ...]"


def _first_difference(there: Any, here: Any) -> tuple[str, str, str]:
    """Return the first place that differs and the two values there, or both whole values."""
    if isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        at = next(i for i, pair in enumerate(zip(there, here, strict=True)) if pair[0] != pair[1])
        return f"[{at}]", shown(there[at]), shown(here[at])
    return "", shown(there), shown(here)
