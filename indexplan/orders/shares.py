"""Weights as integer shares: exact for short decimals, else rounded by largest remainder."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from indexplan.errors import integer, wrong

PERIOD = 2**16  # for weights that are not short decimals
LONGEST_PERIOD = 2**20
ERROR = 1e-7  # of a share, in units of the period
MOST_PHASES = 2**12
CURE = 'pass {"web": 0.7, "code": 0.3}, or [(0, {...}), (10**9, {...})]'

Exact = int | Decimal | Fraction
Phase = tuple[int, tuple[int, ...]]  # the unit of the run at which it begins, and its shares


def integers(weights: Sequence[Exact]) -> list[int]:
    """Return weights as the smallest integers in the same proportions."""
    ratios = [weight.as_integer_ratio() for weight in weights]
    scale = math.lcm(*(bottom for _, bottom in ratios))
    scaled = [top * (scale // bottom) for top, bottom in ratios]
    common = math.gcd(*scaled) or 1
    return [each // common for each in scaled]


def largest_remainder(total: int, weights: Sequence[int]) -> list[int]:
    """Return how many of `total` each weight gets: by largest remainder, ties to the first."""
    whole = sum(weights)
    sizes, rests = zip(*(divmod(total * weight, whole) for weight in weights), strict=True)
    by_rest = sorted(range(len(sizes)), key=rests.__getitem__, reverse=True)  # keeps ties in order
    shares = list(sizes)
    for i in by_rest[: total - sum(sizes)]:
        shares[i] += 1
    return shares


def four_decimals(weights: Sequence[Any]) -> list[int] | None:
    """Return `integers` of floats with at most four decimals; None if some have more.

    A float prints as a decimal of at most 15 digits if it is the float nearest to that decimal,
    which is how division rounds. For 30 weights this takes a fifth of the time.
    """
    if set(map(type, weights)) != {float} or not all(0 <= each <= 1e11 for each in weights):
        return None
    scaled = [round(each * 1e4) for each in weights]
    if any(whole / 1e4 != each for whole, each in zip(scaled, weights, strict=True)):
        return None
    common = math.gcd(*scaled) or 1
    return [each // common for each in scaled]


def rounded(rows: Sequence[Sequence[Any]]) -> list[tuple[int, ...] | None]:
    """Return `shares_of` each row of weights without a period; None where floats are too imprecise.

    A result is certain if it stays the same when every share changes by up to `ERROR`, a thousand
    times the error of the arithmetic and of a written float's last digit. It must be certain that
    no smaller period is exact, that every share is above 1, and which shares are rounded up. For
    4,096 rows of 30 this takes an eighth of the time.
    """
    found: list[tuple[int, ...] | None] = [None] * len(rows)
    floats = [i for i, row in enumerate(rows) if set(map(type, row)) == {float}]
    if not floats:
        return found
    with np.errstate(all="ignore"):
        each = np.array([rows[i] for i in floats])
        totals = each.sum(axis=1, keepdims=True)
        quotas = each * (PERIOD / totals)
        shares = np.where(np.isfinite(quotas), quotas, 0).astype(np.int64)
        rests = quotas - shares
        up = PERIOD - shares.sum(axis=1)
        falling = -np.sort(-rests, axis=1)
        last, after = (
            np.take_along_axis(falling, (up - less).clip(0, each.shape[1] - 1)[:, None], axis=1)
            for less in (1, 0)
        )
        sure = (totals > 1e-300) & (totals < 1e300) & (each > 0) & (quotas >= 1 + ERROR)
        sure &= (rests > ERROR) & (rests < 1 - ERROR) & (last - after > ERROR)
    shares += rests >= last
    largest = (each / totals).max(axis=1, initial=0).tolist()
    for i, certain, row, value in zip(
        floats, sure.all(axis=1).tolist(), shares.tolist(), largest, strict=True
    ):
        if certain and not _may_be_ratio(value):
            found[i] = tuple(row)
    return found


def _may_be_ratio(value: float) -> bool:
    """Return whether a float may stand for a ratio of integers of at most `PERIOD`.

    Its continued fraction decides: the last convergent with such a denominator is the nearest.
    """
    numerators, denominators, rest = (0, 1), (1, 0), value
    while True:
        whole = int(rest)
        numerators = numerators[1], whole * numerators[1] + numerators[0]
        denominators = denominators[1], whole * denominators[1] + denominators[0]
        if denominators[1] > PERIOD:
            return False
        if abs(value - numerators[1] / denominators[1]) < ERROR / PERIOD:
            return True
        rest = 1 / (rest - whole)


def shares_of(each: Sequence[int], period: int | None) -> tuple[int, ...]:
    """Return weights, the smallest integers of their proportions, as integers that sum to a period.

    Without a period, they are exact if a period of at most 2**16 allows it. Else each positive
    weight whose share would be less than 1 gets 1, and the others are rounded by largest remainder.
    """
    whole = sum(each)
    if period is None:
        period = min(whole, PERIOD)
    if period == whole:
        return tuple(each)
    left, large = period, [i for i, weight in enumerate(each) if weight]
    shares = [int(weight > 0) for weight in each]
    while True:
        of_large = sum(each[i] for i in large)
        kept = [i for i in large if left * each[i] >= of_large]
        if len(kept) == len(large):
            break
        left -= len(large) - len(kept)
        large = kept
    for i, share in zip(large, largest_remainder(left, [each[i] for i in large]), strict=True):
        shares[i] = share
    return tuple(shares)


def phases_of(weights: Any, names: Sequence[str], period: Any) -> tuple[Phase, ...]:
    """Return phases of weights, or the weights of a whole run, as (place, shares) of each phase.

    Raises
    ------
    IndexPlanError
        If weights are not given for exactly the names, are negative or all 0; if places do not
        start at 0 and rise; or if the period is too long, or too short to give each positive weight
        a unit.
    """
    if period is not None:
        period = integer("period", period, 1, LONGEST_PERIOD + 1, "leave it out")
    rule = "a number for each source, or a list of (place, numbers)"
    entries = [(0, weights)] if isinstance(weights, Mapping) else weights
    try:
        entries = [(place, row) for place, row in entries]
    except Exception:  # whatever a user's class raises
        raise wrong("weights", rule, weights, CURE) from None
    if not 0 < len(entries) <= MOST_PHASES:
        rule = f"from 1 to {MOST_PHASES} phases"
        raise wrong("weights", rule, len(entries), "leave some out" if entries else CURE)
    phases: list[Phase] = []
    sure: list[tuple[int, ...] | None] = [None] * len(entries)
    if period is None and len(entries) > 1:
        sure = rounded([_in_order(row, names) for _, row in entries])
    for (place, row), known in zip(entries, sure, strict=True):
        least = phases[-1][0] + 1 if phases else 0
        stop = 2**63 if phases else 1
        cure = "begin the first phase at 0, and each later one after the one before"
        begin = integer("the place of a phase of weights", place, least, stop, cure)
        phases.append((begin, known or _shares(row, names, period)))
    return tuple(phases)


def _in_order(weights: Any, names: Sequence[str]) -> list[Any]:
    """Return the weights of a phase in the order of the sources' names; nothing if names differ."""
    if not isinstance(weights, Mapping) or set(weights) != set(names):
        return []
    return [weights[name] for name in names]


