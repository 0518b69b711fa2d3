"""Orders that break one law of reading each, by a line or two, as mistakes do, and what is said.

None is registered: a test does so for as long as it lasts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

import indexplan as ip
from indexplan.orders import Traits, Units
from indexplan.orders.units import expand
from tests.support.bins import at

Int64 = NDArray[np.int64]
N = 30


@dataclass(frozen=True, eq=False)
class Good(ip.Order):
    """Sample `position + epoch + shift`, modulo the number of samples: right in all it says."""

    num_samples: int
    shift: int = 0

    algorithm = "test-kit-good-v1"

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        out[:] = (expand(starts, stops) + epoch + self.shift) % self.num_samples

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        return at((indices - epoch - self.shift) % self.num_samples)


class Planted(NamedTuple):
    """An order that breaks a law, and what has to be said of it."""

    order: Any
    law: str
    got: str
    num_samples: Any = N
    register: bool = True


PLANTED: list[Planted] = []
ANY = Traits(reads="any")
BINS = Traits(deals_bins=True)


def planted(
    law: str, got: str, *, register: bool = True, n: Any = N, **options: Any
) -> Callable[[type], Any]:
    """Note an order that breaks a law, and what is said of it; twice for few and many samples."""

    def noted(kind: type) -> Any:
        kind.algorithm = f"test-kit-{kind.__name__.lower()}-v1"  # type: ignore[attr-defined]
        made = "__dataclass_params__" in vars(kind)  # it was noted before
        order = kind if made else dataclass(frozen=True, **{"eq": False, **options})(kind)
        PLANTED.append(Planted(order, law, got, n, register))
        return order

    return noted


@dataclass(frozen=True, eq=False)
class Heavy(Good):
    """Bins of 1,024 samples each."""

    algorithm = "test-kit-heavy-v1"
    traits = BINS

    def num_units(self, epoch: int) -> int:
        return self.num_samples // 1024

    def deal(self, epoch: int, starts: Int64, stops: Int64) -> Units:
        samples = expand(starts * 1024, stops * 1024) + self.shift
        return Units(samples, np.full(len(samples) // 1024, 1024))

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        return np.arange(len(indices)), indices // 1024


class Binned(Good):
    """Bins of one sample each."""

    traits = BINS

    def deal(self, epoch: int, starts: Int64, stops: Int64) -> Units:
        samples = (expand(starts, stops) + epoch + self.shift) % self.num_samples
        return Units(samples, np.ones_like(samples))


@planted("have valid num_samples, stream_key, traits and groups", "stream_key -1")
class WrongKey(Good):
    stream_key = -1  # type: ignore[assignment]


@planted(
    "have valid num_samples, stream_key, traits and groups",
    f"num_samples {np.int64(N)!r}",
    n=np.int64(N),
)
class NumPyNumber(Good):
    def __post_init__(self) -> None:
        """Check nothing, where `Order` would make it Python's."""


@planted("have valid num_samples, stream_key, traits and groups", "traits {'reads': 'once'}")
class DictOfTraits(Good):
    traits = {"reads": "once"}  # type: ignore[assignment]  # noqa: RUF012


class InGroups(Good):
    """Samples in two groups, which are equally often aimed at."""

    group_names = ("low", "high")

    def group(self, indices: Int64) -> Int64:
        return indices * 2 // self.num_samples

    def aim(self, epoch: int, start: int, stop: int) -> Any:
        return np.array([0.5, 0.5])


@planted("have valid num_samples, stream_key, traits and groups", "group_shares(0, 0, 30) [")
class Overfull(InGroups):
    def aim(self, epoch: int, start: int, stop: int) -> Any:
        return np.array([1.0, 1.0])


@planted("have valid num_samples, stream_key, traits and groups", "group 2 of sample ")
class Elsewhere(InGroups):
    def group(self, indices: Int64) -> Int64:
        return super().group(indices) + 1


@planted("have valid num_samples, stream_key, traits and groups", "shares_of 'tokens'")
class Vague(InGroups):
    shares_of = "tokens"  # type: ignore[assignment]


@planted(
    "have a whole number of units in each epoch, at least one",
    "30 in epoch 0, and 29 in epoch 1, though its traits say constant_num_units",
)
class Shrinking(Good):
    def num_units(self, epoch: int) -> int:
        return self.num_samples - epoch


@planted("have a whole number of units in each epoch, at least one", "num_units(0) 0")
class Empty(Good):
    def num_units(self, epoch: int) -> int:
        return 0


