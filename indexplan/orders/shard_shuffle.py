"""Shuffled shards, read in lanes that each belong to one node: shard-shuffle-v1."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from indexplan import kernels
from indexplan.errors import integer, invalid
from indexplan.once import latest, once
from indexplan.orders.base import Int64, Order
from indexplan.orders.columns import BLOCK, INTEGERS, Column, Kept
from indexplan.orders.fields import SEED, flag, whole
from indexplan.orders.registry import register
from indexplan.seeds import LANES, PIECES, SHARDS

GRIDS = ("epoch", "stream")
# Number of epochs whose rows are kept: 16 bytes a shard, up to 48 if sticky, and twice that once
# samples are located in the epoch.
EPOCHS_AT_HAND = 3
PLACES = 64  # places of each lane in a stripe, by default


class ByPosition(NamedTuple):
    """The shuffled shards, end to end: at places from edges[k] on, sample place + deltas[k]."""

    edges: Int64
    deltas: Int64


class BySample(NamedTuple):
    """The same shards by rising sample: from sample firsts[k] on, place sample - deltas[k]."""

    firsts: Int64
    deltas: Int64


@register
@dataclass(frozen=True, eq=False)
class ShardShuffle(Order):
    """Shuffles shards and the samples in them, so that each node downloads only its part of them.

    For datasets in shards of any size that many nodes read. In each epoch the shuffled shards are
    laid end to end, and cut into `lanes` of nearly equal size. The lanes are read side by side: a
    *stripe* is one round over them, with `stripe / lanes` samples from each. A rank's share of a
    step is an interval of a stripe. So, if you choose lanes and stripe as below, each node reads
    from the same lanes in every stripe and needs only their shards, while a global batch mixes
    `lanes * global batch / stripe` lanes. docs/shards.md helps you choose the numbers, and
    `traffic` shows what nodes download.

    Parameters
    ----------
    sizes : array_like of int, shape (num_shards,), Column, path of a .npy file, or Shards
        Number of samples in each shard, 0 or more; their sum is at least 1, and sum + stripe <
        2**63. The dataset's samples are numbered shard after shard.
    lanes : int, default 64
        1 <= lanes < 2**32. Choose a multiple of (number of nodes) * stripe / (global batch).
    stripe : int, optional
        Samples in a stripe, a multiple of `lanes`; 64 * lanes by default. Choose a multiple of
        every global batch of the run.
    window : int, default 2
        How many shards of a lane are shuffled together, counted in shards of mean size; 1 <= window
        < 2**32.
    sticky : bool, default False
        Whether lanes keep their shards in all epochs, so that nodes with storage download them only
        once. If so, only the order inside a lane changes from epoch to epoch.
    grid : {"epoch", "stream"}, default "epoch"
        Where stripes start. "epoch": at each epoch's start. "stream": at every multiple of `stripe`
        in the stream of all epochs, for remainder="carry", whose steps run from epoch to epoch.
    seed : int, default 0
        0 <= seed < 2**128.

    Raises
    ------
    IndexPlanError
        If a number is out of range, or stripe is not a multiple of lanes.

    Examples
    --------
    >>> order = ShardShuffle([40, 0, 25, 60, 31], lanes=2, stripe=8, window=1, seed=1)
    >>> order.num_samples
    156
    >>> order.take(0, 0, 8)  # a stripe: four samples of one lane, then four of the other
    array([151, 132, 140, 155,  54,  80,  61,  64])
    """

    sizes: Kept
    _: KW_ONLY
    lanes: int = field(default=64, metadata=whole(1, 2**32, "leave it out for 64"))
    stripe: int = None  # type: ignore[assignment]  # 64 * lanes is filled in
    window: int = field(default=2, metadata=whole(1, 2**32, "leave it out for 2"))
    sticky: bool = field(default=False, metadata=flag(False))
    grid: str = "epoch"
    seed: int = field(default=0, metadata=SEED)

    algorithm = "shard-shuffle-v1"

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes, num_samples = sizes_of(self.sizes)
        cure = f"leave it out for {PLACES} times the lanes"
        stripe = PLACES * self.lanes if self.stripe is None else self.stripe
        stripe = integer("stripe", stripe, 1, 2**63 - num_samples, cure)
        if stripe % self.lanes:
            raise invalid("stripe", f"a multiple of lanes, {self.lanes}", stripe, cure)
        if not isinstance(self.grid, str) or self.grid not in GRIDS:
            cure = 'leave it out, or use "stream" in a plan with remainder="carry"'
            raise invalid("grid", "epoch or stream", self.grid, cure)
        vars(self).update(sizes=sizes, num_samples=num_samples, stripe=stripe)

    @property
    def shard_sizes(self) -> Column:
        """Samples in each shard."""
        return self.sizes

    @once
    def _firsts(self) -> Int64:
        """The first sample of each shard, and the number of samples."""
        firsts = np.zeros(len(self.sizes) + 1, np.int64)
        np.cumsum(self.sizes.array, out=firsts[1:])
        self.sizes.check_file()
        return firsts

    def _grid(self, epoch: int) -> Int64:
        """Return what kernels need to know of an epoch's lanes, stripes and windows."""
        n, lanes, stripe = self.num_samples, self.lanes, self.stripe
        shift = epoch * n % stripe if self.grid == "stream" else 0
        turn = stripe // lanes
        window = self.window * -(-n // len(self.sizes))
        window = min(-(-window // turn) * turn, 2**63 - 1)  # else it would straddle stripes
        return np.array([n, shift, turn, lanes, window], np.int64)

    @latest(EPOCHS_AT_HAND)
    def _row_by_sample(self, epoch: int) -> BySample:
        """Return the row of an epoch, by sample."""
        edges, deltas = self._row(epoch)
        firsts, rows = kernels.sorting.sort_rows(edges[:-1] + deltas, self.num_samples.bit_length())
        return BySample(firsts, deltas[rows])

    @latest(EPOCHS_AT_HAND)
    def _row(self, epoch: int) -> ByPosition:
        """Return the row of an epoch."""
        if not self.sticky:
            return self._slots(epoch)
        slots = self._slots(0)  # of the shards that lanes keep in all epochs
        most = 3 * len(slots.deltas)  # a shard may end one lane, fill others, and start another
        edges, deltas = np.empty(most + 1, np.int64), np.empty(most, np.int64)
        key = self._key_words(PIECES, epoch, 2)
        num = kernels.shard_shuffle.reorder_pieces(*slots, self._grid(epoch), key, edges, deltas)
        return ByPosition(edges[: num + 1].copy(), deltas[:num].copy())

    @latest(EPOCHS_AT_HAND)
    def _slots(self, epoch: int) -> ByPosition:
        """Return the row of shards that the key words of an epoch give."""
        num = len(self.sizes)
        words = self._key_words(SHARDS, epoch, 2 * kernels.feistel.num_rounds(num))
        edges, deltas = np.empty(num + 1, np.int64), np.empty(num, np.int64)
        held = kernels.shard_shuffle.lay_out(self._firsts, words, edges, deltas)
        return ByPosition(edges[: held + 1], deltas[:held])

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        key = self._key_words(LANES, epoch, 2)
        kernels.shard_shuffle.deal_runs(
            self._grid(epoch), key, *self._row(epoch), starts, stops, out
        )

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        firsts, deltas = self._row_by_sample(epoch)
        places = indices - deltas[np.searchsorted(firsts, indices, "right") - 1]
        out = np.empty(len(indices), np.int64)
        kernels.shard_shuffle.find_places(
            self._grid(epoch), self._key_words(LANES, epoch, 2), places, out
        )
        return np.arange(len(indices)), out


def sizes_of(values: Any) -> tuple[Column, int]:
    """Return the sizes of shards as a column, and their sum."""
    column, total = Column.of(getattr(values, "sizes", values), INTEGERS, "sizes"), 0
    for begin in range(0, len(column), BLOCK):
        block = column.array[begin : begin + BLOCK]
        if block.min() < 0:
            at = begin + int(np.argmax(block < 0))
            cure = "pass how many samples each shard holds"
            raise invalid(f"the size of shard {at}", "0 or more", int(column.array[at]), cure)
        total += sum(block.tolist())
    column.check_file(gone=True)
    if not 1 <= total < 2**63:
        cure = "pass how many samples each shard holds"
        raise invalid("the sum of sizes", "from 1 to 2**63 - 1", total, cure)
    return column, total
