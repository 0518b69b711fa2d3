"""A strategy for orders inside orders, of any kinds, up to three deep."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from hypothesis import strategies as st

import indexplan as ip
from indexplan.orders.base import Int64
from tests.support.bins import Bins, Drawn

labels = st.lists(st.integers(0, 3), min_size=1, max_size=60)
weights = st.lists(st.integers(1, 5), min_size=1, max_size=40)
small, seeds = st.integers(1, 20) | st.integers(1, 60), st.integers(0, 9)
WEIGHTS = st.sampled_from([0, 1, 1, 2, 3, 7, 0.5, 0.1, 0.25, 1 / 7, 0.123456789, 1e-9, 2**60 - 1])
SUBSETS = ("range", "mask", "permutation", "list")


@ip.register
@dataclass(frozen=True, eq=False)
class FromTheEnd(ip.Shuffle):
    """A shuffle of somebody's own, made of ours, which no mixture may read as it does ours."""

    algorithm = "test-backwards-v1"

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        super().fill(epoch, starts, stops, out)
        out[:] = self.num_samples - 1 - out

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        return super().find(epoch, self.num_samples - 1 - indices, most)


PLAIN = st.one_of(
    st.builds(FromTheEnd, small, seeds),
    st.builds(ip.Shuffle, small, seeds),
    st.builds(ip.BlockShuffle, small, st.integers(1, 5), st.integers(1, 3), seeds),
    st.builds(Drawn, small, seeds),
    st.builds(Bins, small),
)
LEAVES = st.one_of(
    PLAIN,
    st.builds(ip.LocalShuffle, small, st.integers(1, 9), seeds),
    st.builds(lambda n, seed: ip.Split(n + 3, {"a": 2, "b": 1}, seed=seed)["a"], small, seeds),
    st.builds(ip.Weighted, weights, small, seeds),
    st.builds(
        lambda row, size, epoch: ip.Weighted([(0, row), (epoch, row[::-1])], size),
        weights,
        small,
        st.integers(1, 3),
    ),
    st.builds(lambda row, seed: ip.ClassBalanced(row, seed=seed), labels, seeds),
    st.builds(
        lambda row, k, seed: ip.ClassBatches(
            row, classes=1, per_class=k, seed=seed, short="repeat"
        ),
        labels,
        st.integers(1, 3),
        seeds,
    ),
)


@st.composite
def mixtures(draw: st.DrawFn, inside: st.SearchStrategy[Any]) -> ip.Mixture:
    """Draw a mixture of up to four orders, no two in step, in phases that begin anywhere."""
    orders = draw(st.lists(inside, min_size=1, max_size=4, unique_by=lambda o: o.fingerprint))
    drawn = [set(order.ip_draws) for order in orders]
    if any(one & two for one, two in combinations(drawn, 2)):  # in step
        orders, drawn = orders[:1], drawn[:1]
    sources = {f"s{i}": order for i, order in enumerate(orders)}
    places = sorted({0, *draw(st.lists(st.integers(1, 130), max_size=2))})
    rows = st.lists(WEIGHTS, min_size=len(sources), max_size=len(sources)).filter(any)
    phases = [(place, dict(zip(sources, draw(rows), strict=True))) for place in places]
    taken = {each[2] for draws in drawn for each in draws}
    seed = draw(st.integers(10, 2**128 - 1).filter(lambda seed: seed not in taken))
    size = draw(st.none() | st.integers(1, 60))
    return ip.Mixture(sources, phases, epoch_size=size, seed=seed)


@st.composite
def subsets(draw: st.DrawFn, inside: st.SearchStrategy[Any], kinds: Any = SUBSETS) -> ip.Subset:
    """Draw a subset by a range, a mask or a list, which may name samples twice."""
    order, kind = draw(inside), draw(st.sampled_from(kinds))
    num = order.num_samples
    most = num + draw(st.integers(0, 50))
    drawn = random.Random(draw(st.integers(0, 99)))  # noqa: S311  permutations take long
    kept: Any = drawn.sample(range(most), num)
    if kind == "list":
        kept = [drawn.randrange(most) for _ in range(num)]
    elif kind == "mask":
        kept = np.isin(np.arange(most), kept)
    elif kind == "range":
        step = draw(st.integers(1, max(1, (most - 1) // max(1, num - 1))))
        kept = range(0, num * step, step)[:: draw(st.sampled_from([1, -1]))]
    return ip.Subset(order, kept, most)


def layers(inside: st.SearchStrategy[Any], kinds: Any = SUBSETS) -> st.SearchStrategy[Any]:
    """Return a strategy for one layer over an order."""
    return st.one_of(
        st.builds(ip.Epochs, inside, st.integers(1, 30)),
        st.builds(lambda o, c, w: ip.Repeat(o, c, c * w), inside, st.integers(1, 3), small),
        subsets(inside, kinds),
    )


def over(inside: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy for an order over one or more others."""
    return mixtures(inside) | layers(inside)


MIXTURES = mixtures(PLAIN | layers(PLAIN))
NESTED = over(LEAVES) | over(over(LEAVES)) | over(over(over(LEAVES)))
