"""Orders inside orders, of any kinds, are orders like any other: to plans, resumes and files."""

from __future__ import annotations

import pickle
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from tests.support.examples import examples

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
        lambda row, size, epoch: ip.Weighted(row, size).updated(epoch, row[::-1]),
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


def units(order: ip.Order, epoch: int) -> list[list[int]]:
    """Return the units of an epoch, each taken by itself."""
    return [order.take(epoch, at).tolist() for at in range(order.num_units(epoch))]


@examples(30)
@given(NESTED, st.sampled_from([0, 1, 5]))
def test_nested_orders_answer_alike(order: ip.Order, epoch: int) -> None:
    """Whole, in pieces and one by one; backwards; and from what JSON and a pickle hold."""
    row = units(order, epoch)
    flat = [sample for unit in row for sample in unit]
    num = len(row)
    assert flat == order.take(epoch, 0, num).tolist()
    offsets = order.offsets(epoch, 0, num)
    assert [len(unit) for unit in row] == np.diff(offsets).tolist()
    samples = list(range(order.num_samples))
    positions, ends = order.locate_all(epoch, samples)
    found = [positions[a:b].tolist() for a, b in pairwise(ends.tolist())]
    expected = [[at for at in range(num) for s in row[at] if s == each] for each in samples]
    assert expected == found
    assert [each[0] if each else -1 for each in expected] == order.locate(epoch, samples).tolist()
    assert list(map(len, expected)) == order.count(epoch, samples).tolist()
    plan = ip.Plan(order, world_size=2, batch_size=3)
    again = ip.Plan.from_json(plan.to_json(), columns=list(order.columns.values())).order
    for copy in (again, pickle.loads(pickle.dumps(order))):  # noqa: S301 (our own)
        assert (copy, copy.fingerprint) == (order, order.fingerprint)
        assert flat == copy.take(epoch, 0, num).tolist()
    if order.group_names:
        assert 1 == pytest.approx(order.group_shares(epoch, 0, num).sum())
