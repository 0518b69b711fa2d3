"""Strategies for lengths, and for orders that cut bins by them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

import indexplan as ip
from tests.support import packed_oracle, strata_oracle
from tests.support.strategies import seeds

LIMIT = 2**40


@st.composite
def lengths(draw: st.DrawFn, most: int = 60) -> list[int]:
    """Draw a length for each of some samples, as datasets and adversaries have them."""
    n = draw(st.integers(1, most))
    giant = st.sampled_from([100, LIMIT])
    kinds = {
        "all equal": st.integers(1, LIMIT).map(lambda length: [length] * n),
        "all at the limit": st.just([LIMIT] * n),
        "all different": st.permutations(range(1, n + 1)),
        "Zipf": st.permutations([max(1, 1000 // rank) for rank in range(1, n + 1)]),
        "one giant": st.lists(st.integers(1, 3), min_size=n - 1, max_size=n - 1).flatmap(
            lambda rest: giant.map(lambda length: [*rest, length])
        ),
        "bimodal": st.lists(st.sampled_from([10, 11, 498, 500]), min_size=n, max_size=n),
        "a few": st.lists(st.integers(1, 4), min_size=n, max_size=n),
        "any": st.lists(st.integers(1, LIMIT), min_size=n, max_size=n),
    }
    return list(draw(kinds[draw(st.sampled_from(sorted(kinds)))]))


num_buckets = st.one_of(st.integers(1, 9), st.sampled_from([64, 300]))


@st.composite
def length_grouped(draw: st.DrawFn, most: int = 60) -> ip.LengthGrouped:
    """Draw an order of bins of one size."""
    size = draw(st.one_of(st.integers(1, 12), st.sampled_from([most, 2**31 - 1])))
    fields = {"num_buckets": draw(num_buckets), "seed": draw(seeds)}
    return ip.LengthGrouped(draw(lengths(most)), size, **fields)


@st.composite
def token_budgets(draw: st.DrawFn, most: int = 60) -> ip.TokenBudget:
    """Draw an order of bins that a budget bounds."""
    row = draw(lengths(most))
    # the oracle counts up to the samples of a bin
    more = st.integers(0, 4 * max(row)).map(lambda above: max(row) + above)
    budget = draw(more) if max(row) < 10**4 else max(row) * draw(st.integers(1, 5))
    samples = draw(st.one_of(st.none(), st.integers(1, 9)))
    if samples is None and budget // min(row) > 10**4:
        samples = draw(st.integers(1, 9))
    multiple = draw(st.integers(1, samples or 9))
    return ip.TokenBudget(
        row,
        budget,
        max_samples=samples,
        multiple_of=multiple,
        num_buckets=draw(num_buckets),
        seed=draw(seeds),
    )


@st.composite
def groupeds(draw: st.DrawFn, most: int = 60) -> ip.Grouped:
    """Draw an order of bins of one group each."""
    some = draw(st.lists(st.sampled_from([0, 1, 2, 7, 300, 65535]), min_size=1, unique=True))
    groups = draw(st.lists(st.sampled_from(some), min_size=1, max_size=most))
    sizes: Any = draw(st.integers(1, 12))
    if draw(st.booleans()):
        sizes = {group: draw(st.integers(1, 12)) for group in some}
    return ip.Grouped(groups, sizes, seed=draw(seeds))


@st.composite
def packeds(draw: st.DrawFn, most: int = 60) -> ip.Packed:
    """Draw an order of bins that samples are packed into."""
    row = draw(lengths(most))
    longest = max(row)
    more = st.sampled_from([0, 1, longest // 2, longest, 5 * longest, 30 * longest])
    return ip.Packed(
        row,
        longest + draw(more),
        max_samples=draw(st.one_of(st.none(), st.integers(1, 9))),
        min_stratum=draw(st.one_of(st.just(1), st.integers(1, 9), st.just(2**32))),
        seed=draw(seeds),
    )


def binned(most: int = 60) -> st.SearchStrategy[Any]:
    """Return a strategy for orders of bins by length and by group."""
    return st.one_of(length_grouped(most), token_budgets(most), groupeds(most), packeds(most))


def epoch_of(order: Any, epoch: int) -> list[list[int]]:
    """Return the bins of an epoch by the oracles, in the order in which they are dealt."""
    if isinstance(order, ip.Packed):
        fields = order.max_length, order.max_samples, order.min_stratum
        made = packed_oracle.template(order.lengths.array.tolist(), *fields)
        return strata_oracle.dealt(*made, order.seed, epoch)
    return strata_oracle.epoch_of(strata_of(order), order.seed, epoch)


def strata_of(order: Any) -> list[tuple[list[int], int]]:
    """Return the strata of an order that cuts each into bins: samples, and those of a bin."""
    if isinstance(order, ip.Grouped):
        groups, sizes = order.groups.array.tolist(), order.batch_size
        each = dict(sizes) if isinstance(sizes, tuple) else dict.fromkeys(groups, sizes)
        return strata_oracle.grouped(groups, each)
    row = order.lengths.array.tolist()
    if isinstance(order, ip.LengthGrouped):
        return strata_oracle.length_grouped(row, order.batch_size, order.num_buckets)
    fields = order.max_tokens, order.max_samples, order.multiple_of, order.num_buckets
    return strata_oracle.token_budget(row, *fields)
