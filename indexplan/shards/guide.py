"""In which shard each sample of an order is."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from indexplan import kernels
from indexplan.errors import invalid
from indexplan.orders.base import Int64, Order
from indexplan.orders.columns import Column
from indexplan.orders.shard_shuffle import sizes_of

if TYPE_CHECKING:
    from typing import TypeAlias

    # what functions about shards accept: sizes, or an object with an attribute `sizes`
    Sized: TypeAlias = "Column | Any | None"

AT_HAND = 4  # tables that are kept, with 16 to 24 bytes per shard


class Table(NamedTuple):
    """Consecutive shards: where each starts, and a guide to find the shard of a sample.

    `firsts` has the first sample of each shard, and then the number of samples; `guide[b]` the
    shard of sample b << shift, and at its end the last shard.
    """

    firsts: Int64
    guide: Int64
    shift: int

    @property
    def num_shards(self) -> int:
        """Number of shards, including empty ones."""
        return len(self.firsts) - 1

    @property
    def num_samples(self) -> int:
        """Number of samples in all shards."""
        return int(self.firsts[-1])


def table_of(order: Order, shards: Sized) -> Table:
    """Return in which shards the samples of an order are; by default, in those that it knows."""
    if shards is None and (shards := order.shard_sizes) is None:
        rule = "the number of samples in each shard, as the order does not know it"
        raise invalid("shards", rule, None, "pass a list, an array or a column of sizes")
    table = _table(Column.of(getattr(shards, "sizes", shards), "integers", "sizes"))
    if table.num_samples != order.num_samples:
        rule = f"{order.num_samples}, the number of samples of the plan's order"
        cure = "pass the sizes of the shards of that dataset"
        raise invalid("the sum of sizes", rule, table.num_samples, cure)
    return table


@lru_cache(maxsize=AT_HAND)
def _table(column: Column) -> Table:
    sizes, num_samples = sizes_of(column)
    firsts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes.array, out=firsts[1:])
    sizes.check_file()
    # one to two parts per shard, so that among equal shards a part touches at most three
    shift = max(0, (num_samples // len(sizes)).bit_length() - 1)
    guide = np.empty((num_samples - 1 >> shift) + 2, np.int64)
    kernels.shard_reads.lay_guide(firsts, shift, guide)
    return Table(firsts, guide, shift)
