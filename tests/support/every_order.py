"""One small order of each kind that this library registers."""

from __future__ import annotations

import numpy as np

import indexplan as ip
from indexplan.orders.registry import OURS, registered

LENGTHS = [3, 9, 2, 7, 7, 1, 12, 5, 40_000, 8, 4, 6] * 4
LABELS = [0, 1, 2, 0, 1, 0] * 8
LABELS_OF_PAIRS = [i // 2 for i in range(48)]


def every_order() -> dict[str, ip.Order]:
    """Return an order of each kind, by algorithm; fail if a kind is missing here."""
    shuffle = ip.Shuffle(48, seed=2**70)
    sources = {"a": shuffle, "b": ip.Shuffle(16, seed=1), "c": ip.LocalShuffle(9, window=4)}
    bins = {name: ip.Batched(ip.Shuffle(24, seed=seed), 12) for seed, name in enumerate("ab", 5)}
    orders = [
        ip.Batched(shuffle, 6),
        ip.BlockShuffle(48, block_size=5, window=3, seed=1),
        ip.ClassBalanced(LABELS, weights=[3, 1, 2.5], seed=1),
        ip.ClassBatches(LABELS, classes=2, per_class=3, seed=1),
        ip.Distinct(LABELS_OF_PAIRS, 12, seed=1),
        ip.DocumentWindows(LENGTHS, length=2000, block_size=4, seed=1),
        ip.Epochs(shuffle, 100),
        ip.Flat(ip.Mixture(bins, {"a": 2, "b": 1}, seed=1)),
        ip.Grouped(LABELS, 4, seed=1),
        ip.LengthGrouped(LENGTHS, 5, seed=1),
        ip.LocalShuffle(48, window=5, seed=1),
        ip.Mixture(sources, {"a": 0.5, "b": 0.3, "c": 0.2}, seed=1),
        ip.Packed(LENGTHS, 50_000, seed=1),
        ip.Repeat(shuffle, copies=3, span=12),
        ip.Sequential(48),
        ip.ShardShuffle([7, 1, 12, 28], lanes=2, stripe=4, seed=1),
        shuffle,
        ip.Split(48, {"train": 3, "val": 1}, seed=1)["train"],
        ip.Subset(ip.Shuffle(4), [5, 3, 40, 47], 48),
        ip.TokenBudget(LENGTHS, 50_000, seed=1),
        ip.TokenWindows(1000, 64, seed=1),
        ip.Weighted(np.linspace(0, 7, 48), epoch_size=60, max_repeats=4, seed=1),
        ip.Without(
            shuffle, [3, 5, 40], since=ip.Plan(shuffle, global_batch_size=9).cursor(1, step=2)
        ),
    ]
    made = {order.algorithm: order for order in orders}
    ours = {kind.algorithm for kind in registered() if kind.__module__.startswith(OURS)}
    assert ours == set(made), "an order of each kind belongs in tests/support/every_order.py"
    return made
