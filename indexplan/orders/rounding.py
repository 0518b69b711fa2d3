"""A total divided among weights, in whole numbers."""

from __future__ import annotations

from collections.abc import Sequence


def largest_remainder(total: int, weights: Sequence[int]) -> list[int]:
    """Return how many of `total` each weight gets: by largest remainder, ties to the first."""
    whole = sum(weights)
    sizes, rests = zip(*(divmod(total * weight, whole) for weight in weights), strict=True)
    by_rest = sorted(range(len(sizes)), key=rests.__getitem__, reverse=True)  # keeps ties in order
    shares = list(sizes)
    for i in by_rest[: total - sum(sizes)]:
        shares[i] += 1
    return shares