@planted(
    "cut what it reads into units by offsets that rise from 0",
    "2 samples at position 0 of epoch 0, though its traits do not say deals_bins",
)
class SecretBins(Good):
    def ip_offsets(self, epoch: int, starts: Int64, stops: Int64) -> Int64:
        return super().ip_offsets(epoch, starts, stops) * 2


@planted(
    "cut what it reads into units by offsets that rise from 0",
    "offsets [1, 2, 3, 4, 5, 6, 7, 8, ...] of 30 units of epoch 0",
)
class OffsetsFromOne(Binned):
    def ip_offsets(self, epoch: int, starts: Int64, stops: Int64) -> Int64:
        return super().ip_offsets(epoch, starts, stops) + 1


ALONE = "write to all of out, and to nothing else"


@planted(ALONE, "a number of out that it left as it was, in epoch 0")
class Hole(Good):
    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        before = out[-1:].copy()
        super().fill(epoch, starts, stops, out)
        out[-1:] = before


@planted(ALONE, "a number that it wrote after out, in epoch 0")
class TooFar(Good):
    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        super().fill(epoch, starts, stops, out)
        if out.base is not None:  # where there is something behind it, as for a build's blocks
            as_strided(out, (len(out) + 1,))[-1] = 0


@planted(ALONE, "starts or stops that it changed, in epoch 0")
class ChangesStarts(Good):
    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        super().fill(epoch, starts, stops, out)
        starts += 1


@planted(
    ALONE,
    "ValueError in epoch 0 (could not broadcast input array from shape (29,) into shape (30,))",
)
class Raises(Good):
    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        out[:] = expand(starts, stops)[1:]


@planted(ALONE, "other samples from deal in epoch 0 after they were written to")
class Keeps(Binned):
    """Deals an array that it keeps."""

    kept: ClassVar[dict[Any, Units]] = {}

    def deal(self, epoch: int, starts: Int64, stops: Int64) -> Units:
        asked = self.num_samples, epoch, starts.tobytes(), stops.tobytes()
        if asked not in self.kept:
            self.kept[asked] = super().deal(epoch, starts, stops)
        return self.kept[asked]


@planted(ALONE, "sizes from deal in epoch 0 that are int32 of shape (30,), not int64 of (30,)")
class SmallSizes(Binned):
    def deal(self, epoch: int, starts: Int64, stops: Int64) -> Units:
        units = super().deal(epoch, starts, stops)
        return units._replace(sizes=units.sizes.astype(np.int32))


@planted("read samples from 0 to num_samples - 1", "30 in epoch 0")
class OneMore(Good):
    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        super().fill(epoch, starts, stops, out)
        out += 1


SPANS = "say which part of each sample it reads, if it cuts some"


class Halves(Binned):
    """Reads the tokens [position, position + 2) of each sample."""

    traits = Traits(deals_bins=True, cuts_samples=True)

    def deal(self, epoch: int, starts: Int64, stops: Int64) -> Units:
        units = super().deal(epoch, starts, stops)
        return units._replace(spans=self.parts(expand(starts, stops), starts))

    def parts(self, positions: Int64, starts: Int64) -> Int64:
        return np.add.outer(positions, [0, 2])


@planted(SPANS, "[0, 0] in epoch 0")
class NoTokens(Halves):
    def parts(self, positions: Int64, starts: Int64) -> Int64:
        return super().parts(positions, starts) // [1, 3]


@planted(SPANS, "int64 of shape (60,) from spans in epoch 0, for 30 samples")
class FlatSpans(Halves):
    def parts(self, positions: Int64, starts: Int64) -> Int64:
        return super().parts(positions, starts).ravel()


@planted(SPANS, "others from spans(0, [0], [30]) than one by one")
class SpansOfTheFirst(Halves):
    def parts(self, positions: Int64, starts: Int64) -> Int64:
        return super().parts(positions, starts) * 0 + [0, len(starts)]


AGAIN = "answer the same when it is asked again"


@planted(AGAIN, "[0, 1, 2, 3, 4, 5, 6, 7, ...] and then [1, 2, 3, 4, 5, 6, 7, 8, ...] in epoch 0")
class RemembersAnEpoch(Good):
    last: ClassVar[list[int]] = [0]

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        self.last[0] = max(self.last[0], epoch)
        super().fill(self.last[0], starts, stops, out)


SAME = "read the same in whatever intervals it is asked for"


@planted(SAME, "14 at place 10 of take(0, [4, 4], [14, 14]), and 4 by itself")
class FirstIntervalOnly(Good):
    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        start = starts[:1]
        super().fill(epoch, start, start + len(out) * len(start), out)


