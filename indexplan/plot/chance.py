"""What chance allows: how many marked samples a part of a full shuffle may hold."""

from __future__ import annotations

import numpy as np


def counts_between(drawn: int, marked: int, total: int, tail: float) -> tuple[int, int]:
    """Return the lowest and highest count of marked samples that chance allows.

    There are `total` samples in a random order, and `marked` of them are marked; `drawn` samples
    are looked at. How many of these are marked has a hypergeometric distribution (W. Feller, An
    Introduction to Probability Theory and Its Applications, volume 1, II.6), which becomes binomial
    if few of many are looked at, and is certain if all are.

    Parameters
    ----------
    drawn, marked, total : int
        Samples looked at, samples marked, and all of them; drawn <= 2**24.
    tail : float
        The highest probability of a count below the lowest, and of one above the highest.

    Returns
    -------
    tuple of int
        The quantiles at `tail` and 1 - `tail`: the smallest interval with such tails.

    Examples
    --------
    >>> from indexplan.plot.chance import counts_between
    >>> counts_between(100, 250, 1000, 0.025)
    (17, 33)
    """
    low, high = max(0, drawn + marked - total), min(drawn, marked)
    k = np.arange(low, high, dtype=np.float64)
    # P(k + 1) / P(k) = (marked - k) (drawn - k) / ((k + 1) (total - marked - drawn + k + 1))
    others = float(total - marked - drawn) + k + 1
    steps = np.log(marked - k) + np.log(drawn - k) - np.log(k + 1) - np.log(others)
    logs = np.concatenate([np.zeros(1), np.cumsum(steps)])
    chances = np.exp(logs - logs.max())
    chances /= chances.sum()
    # the first count that leaves more than a tail below it, or above it
    below = int(np.searchsorted(np.cumsum(chances), tail, "right"))
    above = int(np.searchsorted(np.cumsum(chances[::-1]), tail, "right"))
    return low + below, high - above
