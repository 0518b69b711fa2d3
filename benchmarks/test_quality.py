"""How random the rivals' own orders are: an order that is fast but less random is no fair rival.

Three tests that need no theory but counting, each against what a random order gives:

- *label counts*: half of the dataset has a label (index < n / 2). In windows of 256 of a random
  order, the label's count has the hypergeometric variance, nearly 64; the table has the ratio to
  it. Below 1, the order is too regular (0: each window has exactly 128); above 1, labels come in
  runs.
- *xor pairs*: among 2**16 pairs of neighbours, how many distinct values `order[2i] ^ order[2i + 1]`
  has, divided by how many a random order has. Linear ciphers repeat values here.
- *bijection*: whether each index comes exactly once, at sizes just past a power of two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from benchmarks.contenders.planners import present

WINDOW, PAIRS = 256, 2**16
SIZES = {"2**20": 2**20, "1e6": 10**6}
AWKWARD = (65_537, 262_145, 1_048_577)
SEEDS = (1, 2, 3)


def variance_ratio(order: Any) -> float:
    """Return the variance of label counts in windows, by a random order's."""
    n, marked = len(order), len(order) // 2
    whole = n // WINDOW * WINDOW
    counts = (order[:whole] < marked).reshape(-1, WINDOW).sum(axis=1)
    share = marked / n
    ideal = WINDOW * share * (1 - share) * (n - WINDOW) / (n - 1)
    return float(np.mean((counts - WINDOW * share) ** 2) / ideal)


def distinct_xors(order: Any) -> int:
    """Return how many values the exclusive or of neighbours takes."""
    pairs = order[: 2 * PAIRS].reshape(-1, 2)
    return len(np.unique(pairs[:, 0] ^ pairs[:, 1]))


def is_bijection(order: Any, n: int) -> bool:
    """Return whether every index below n comes exactly once."""
    inside = order[(order >= 0) & (order < n)]
    return len(order) == n == int((np.bincount(inside, minlength=n) == 1).sum())


def blocks(n: int, seed: int) -> Any:
    """Return an order that keeps shards together on purpose, as Streaming's does."""
    return ip.BlockShuffle(n, block_size=4096, window=64, seed=seed).take(0, 0, n)


def measure(*, quick: bool) -> list[dict[str, Any]]:
    """Return the three tests of every order, and how far from 1 chance may be, as rows.

    16 shuffles of NumPy give the mean, and the spread that tells noise from fault: four deviations.
    """
    seeds, random = SEEDS[:1] if quick else SEEDS, np.random.default_rng(12345)
    sizes, awkward = {"2**20": 2**20} if quick else SIZES, AWKWARD[:1] if quick else AWKWARD
    expected, spread = {}, {"variance": 0.0, "xors": 0.0}
    for title, n in sizes.items():
        shuffles = [random.permutation(n) for _ in range(4 if quick else 16)]
        xors = [distinct_xors(each) for each in shuffles]
        expected[title] = float(np.mean(xors))
        found = {"variance": [variance_ratio(each) for each in shuffles]}
        found["xors"] = [each / expected[title] for each in xors]
        spread = {key: max(spread[key], float(np.std(found[key], ddof=1))) for key in spread}
    bands = {key: 4 * each / len(seeds) ** 0.5 for key, each in spread.items()}
    rows: list[dict[str, Any]] = [{"table": "chance", "seeds": len(seeds), **bands}]
    orders = {each.order_name: each.load().order for each in present() if each.order_name}
    for name, order in {**orders, "indexplan.BlockShuffle": blocks}.items():
        row: dict[str, Any] = {"table": "quality", "who": name}
        for title, n in sizes.items():
            drawn = [order(n, seed) for seed in seeds]
            row[f"label counts, {title}"] = float(np.mean([variance_ratio(one) for one in drawn]))
            xors = [distinct_xors(one) for one in drawn]
            row[f"xor, {title}"] = float(np.mean(xors)) / expected[title]
        row |= {f"each once, {n:,}": is_bijection(order(n, seeds[0]), n) for n in awkward}
        once = [row[f"each once, {n:,}"] for n in awkward]
        assert not name.startswith("indexplan") or all(once), row
        rows.append(row)
    return rows


@pytest.mark.nightly
def test_quality(whole: Callable[..., Any]) -> None:
    """Count all of it."""
    whole(measure)
