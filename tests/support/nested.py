"""A strategy for orders inside orders, of any kinds, up to three deep."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from hypothesis import strategies as st

import indexplan as ip

labels = st.lists(st.integers(0, 3), min_size=1, max_size=20)
weights = st.lists(st.integers(1, 5), min_size=1, max_size=20)
small, seeds = st.integers(1, 20), st.integers(0, 9)

LEAVES = st.one_of(
    st.builds(ip.Shuffle, small, seeds),
    st.builds(ip.BlockShuffle, small, st.integers(1, 5), st.integers(1, 3), seeds),
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
    """Draw a mixture of up to three orders, no two of which read in step."""
    orders = draw(st.lists(inside, min_size=1, max_size=3, unique_by=lambda o: o.fingerprint))
    drawn = [set(order.ip_draws) for order in orders]
    if any(one & two for one, two in combinations(drawn, 2)):  # in step
        orders, drawn = orders[:1], drawn[:1]
    sources = {f"s{i}": order for i, order in enumerate(orders)}
    weights = [draw(st.integers(1, 4)) for _ in sources]
    phases = [(0, dict(zip(sources, weights, strict=True)))]
    if draw(st.booleans()):
        phases.append((draw(st.integers(1, 50)), dict.fromkeys(sources, 1)))
    taken = {each[2] for draws in drawn for each in draws}
    seed = draw(st.integers(10, 2**128 - 1).filter(lambda seed: seed not in taken))
    return ip.Mixture(sources, weights=phases, epoch_size=draw(small), seed=seed)


def over(inside: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy for an order over one or more others."""
    return st.one_of(
        mixtures(inside),
        st.builds(ip.Epochs, inside, st.integers(1, 30)),
        st.builds(lambda o, c, w: ip.Repeat(o, c, c * w), inside, st.integers(1, 3), small),
        st.builds(
            lambda o: ip.Subset(o, range(2, 2 + o.num_samples)[::-1], o.num_samples + 4), inside
        ),
    )


NESTED = over(LEAVES) | over(over(LEAVES)) | over(over(over(LEAVES)))
