"""What orders read, in the plain Python of their oracles: units of an epoch as lists.

Of an order here, only the fields are asked; orders of tests, which are plain by themselves, deal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import indexplan as ip
from tests.support import class_oracles, mixing, oracles
from tests.support.lengths import epoch_of
from tests.support.shards_oracle import Shards
from tests.support.units import units_of
from tests.support.weighted_oracle import Weighted
from tests.support.windows_oracle import Documents, Windows

Unit = Callable[[int], list[Any]]  # what is read at a position: samples, or [sample, start, stop]


def units(order: Any, epoch: int, positions: Any = None) -> list[list[Any]]:
    """Return what all units of an epoch read, or those at some positions."""
    num, unit = of(order, epoch)
    return [unit(position) for position in (range(num) if positions is None else positions)]


def of(order: Any, epoch: int) -> tuple[int, Unit]:
    """Return how many units an epoch has, and what tells each of them."""
    if type(order) in ORACLES:
        return ORACLES[type(order)](order, epoch)
    return listed(units_of(order, epoch))


def listed(row: list[list[Any]]) -> tuple[int, Unit]:
    """Return what tells the units of a list."""
    return len(row), row.__getitem__


def singles(row: list[int]) -> tuple[int, Unit]:
    """Return what tells the samples of a list, each a unit."""
    return listed([[sample] for sample in row])


def plain(column: Any) -> list[Any]:
    """Return the numbers of a column."""
    return list(column.array.tolist())


def shard_shuffle(order: Any, epoch: int) -> tuple[int, Unit]:
    """Return what shards read."""
    _, *names = Shards._fields
    return singles(Shards(plain(order.sizes), *(getattr(order, n) for n in names)).epoch(epoch))


def token_windows(order: Any, epoch: int) -> tuple[int, Unit]:
    """Return what windows of tokens read."""
    windows = windows_of(order)
    return windows.num, lambda position: [windows.start(epoch, position)]


def windows_of(order: Any) -> Windows:
    """Return the fields of windows of tokens."""
    return Windows(*(getattr(order, name) for name in Windows._fields))


def document_windows(order: Any, epoch: int) -> tuple[int, Unit]:
    """Return what windows of documents read."""
    _, *names = Documents._fields
    fields = Documents(tuple(plain(order.lengths)), *(getattr(order, name) for name in names))
    row = fields.row(epoch)

    def unit(position: int) -> list[Any]:
        return [[*piece] for piece in fields.window(row, fields.number(epoch, position))]

    return fields.num, unit


def weighted(order: Any, epoch: int) -> tuple[int, Unit]:
    """Return what weights read: those that have come into force last."""
    rows = order.weights if isinstance(order.weights, tuple) else [(0, order.weights)]
    row = [plain(weights) for since, weights in rows if since <= epoch][-1]
    oracle = Weighted(row, order.epoch_size, order.seed, order.max_repeats)
    return order.epoch_size, lambda position: [oracle.read(epoch, position)]


def balanced(order: Any, epoch: int) -> tuple[int, Unit]:
    """Return what balanced classes read."""
    num, weights = order.num_units(epoch), None if order.weights is None else plain(order.weights)
    fields = plain(order.labels), num, weights, order.seed
    return num, lambda position: [class_oracles.balanced(*fields, epoch * num + position)]


def class_batches(order: Any, epoch: int) -> tuple[int, Unit]:
    """Return what batches of classes read."""
    num = order.num_units(epoch)
    fields = plain(order.labels), order.classes, order.per_class, order.seed, order.short
    return num, lambda position: class_oracles.batch(*fields, epoch * num + position)


def mixture(order: Any, epoch: int) -> tuple[int, Unit]:
    """Return what a mixture reads: units of its sources, whose samples follow one another."""
    key, sources = mixing.key_of(order.seed), [source for _, source in order.sources]
    inside: dict[tuple[int, int], Unit] = {}  # what tells the units of a source in an epoch

    def unit(position: int) -> list[Any]:
        j, number = mixing.unit(order.weights, key, epoch * order.epoch_size + position)
        inner, at = divmod(number, sources[j].num_units(0))
        if (j, inner) not in inside:
            _, inside[j, inner] = of(sources[j], inner)
        before = sum(source.num_samples for source in sources[:j])
        return renamed([inside[j, inner](at)], lambda sample: before + sample)[0]

    return order.epoch_size, unit


def renamed(row: list[list[Any]], name: Callable[[int], int]) -> list[list[Any]]:
    """Return units with other numbers for their samples."""
    return [
        [[name(s[0]), *s[1:]] if isinstance(s, list) else name(s) for s in unit] for unit in row
    ]


def epochs(order: Any, epoch: int) -> tuple[int, Unit]:
    """Return what is read epoch after epoch, whatever those inside hold."""
    begin, stream, inner = epoch * order.epoch_size, [], 0
    while len(stream) < begin + order.epoch_size:
        stream += units(order.order, inner)
        inner += 1
    return listed(stream[begin : begin + order.epoch_size])


def repeat(order: Any, epoch: int) -> tuple[int, Unit]:
    """Return all copies of some units, span by span."""
    row, num = units(order.order, epoch), order.span // order.copies
    return listed(sum([row[at : at + num] * order.copies for at in range(0, len(row), num)], []))


def subset(order: Any, epoch: int) -> tuple[int, Unit]:
    """Return what is read under the names of a subset."""
    kept = order.indices if isinstance(order.indices, range) else plain(order.indices)
    return listed(renamed(units(order.order, epoch), lambda sample: kept[sample]))


def without(order: Any, epoch: int) -> tuple[int, Unit]:
    """Return what is left: of each group of samples nothing is read from its place on."""
    row, samples = units(order.order, epoch), iter(plain(order.samples))
    for since, position, count in order.since:
        gone = {next(samples) for _ in range(count)}
        first = 0 if since < epoch else position if since == epoch else len(row)
        left = row[:first]
        for unit in row[first:]:
            stays = [s for s in unit if (s[0] if isinstance(s, list) else s) not in gone]
            left += [stays] if stays == unit or (stays and order.cut == "piece") else []
        row = left
    return listed(row)


def batched(order: Any, epoch: int) -> tuple[int, Unit]:
    """Return successive samples in bins of one size."""
    row = sum(units(order.order, epoch), [])
    return listed([row[at : at + order.size] for at in range(0, len(row), order.size)])


def flat(order: Any, epoch: int) -> tuple[int, Unit]:
    """Return the samples of the bins inside that are full."""
    row = units(order.order, epoch)
    return singles(sum([unit for unit in row if len(unit) == order.ip_global_batch], []))


def bins(order: Any, epoch: int) -> tuple[int, Unit]:
    """Return bins by length, by group, or packed."""
    return listed(epoch_of(order, epoch))


def formula(of: Callable[..., int], *names: str) -> Callable[[Any, int], tuple[int, Unit]]:
    """Return what shuffles read, each sample by itself, by some fields."""

    def oracle(order: Any, epoch: int) -> tuple[int, Unit]:
        fields = order.num_samples, *(getattr(order, name) for name in names), epoch
        return order.num_samples, lambda position: [of(*fields, position)]

    return oracle


ORACLES: dict[type, Callable[[Any, int], tuple[int, Unit]]] = {
    ip.Sequential: lambda order, _: (order.num_samples, lambda position: [position]),
    ip.Shuffle: formula(oracles.shuffle_forward, "seed"),
    ip.LocalShuffle: formula(oracles.local_shuffle_forward, "window", "seed"),
    ip.BlockShuffle: formula(oracles.block_shuffle_forward, "block_size", "window", "seed"),
    ip.Distinct: lambda order, epoch: singles(
        class_oracles.distinct(plain(order.labels), order.batch_size, order.seed, epoch)
    ),
    ip.ShardShuffle: shard_shuffle,
    ip.TokenWindows: token_windows,
    ip.DocumentWindows: document_windows,
    ip.Weighted: weighted,
    ip.ClassBalanced: balanced,
    ip.ClassBatches: class_batches,
    ip.LengthGrouped: bins,
    ip.TokenBudget: bins,
    ip.Grouped: bins,
    ip.Packed: bins,
    ip.Mixture: mixture,
    ip.Epochs: epochs,
    ip.Repeat: repeat,
    ip.Subset: subset,
    ip.Without: without,
    ip.Batched: batched,
    ip.Flat: flat,
}
