"""What a drawn run reads, as lists: its units, and how taking out and joining change them."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

import indexplan as ip

EPOCHS = 4
Unit = tuple[tuple[int, ...], int, int]  # its samples, its sub-epoch, and its position inside
Rows = list[list[Unit]]  # of each epoch
Place = tuple[int, int]

LENGTHS = [3, 9, 2, 7, 7, 1, 12, 5, 40, 8, 4, 6] * 3


def inner_orders(drawn: random.Random) -> ip.Order:
    """Draw an order to take samples out of."""
    num, seed = drawn.randrange(2, 60), drawn.randrange(9)
    kinds: list[Any] = [
        lambda: ip.Shuffle(num, seed=seed),
        lambda: ip.Shuffle(num, seed=seed),
        lambda: ip.BlockShuffle(num, block_size=5, window=2, seed=seed),
        lambda: ip.Sequential(num),
        lambda: ip.Subset(ip.Shuffle(num, seed=seed), range(num + 5)[5:], num + 5),
        lambda: ip.Packed(LENGTHS, 50, seed=seed),
        lambda: ip.DocumentWindows(LENGTHS, 20, seed=seed),
        lambda: ip.Weighted([1, 2, 5] * num, seed=seed),
        *3 * [lambda: mixed({"a": ip.Shuffle(num, seed=seed), "b": ip.Sequential(7)}, drawn)],
        lambda: mixed({"a": ip.Packed(LENGTHS, 50, seed=seed)}, drawn),
    ]
    made: ip.Order = drawn.choice(kinds)()
    return made


def mixed(sources: dict[str, ip.Order], drawn: random.Random) -> ip.Mixture:
    """Draw a mixture, whose epochs are not always those of its sources."""
    size = drawn.choice([None, None, drawn.randrange(2, 50)])
    return ip.Mixture(sources, dict.fromkeys(sources, 1), epoch_size=size)


def new_sources(mixture: ip.Mixture, drawn: random.Random) -> dict[str, ip.Order]:
    """Draw sources that join a mixture, one or two, or none: then only its weights change."""
    found: dict[str, ip.Order] = {}
    for number in range(len(mixture.names), len(mixture.names) + drawn.choice([0, 1, 1, 1, 2])):
        of_bins = ip.Packed(LENGTHS[: 20 + number], 40 + number, seed=number)
        of_samples = ip.Shuffle(drawn.randrange(1, 40), seed=100 + number)
        found[f"new {number}"] = of_bins if mixture.deals_bins else of_samples
    return found


def units_of(order: ip.Order, epoch: int) -> list[tuple[int, ...]]:
    """Return the samples of each unit of an epoch."""
    num = order.num_units(epoch)
    samples, offsets = order.take(epoch, 0, num).tolist(), order.offsets(epoch, 0, num).tolist()
    return [tuple(samples[a:b]) for a, b in pairwise(offsets)]


class Out(NamedTuple):
    """Samples that are taken out from a place on."""

    samples: frozenset[int]
    since: Place
    cut: str

    def changed(self, rows: Rows) -> Rows:
        """Return the rows without the samples."""
        left: Rows = []
        for epoch, row in enumerate(rows):
            kept: list[Unit] = []
            for position, (unit, part, at) in enumerate(row):
                stays = unit
                if (epoch, position) >= self.since:
                    stays = tuple(each for each in unit if each not in self.samples)
                    stays = () if self.cut == "unit" and stays != unit else stays
                kept += [(stays, part, at)] if stays or not unit else []
            left.append(kept)
        return left


class Lists(NamedTuple):
    """What the first epochs of a run are: an order, its sub-epochs, and what is taken out of it."""

    inner: ip.Order
    parts: int
    outs: tuple[Out, ...] = ()

    @property
    def inside(self) -> Rows:
        """The first epochs of the order inside, all of it."""
        rows: Rows = []
        for epoch in range(EPOCHS + 1):
            units = units_of(self.inner, epoch)
            parts = enumerate(np.array_split(np.arange(len(units)), self.parts))
            rows.append([(units[at], part, at) for part, ats in parts for at in ats.tolist()])
        return rows

    @property
    def rows(self) -> Rows:
        """What is left of them; [] if an epoch has nothing left at some time."""
        rows = self.inside
        for out in self.outs:
            rows = out.changed(rows)
            if not all(rows):
                return []
        return rows

    @property
    def excluded(self) -> set[int]:
        """The samples that are taken out."""
        return {sample for out in self.outs for sample in out.samples}


def check_joined(old: ip.Mixture, new: ip.Mixture, joined: Any, place: int) -> None:
    """Check a mixture that grew: what lies before, its weights, and that sources have no gap."""
    none = (0,) * len(joined)
    before = [(at, (*shares, *none)) for at, shares in old.weights if at < place]
    assert new.weights[:-1] == tuple(before)
    assert (new.weights[-1][0], new.names) == (place, (*old.names, *joined))
    assert new.sources[: len(old.names)] == old.sources
    assert (new.epoch_size, new.seed) == (old.epoch_size, old.seed)
    was, now = (
        [unit for epoch in range(EPOCHS + 1) for unit in units_of(each, epoch)]
        for each in (old, new)
    )
    assert was[:place] == now[:place]
    begins = np.cumsum([0, *(source.num_samples for _, source in new.sources)])
    of = np.searchsorted(begins, [unit[0] for unit in now], "right") - 1
    for number, (_, source) in enumerate(new.sources):
        mine = [unit for unit, j in zip(now, of, strict=True) if j == number]
        epochs = range(-(-len(mine) // source.num_units(0)))
        stream = [unit for epoch in epochs for unit in units_of(source, epoch)]
        begin = int(begins[number])
        assert mine == [tuple(begin + each for each in unit) for unit in stream[: len(mine)]]