def _shares(weights: Any, names: Sequence[str], period: int | None) -> tuple[int, ...]:
    """Return the shares of a phase, computed from its weights or given."""
    if not isinstance(weights, Mapping):
        if period is not None:
            raise wrong("period", "left out where shares are given", period, "leave it out")
        return _saved(weights, len(names))
    if set(weights) != set(names):
        odd = sorted(map(str, set(weights) ^ set(names)))
        cure = "give each source a weight, which may be 0"
        raise wrong("the names of weights", f"those of the sources, {few(names)}", odd, cure)
    given = [weights[name] for name in names]
    each = four_decimals(given) or integers([*map(_weight, names, given)])
    num_positive = len(each) - each.count(0)
    if not num_positive:
        raise wrong("weights", "above 0 for at least one source", dict(weights), CURE)
    if period is not None and period < num_positive:
        rule = f"at least {num_positive}, one unit for each positive weight"
        raise wrong("period", rule, period, "leave it out")
    return shares_of(each, period)


def _weight(name: str, weight: Any) -> Exact:
    """Return a weight as it is written: 0.1 is a tenth."""
    if type(weight) is float and 0 <= weight < math.inf:  # the common case
        return Decimal(repr(weight))
    exact: Exact = 0
    try:
        whole = isinstance(weight, (int, Decimal, Fraction))
        exact = weight if whole else Decimal(repr(float(weight)))
        top, _ = exact.as_integer_ratio()  # infinity has none
        other = isinstance(weight, bool | str | bytes) or type(weight).__name__ == "bool"  # NumPy's
        right = top >= 0 and not other
    except Exception:  # not a number, not finite, or whatever a user's class raises
        right = False
    if not right:
        what = f"the weight of {name!r}"
        raise wrong(what, "a finite number of at least 0", weight, "use 0 to leave the source out")
    return exact


def _saved(shares: Any, k: int) -> tuple[int, ...]:
    """Return the shares of a phase, as a dict form holds them."""
    rule = f"{k} integers of at least 0, one for each source, with a sum from 1 to 2**20"
    if not isinstance(shares, list | tuple) or len(shares) != k:
        raise wrong("shares", rule, shares, CURE)
    row = tuple(integer("a share", each, 0, LONGEST_PERIOD + 1, CURE) for each in shares)
    if not 1 <= sum(row) <= LONGEST_PERIOD:
        raise wrong("shares", rule, list(row), CURE)
    return row


def few(names: Sequence[str]) -> str:
    """Return names in words, the first ones of many."""
    return ", ".join(map(str, names[:8])) + (", ..." if len(names) > 8 else "")
