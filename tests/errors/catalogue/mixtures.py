"""Errors of mixtures, curricula and groups."""

from __future__ import annotations

import indexplan as ip
from tests.errors.catalogue.made import Case


class Nameless(ip.Sequential):
    """Names groups, and nothing else of them."""

    algorithm = "test-nameless-v1"
    group_names = ("a",)


CASES: list[Case] = [
    (
        "the groups of samples of an order without",
        lambda: ip.Shuffle(5).group_of([1, 2]),
        "an order must be one with groups, such as a Mixture; got 'shuffle-v1'; ask one whose "
        "group_names are not empty",
    ),
    (
        "the groups' shares of an order without",
        lambda: ip.Shuffle(5).group_shares(0, 0, 5),
        "an order must be one with groups, such as a Mixture; got 'shuffle-v1'; ask one whose "
        "group_names are not empty",
    ),
    (
        "groups that no sample is in",
        lambda: Nameless(5).group_of(0),
        "Nameless must write _group_of, as it names groups; got none; see docs/orders.md",
    ),
    (
        "groups without shares",
        lambda: Nameless(5).group_shares(0, 0, 5),
        "Nameless must write _group_shares, as it names groups; got none; see docs/orders.md",
    ),
]
