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

from typing import Any

import numpy as np

import indexplan as ip
from benchmarks.contenders.planners import RIVALS

WINDOW, PAIRS = 256, 2**16
SIZES = (2**20, 10**6)
AWKWARD = (65_537, 262_145, 1_048_577)
SEEDS = (1, 2, 3)
BLOCKS = "indexplan.BlockShuffle"


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


def orders() -> dict[str, Any]:
    """Return every order that can be had here: name -> function of (n, seed)."""
    found: dict[str, Any] = {}
    for rival in RIVALS:
        if rival.order_name:
            try:
                found[rival.order_name] = rival.load().order
            except ImportError:
                continue  # the report's list of rivals says so
    # Streaming's shuffle and this one keep shards together on purpose, so they are a pair.
    found[BLOCKS] = lambda n, seed: ip.BlockShuffle(n, block_size=4096, window=64, seed=seed).take(
        0, 0, n
    )
    return found


def measure(*, quick: bool) -> list[dict[str, Any]]:
    """Return the three tests of every order, and how far from 1 chance may be, as rows."""
    found = tests(quick=quick)
    bands = {key: noise(found, key) for key in ("variance", "xors")}
    rows: list[dict[str, Any]] = [{"table": "chance", "seeds": found["seeds"], **bands}]
    for order in found["rows"]:
        row = {"table": "quality", "who": order["name"]}
        for title, key in {"label counts": "variance", "xor": "xors"}.items():
            row |= {f"{title}, {NAMES.get(n, n)}": order[key][str(n)] for n in found["sizes"]}
        row |= {f"each once, {n:,}": order["bijection"][str(n)] for n in found["awkward"]}
        rows.append(row)
    return rows


NAMES = {2**20: "2**20", 10**6: "1e6"}


def tests(*, quick: bool) -> dict[str, Any]:
    """Return the three tests of every order, and what random orders give in the first two."""
    sizes, awkward = (SIZES[:1], AWKWARD[:1]) if quick else (SIZES, AWKWARD)
    seeds = SEEDS[:1] if quick else SEEDS
    random = np.random.default_rng(12345)
    fields: dict[str, Any] = {"sizes": sizes, "awkward": awkward, "seeds": len(seeds)}
    # 16 shuffles give the mean, and the spread that tells noise from fault.
    shuffles = {n: [random.permutation(n) for _ in range(4 if quick else 16)] for n in sizes}
    expected = {n: float(np.mean([distinct_xors(s) for s in shuffles[n]])) for n in sizes}
    fields["random"] = [
        {
            "n": n,
            "variance": [variance_ratio(s) for s in shuffles[n]],
            "xors": [distinct_xors(s) / expected[n] for s in shuffles[n]],
        }
        for n in sizes
    ]
    del shuffles
    fields["rows"] = []
    for name, order in orders().items():
        row: dict[str, Any] = {"name": name, "variance": {}, "xors": {}, "bijection": {}}
        for n in sizes:
            drawn = [order(n, seed) for seed in seeds]
            row["variance"][str(n)] = float(np.mean([variance_ratio(one) for one in drawn]))
            row["xors"][str(n)] = (
                float(np.mean([distinct_xors(one) for one in drawn])) / expected[n]
            )
        for n in awkward:
            row["bijection"][str(n)] = is_bijection(order(n, seeds[0]), n)
        fields["rows"].append(row)
        if name.startswith("indexplan"):
            assert all(row["bijection"].values()), row
    return fields


def noise(data: dict[str, Any], key: str) -> float:
    """Return how far from 1 a random order's mean over the seeds may be: four deviations."""
    spread = max(float(np.std(row[key], ddof=1)) for row in data["random"])
    return 4 * spread / float(np.sqrt(data["seeds"]))
