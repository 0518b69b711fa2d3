"""What the constants of packed-v1 do on real lengths: `python -m benchmarks.measure.packing`.

Each kind of lengths is packed with every tail by itself; longer samples are cut into pieces. For
each tail it prints: how many more bins it makes than the best tail, the variance of the mean length
of global batches (see `quality` in bins.py), and how many times as often as in a shuffle two
samples share a bin again. Then it prints what rules for choosing a tail lead to, over all cases.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from statistics import geometric_mean, mean
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

import indexplan as ip
from benchmarks.contenders.binners import Case, Int64
from benchmarks.measure import bins
from benchmarks.measure.real_lengths import KINDS, load
from indexplan.orders import expand, packed

MAX_LENGTHS = (2048, 4096, 8192, 32768)
TAILS = (0, 1, 2, 5, 10, 20, 40, 100)
LEAST = 20  # bins that a case must have


class Found(NamedTuple):
    """What one tail makes."""

    num: int
    variance: float
    again: float
    squares: int
    """The sum of the squares of how many samples bins have."""


def pack(lengths: Int64, max_length: int, tail: int) -> Found:
    """Pack with one tail."""
    with patch.object(packed, "TAILS", (tail,)):
        order = ip.Packed(lengths, max_length)
        num = order.num_units(0)
    dealt = [(order.take(i, 0, num), order.offsets(i, 0, num)) for i in range(2)]
    case = Case("packing", "", limit=max_length)
    variance = bins.quality(case, lengths, dealt[0], exact=True)["variance"]
    again = bins.again(*map(bins.bins_of, dealt)) * num
    counts = np.diff(dealt[0][1])
    return Found(num, variance, again, int((counts * counts).sum()))


def first(found: list[Found]) -> Found:
    """Choose the first."""
    return found[0]


def least_squares(found: list[Found]) -> Found:
    """Choose the one whose bins differ least in how many samples they have."""
    return min(found, key=lambda each: each.squares)


def summary(cases: list[dict[int, Found]], tails: tuple[int, ...], part: int, choose: Any) -> str:
    """Say what a choice comes to: of those with at most one `part`th more bins than the fewest."""
    above, chosen = [], []
    for case in cases:
        found = [case[tail] for tail in tails]
        fewest = min(each.num for each in found)
        chosen.append(choose([each for each in found if each.num <= fewest + fewest // part]))
        above.append(chosen[-1].num / min(each.num for each in case.values()) - 1)
    variances = np.array([each.variance for each in chosen])
    return (
        f"{1e4 * mean(above):>5.1f} {geometric_mean(np.maximum(variances, 0.05)):>7.2f}"
        f"{np.percentile(variances, 90):>7.2f}{variances.max():>8.2f}"
        f"{geometric_mean([each.again for each in chosen]):>8.1f}"
    )


def main() -> None:
    """Print all cases, and the choices between tails."""
    cases = []
    print(f"{'':<28}{'pieces':>8}{'bins':>7} | " + "".join(f"{f'tail {t}':>19}" for t in TAILS))
    for kind, max_length in product(KINDS, MAX_LENGTHS):
        whole = load(kind)
        counts = -(-whole // max_length)  # pieces of each, as docs/packing.md makes them
        starts = expand(np.zeros_like(counts), counts) * max_length
        lengths = np.minimum(np.repeat(whole, counts) - starts, max_length)
        if lengths.sum() < LEAST * max_length:
            continue
        found = {tail: pack(lengths, max_length, tail) for tail in TAILS}
        fewest = min(each.num for each in found.values())
        cells = [f"{e.num - fewest:>5} {e.variance:>6.2f} {e.again:>6.1f}" for e in found.values()]
        name = f"{kind}, {max_length}"
        print(f"{name:<28}{len(lengths):>8}{fewest:>7} | " + "".join(cells), flush=True)
        cases.append(found)
    choices: list[tuple[tuple[int, ...], int, Callable[[list[Found]], Found]]] = [
        (TAILS[2:], 400, first),
        (TAILS[2:], 400, least_squares),
        (TAILS, 400, first),
        *((TAILS, part, least_squares) for part in (1000, 400, 200)),
        (TAILS[-1:], 400, first),
    ]
    words = "bins above the fewest in 1e-4, variance (geometric mean, 90%, most), pairs again"
    print(f"\n{len(cases)} cases: {words}")
    for tails, part, choose in choices:
        name = f"{choose.__name__} of {', '.join(map(str, tails))}, a {part}th"
        print(f"{name:<56}{summary(cases, tails, part, choose)}")


if __name__ == "__main__":
    main()
