"""Weights as integer shares in exactly the proportions in which they are written."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from indexplan.errors import as_integer, few, integer, wrong

WHOLE = 2**62  # shares are exact if their sum is less
MOST_PHASES = 2**12
MOST_DIGITS = 4000  # of a decimal's exponent, as that many zeros are written out
SAVED = "write specs with to_json"
CURE = 'pass {"web": 0.7, "code": 0.3}, or [(0, {...}), (10**9, {...})]'

Exact = int | Decimal | Fraction
Phase = tuple[int, tuple[int, ...]]  # the unit of the run at which it begins, and its shares


def lowest(shares: Sequence[int]) -> tuple[int, ...]:
    """Return shares in lowest terms."""
    common = math.gcd(*shares) or 1
    return tuple(share // common for share in shares)


def integers(weights: Sequence[Exact]) -> tuple[int, ...]:
    """Return weights as the smallest integers in the same proportions."""
    ratios = [weight.as_integer_ratio() for weight in weights]
    scale = math.lcm(*(bottom for _, bottom in ratios))
    return lowest([top * (scale // bottom) for top, bottom in ratios])


def phases_of(weights: Any, names: Sequence[str]) -> tuple[Phase, ...]:
    """Return phases of weights, or the weights of a whole run, as (place, shares) of each phase.

    Raises
    ------
    IndexPlanError
        If weights are not given for exactly the names, are negative or all 0; or if places do not
        start at 0 and rise.
    """
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
    for place, row in entries:
        least = phases[-1][0] + 1 if phases else 0
        stop = 2**63 if phases else 1
        cure = "begin the first phase at 0, and each later one after the one before"
        begin = integer("the place of a phase of weights", place, least, stop, cure)
        phases.append((begin, _shares(row, names)))
    return tuple(phases)


def _shares(weights: Any, names: Sequence[str]) -> tuple[int, ...]:
    """Return the shares of a phase, computed from its weights or given.

    Weights whose smallest integers are too large together are scaled down to a sum of `WHOLE` / 2
    and rounded down, but never to 0.
    """
    if not isinstance(weights, Mapping):
        return _saved(weights, len(names))
    if set(weights) != set(names):
        odd = sorted(map(str, set(weights) ^ set(names)))
        cure = "give each source a weight, which may be 0"
        raise wrong("the names of weights", f"those of the sources, {few(names)}", odd, cure)
    exact = integers([_weight(name, weights[name]) for name in names])
    whole = sum(exact)
    if not whole:
        raise wrong("weights", "above 0 for at least one source", dict(weights), CURE)
    if whole < WHOLE:
        return exact
    return lowest([max(1, each * (WHOLE // 2) // whole) if each else 0 for each in exact])


def _weight(name: str, weight: Any) -> Exact:
    """Return a weight as it is written: 0.1 is a tenth."""
    exact: Exact = -1
    try:
        if isinstance(weight, Decimal | Fraction):
            exact = weight
        else:
            whole = None if isinstance(weight, float) else as_integer(weight)
            exact = Decimal(repr(float(weight))) if whole is None else whole
        other = isinstance(weight, bool | str | bytes) or type(weight).__name__ == "bool"  # NumPy's
        right = 0 <= exact < math.inf and not other
    except Exception:  # not a number, not finite, or whatever a user's class raises
        right = False
    if not right:
        what = f"the weight of {name!r}"
        raise wrong(what, "a finite number of at least 0", weight, "use 0 to leave the source out")
    if exact and isinstance(exact, Decimal) and abs(exact.adjusted()) > MOST_DIGITS:
        rule = f"0, or from 1e-{MOST_DIGITS} to 1e{MOST_DIGITS}"
        raise wrong(f"the weight of {name!r}", rule, weight, "pass a weight in that range")
    return exact


def _saved(shares: Any, k: int) -> tuple[int, ...]:
    """Return the shares of a phase, as a dict form holds them."""
    rule = f"{k} integers of at least 0, one for each source, with a sum from 1 to 2**62 - 1"
    if not isinstance(shares, list | tuple) or len(shares) != k:
        raise wrong("shares", rule, shares, SAVED)
    row = [integer("a share", each, 0, WHOLE, SAVED) for each in shares]
    if not 0 < sum(row) < WHOLE:
        raise wrong("shares", rule, row, SAVED)
    return lowest(row)