@planted(SAME, "29 at place 0 of take(0, [29, 14], [29, 15]), and 14 by itself")
class EmptyIntervals(Good):
    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        read = expand(starts, np.maximum(stops, starts + 1))[: len(out)]
        out[:] = (read + epoch) % self.num_samples


@planted(SAME, "1 at place 0 of fill(1, [0], [30]), and 0 by itself")
class AnotherTake(Good):
    def ip_take(self, epoch: int, starts: Int64, stops: Int64) -> Int64:
        return expand(starts, stops)

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        return at(indices.copy())


@planted(SAME, "[30] from offsets(0, [30], [30]), and [0] one by one")
class AbsoluteOffsets(Binned):
    """Offsets in the epoch, instead of in what was asked for."""

    def ip_offsets(self, epoch: int, starts: Int64, stops: Int64) -> Int64:
        return np.append(expand(starts, stops), stops[-1:] if len(stops) else [0])


@planted("answer the same in several threads", "")
class Scratch(Good):
    memory: ClassVar[Int64] = np.zeros(10**4, np.int64)

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        mine = self.memory[: len(out)]
        super().fill(epoch, starts, stops, mine)
        time.sleep(0.001)  # something that lets other threads run
        out[:] = mine


OFTEN = "read each sample as often as its traits say"


class Halved(Good):
    """Every other sample, twice."""

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        super().fill(epoch, starts, stops, out)
        out -= out % 2

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        both = np.sort((np.stack([indices, indices + 1], 1) - epoch) % self.num_samples, 1)
        even = indices % 2 == 0
        return np.repeat(np.flatnonzero(even), 2), both[even].ravel()


@planted(OFTEN, "sample 0 more than once in epoch 0", n=10**4)
@planted(OFTEN, "sample 0 more than once in epoch 0")
class Twice(Halved):
    pass


@planted(OFTEN, "sample 0 more than once in epoch 0")
class TwiceAtMostOnce(Halved):
    traits = Traits(reads="at most once")


@planted(OFTEN, "9999 reads in epoch 0", n=10**4)
@planted(OFTEN, "no read of sample 29 in epoch 0")
class LeavesOut(Good):
    def num_units(self, epoch: int) -> int:
        return self.num_samples - 1

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        found = super().find(epoch, indices)[1]
        return at(np.where(found < self.num_samples - 1, found, -1))


LOCATE = "locate all reads of a sample, at rising positions"


@planted(LOCATE, "sample 0 of epoch 1 at [0], but take reads it at [9999]", n=10**4)
@planted(LOCATE, "sample 0 of epoch 1 at [0], but take reads it at [29]")
class ForgetsTheEpoch(Good):
    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        return at(super().find(0, indices)[1])


@planted(LOCATE, "sample 0 of epoch 0 at [0], but take reads it at [0, 1]")
class NamesOne(Halved):
    traits = ANY

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        which, positions = super().find(epoch, indices)
        return which[::2], positions[::2]


@planted(LOCATE, "other positions in epoch 0 for the same samples in another order")
class NeedsThemSorted(Good):
    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        return at(super().find(epoch, np.sort(indices))[1])


@planted(LOCATE, "indices in epoch 0 that locate_all changed")
class ChangesIndices(Good):
    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        indices -= epoch + 1
        return at((indices + 1) % self.num_samples)


FIRST = "locate the first read of a sample, and -1 if there is none"


@planted(FIRST, "25 for sample 24 of epoch 0, and 24 from take")
class Last(Halved):
    traits = ANY

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        which, positions = super().find(epoch, indices)
        return (which[1::2], positions[1::2]) if most == 1 else (which, positions)


@planted(FIRST, "sample 0 of epoch 0 at [0] from find with most=2, and [0, 1] from take")
class OneOfTwo(Halved):
    traits = ANY

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        which, positions = super().find(epoch, indices)
        return (which[::2], positions[::2]) if most else (which, positions)


@planted(FIRST, "sample 0 of epoch 0 at [0, 0] from find with most=2, and [0] from take")
class NamesTwice(Good):
    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        which, positions = super().find(epoch, indices)
        return (np.tile(which, 2), np.tile(positions, 2)) if most == 2 else (which, positions)


@planted("count the reads of a sample", "1 for sample 15 of epoch 0, and 0 from take")
class CountsOne(Halved):
    traits = ANY

    def tally(self, epoch: int, indices: Int64) -> Int64:
        return np.ones(len(indices), np.int64)
