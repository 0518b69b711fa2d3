"""Weights of all kinds that people write, from two sources to thousands."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.support.mixing import WHOLE, shares_of

FEW, MANY = (2, 2, 3, 4, 5, 9, 30), (140, 500, 3000)
SIZES = 1, 4, 37, 4095, 4096, 4097, 90_000, 1_000_003, 12_400_000

# From a random source and the number of sources, the weight of one.
KINDS: dict[str, Callable[[random.Random, int], Any]] = {
    "small integers": lambda drawn, _: drawn.randint(0, 9),
    "decimals": lambda drawn, _: round(drawn.random(), drawn.choice([1, 2, 4, 6])),
    "floats": lambda drawn, _: drawn.random() ** drawn.choice([1, 4]),
    "ratios": lambda drawn, _: drawn.randint(1, 7) / drawn.choice([3, 7, 9]),
    "sizes": lambda drawn, _: drawn.choice(SIZES),
    "nine orders": lambda drawn, _: int(10 ** (9 * drawn.random())),
    "far apart": lambda drawn, _: drawn.choice([1, 1e-12, 0.5, 1e-300, 1 / 7]),
    "near the most": lambda drawn, k: WHOLE // k - drawn.randint(1, 1000),
    "past the most": lambda drawn, k: drawn.randint(WHOLE // k, 5 * WHOLE),
    "in powers": lambda drawn, k: 2 ** drawn.randint(0, 60 - k.bit_length()),
}


@st.composite
def weights(draw: st.DrawFn, nums: tuple[int, ...] = FEW) -> list[Any]:
    """Draw as many weights of one kind; with zeros, if it has any."""
    kind, k = draw(st.sampled_from(sorted(KINDS))), draw(st.sampled_from(nums))
    drawn = random.Random(draw(st.integers(0, 2**32)))  # noqa: S311  lists of thousands take long
    found = [KINDS[kind](drawn, k) for _ in range(k)]
    return found if any(found) else [*found[1:], 1]


def shares(nums: tuple[int, ...] = FEW) -> st.SearchStrategy[tuple[int, ...]]:
    """Draw the shares of as many weights, as the oracle computes them."""
    return weights(nums).map(lambda each: shares_of([*map(written, each)]))


def written(weight: Any) -> Any:
    """Return a weight as it is written."""
    return repr(weight) if isinstance(weight, float) else weight
