"""Weights as whole numbers: shares in exactly their proportions, or parts of a total."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from indexplan.errors import few, integer, invalid
from indexplan.orders.arguments import as_written

WHOLE = 2**62  # shares are exact if their sum is less
MOST_PHASES = 2**12
CURE = 'pass {"web": 0.7, "code": 0.3}, or rising phases [(0, {...}), (10**9, {...})]'

SharesFrom = tuple[int, tuple[int, ...]]  # the unit of the run at which it begins, and its shares


def integers(weights: Sequence[int | Fraction]) -> tuple[int, ...]:
    """Return weights as the smallest integers in the same proportions."""
    scale = math.lcm(*[weight.denominator for weight in weights])
    shares = [weight.numerator * (scale // weight.denominator) for weight in weights]
    common = math.gcd(*shares) or 1
    return tuple([share // common for share in shares])


def phases_of(weights: Any, names: Sequence[str]) -> tuple[SharesFrom, ...]:
    """Return phases of weights, or the weights of a whole run, as (place, shares) of each phase.

    Raises
    ------
    IndexPlanError
        If weights are not given for exactly the names, are out of range or all 0; or if places do
        not start at 0 and rise.
    """
    phases: list[SharesFrom] = []
    try:
        pairs = [(0, weights)] if isinstance(weights, Mapping) else weights
        rows = [(place, row) for place, row in pairs]
    except Exception:  # whatever a user's class raises
        rows = []
    if not 0 < len(rows) <= MOST_PHASES:
        rule = f"a number for each source, or 1 to {MOST_PHASES} phases (place, numbers)"
        raise invalid("weights", rule, weights, CURE)
    for place, row in rows:
        least, stop = (phases[-1][0] + 1, 2**63) if phases else (0, 1)
        begin = integer("the place of a phase of weights", place, least, stop, CURE)
        phases.append((begin, _shares(_numbers(row, names))))
    return tuple(phases)


def _numbers(row: Any, names: Sequence[str]) -> Sequence[int | Fraction]:
    """Return the weights of a phase, by name or, as a dict form holds them, integers in a row."""
    if isinstance(row, Mapping):
        cure = "give each source a weight, which may be 0"
        if odd := sorted(map(str, set(row) ^ set(names))):
            raise invalid("the names of weights", f"those of the sources, {few(names)}", odd, cure)
        return [as_written(f"the weight of {name!r}", row[name], cure) for name in names]
    right = isinstance(row, list | tuple) and len(row) == len(names)
    if not right or {*map(type, row)} != {int} or min(row) < 0:
        raise invalid("shares", f"{len(names)} integers of at least 0", row, CURE)
    return row  # type: ignore[no-any-return]


def _shares(numbers: Sequence[int | Fraction]) -> tuple[int, ...]:
    """Return the shares of a phase.

    Weights whose smallest integers are too large together are scaled down to a sum of `WHOLE` / 2
    and rounded down, but never to 0.
    """
    exact = integers(numbers)
    whole = sum(exact)
    if not whole:
        raise invalid("the sum of weights", "above 0", whole, CURE)
    if whole < WHOLE:
        return exact
    return integers([max(1, each * (WHOLE // 2) // whole) if each else 0 for each in exact])


def largest_remainder(total: int, weights: Sequence[int]) -> list[int]:
    """Return how many of `total` each weight gets: by largest remainder, ties to the first."""
    whole = sum(weights)
    sizes, rests = zip(*(divmod(total * weight, whole) for weight in weights), strict=True)
    by_rest = sorted(range(len(sizes)), key=rests.__getitem__, reverse=True)  # keeps ties in order
    shares = list(sizes)
    for i in by_rest[: total - sum(sizes)]:
        shares[i] += 1
    return shares
