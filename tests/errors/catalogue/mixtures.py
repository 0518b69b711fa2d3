"""Errors of mixtures, curricula and groups."""

from __future__ import annotations

from typing import Any

import indexplan as ip
from tests.errors.catalogue.made import Case
from tests.support.bins import ChangingBins


class Nameless(ip.Sequential):
    """Names groups, and nothing else of them."""

    algorithm = "test-nameless-v1"
    group_names = ("a",)


A, B = ip.Shuffle(10), ip.Shuffle(5)
WORDS = 'pass {"web": 0.7, "code": 0.3}, or [(0, {...}), (10**9, {...})]'
NAMED = 'pass {"web": indexplan.Shuffle(10), "code": indexplan.Shuffle(20)}'


def mixed(weights: Any = None, **fields: Any) -> Any:
    """Mix two sources."""
    return ip.Mixture({"a": A, "b": B}, weights or {"a": 1, "b": 1}, **fields)


def nested(depth: int) -> Any:
    """Lay mixtures into each other."""
    order: Any = A
    for seed in range(depth):
        order = ip.Mixture({"a": order}, {"a": 1}, seed=seed)
    return order


def written(**fields: Any) -> Any:
    """Read a mixture whose dict form has other fields."""
    plan = ip.Plan(mixed(), batch_size=1).to_dict()
    return ip.Plan.from_dict({**plan, "order": {**plan["order"], **fields}})


CASES: list[Case] = [
    *(
        (
            f"what {type(order).__name__} was saved under is no dict form",
            lambda order=order: order.continues([1], 0, 0),
            "saved must be the dict form of an order; got [1]; pass order.to_dict()",
        )
        for order in (A, ip.Epochs(A, 5), ip.Weighted([1, 2]), mixed())
    ),
    (
        "a run that is to go on before its first epoch",
        lambda: mixed().continues(mixed().to_dict(), -1, 0),
        "epoch must be an integer from 0 to 2**63 - 1; got -1; pass the cursor's epoch",
    ),
    (
        "a run that is to go on at half a position",
        lambda: ip.Epochs(A, 5).continues({}, 0, 0.5),
        "position must be an integer from 0 to 2**63 - 1; got 0.5; pass the cursor's position",
    ),
    (
        "the groups of samples of an order without",
        lambda: ip.Shuffle(5).group_of([1, 2]),
        "an order must be one with groups, such as a Mixture; got 'shuffle-v1'; ask an order "
        "whose group_names are not empty",
    ),
    (
        "the groups' shares of an order without",
        lambda: ip.Shuffle(5).group_shares(0, 0, 5),
        "an order must be one with groups, such as a Mixture; got 'shuffle-v1'; ask an order "
        "whose group_names are not empty",
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
    (
        "sources without names",
        lambda: ip.Mixture([A, B], [1, 1]),
        "sources must be from 1 to 65536 orders, each with a different str as its name; got "
        '[Shuffle(num_samples=10, seed=0), Shuffle(num_samples=5, seed=0)]; pass {"web": '
        'indexplan.Shuffle(10), "code": indexplan.Shuffle(20)}',
    ),
    (
        "no sources",
        lambda: ip.Mixture({}, {}),
        "sources must be from 1 to 65536 orders, each with a different str as its name; got {}; "
        'pass {"web": indexplan.Shuffle(10), "code": indexplan.Shuffle(20)}',
    ),
    (
        "sources named alike",
        lambda: ip.Mixture([("a", A), ("a", B)], {"a": 1}),
        "sources must be from 1 to 65536 orders, each with a different str as its name; got [('a', "
        "Shuffle(num_samples=10, seed=0)), ('a', Shuffle(num_samples=5, seed=0))]; pass {\"web\": "
        'indexplan.Shuffle(10), "code": indexplan.Shuffle(20)}',
    ),
    (
        "a source with a number for a name",
        lambda: ip.Mixture({1: A}, {1: 1}),
        "sources must be from 1 to 65536 orders, each with a different str as its name; got {1: "
        'Shuffle(num_samples=10, seed=0)}; pass {"web": indexplan.Shuffle(10), "code": '
        "indexplan.Shuffle(20)}",
    ),
    (
        "a source that is no order",
        lambda: ip.Mixture({"a": 10}, {"a": 1}),
        'the source \'a\' must be an Order; got 10; pass {"web": indexplan.Shuffle(10), "code":'
        " indexplan.Shuffle(20)}",
    ),
    (
        "a source of changing sizes",
        lambda: ip.Mixture({"a": ChangingBins(5)}, {"a": 1}),
        "Mixture needs sources with the same number of units in every epoch; got "
        "test-changing-bins-v1; leave 'a' out",
    ),
    (
        "two equal sources",
        lambda: ip.Mixture({"a": ip.Sequential(9), "b": ip.Sequential(9)}, {"a": 1, "b": 1}),
        "the sources 'a' and 'b' must be different; got Sequential(num_samples=9); shuffle one, or "
        "leave it out: both would read in the same sequence",
    ),
    (
        "two sources of one size and seed",
        lambda: ip.Mixture({"a": A, "b": ip.Repeat(A, copies=2, span=20)}, {"a": 1, "b": 1}),
        "sources must differ in seed where algorithm and size are equal; got 0 in 'a' and 'b'; "
        "pass seed=1 to one of them",
    ),
    (
        "a mixture in a mixture of its seed",
        lambda: ip.Mixture({"a": mixed(seed=7)}, {"a": 1}, seed=7),
        "Mixture needs a seed that no mixture inside it has; got 7 in 'a' too; pass seed=6",
    ),
    (
        "too many samples in all sources",
        lambda: ip.Mixture({"a": ip.Shuffle(2**62), "b": ip.Sequential(2**62)}, {"a": 1, "b": 1}),
        "the sources' samples must be fewer than 2**63 together; got 9223372036854775808; leave "
        "some of them out",
    ),
    (
        "sources nested too deep",
        lambda: ip.Mixture({"a": nested(8)}, {"a": 1}),
        "an order must be inside at most 7 others; got 'mixture-v1'; nest them less",
    ),
    (
        "weights of other names",
        lambda: mixed({"a": 1, "c": 1}),
        "the names of weights must be those of the sources, a, b; got ['b', 'c']; give each "
        "source a weight, which may be 0",
    ),
    (
        "a negative weight",
        lambda: mixed({"a": 1, "b": -0.5}),
        "the weight of 'b' must be a finite number of at least 0; got -0.5; use 0 to leave the "
        "source out",
    ),
    (
        "a weight that is no number",
        lambda: mixed({"a": 1, "b": float("nan")}),
        "the weight of 'b' must be a finite number of at least 0; got nan; use 0 to leave the "
        "source out",
    ),
    (
        "weights that are all 0",
        lambda: mixed({"a": 0, "b": 0.0}),
        "weights must be above 0 for at least one source; got {'a': 0, 'b': 0.0}; pass "
        '{"web": 0.7, "code": 0.3}, or [(0, {...}), (10**9, {...})]',
    ),
    (
        "weights without names",
        lambda: mixed([0.5, 0.5]),
        "weights must be a number for each source, or a list of (place, numbers); got [0.5, "
        '0.5]; pass {"web": 0.7, "code": 0.3}, or [(0, {...}), (10**9, {...})]',
    ),
    (
        "no phases of weights",
        lambda: ip.Mixture({"a": A}, []),
        'weights must be from 1 to 4096 phases; got 0; pass {"web": 0.7, "code": 0.3}, or '
        "[(0, {...}), (10**9, {...})]",
    ),
    (
        "phases that do not rise",
        lambda: mixed([(0, {"a": 1, "b": 1}), (9, {"a": 1, "b": 2}), (9, {"a": 1, "b": 3})]),
        "the place of a phase of weights must be an integer from 10 to 2**63 - 1; got 9; "
        "begin the first phase at 0, and each later one after the one before",
    ),
    (
        "a first phase past the start",
        lambda: mixed([(5, {"a": 1, "b": 1})]),
        "the place of a phase of weights must be the integer 0; got 5; begin the first phase "
        "at 0, and each later one after the one before",
    ),
    (
        "a period too long",
        lambda: mixed(period=2**20 + 1),
        "period must be an integer from 1 to 1048576; got 1048577; leave it out",
    ),
    (
        "a period too short",
        lambda: mixed(period=1),
        "period must be at least 2, one unit for each positive weight; got 1; leave it out",
    ),
    (
        "a period for shares",
        lambda: mixed([(0, (1, 1))], period=4),
        "period must be left out where shares are given; got 4; leave it out",
    ),
    (
        "shares of fewer sources",
        lambda: written(phases=[[0, [1]]]),
        "shares must be 2 integers of at least 0, one for each source, with a sum from 1 to "
        '2**20; got [1]; pass {"web": 0.7, "code": 0.3}, or [(0, {...}), (10**9, {...})]',
    ),
    (
        "a share that is no integer",
        lambda: written(phases=[[0, [0.5, 1]]]),
        'a share must be an integer from 0 to 1048576; got 0.5; pass {"web": 0.7, "code": '
        "0.3}, or [(0, {...}), (10**9, {...})]",
    ),
    (
        "shares that are all 0",
        lambda: written(phases=[[0, [0, 0]]]),
        "shares must be 2 integers of at least 0, one for each source, with a sum from 1 to "
        '2**20; got [0, 0]; pass {"web": 0.7, "code": 0.3}, or [(0, {...}), (10**9, {...})]',
    ),
    (
        "epochs of no units",
        lambda: mixed(epoch_size=0),
        "epoch_size must be an integer from 1 to 2**63 - 1; got 0; pass how many units an "
        "epoch has, 'first_exhausted' or 'all_exhausted'",
    ),
    (
        "epochs up to nowhere",
        lambda: mixed(epoch_size="exhausted"),
        "epoch_size must be an integer from 1 to 2**63 - 1; got 'exhausted'; pass how many "
        "units an epoch has, 'first_exhausted' or 'all_exhausted'",
    ),
    (
        "a source that is never read to its end",
        lambda: mixed({"a": 1, "b": 0}, epoch_size="all_exhausted"),
        "'all_exhausted' needs sources that are read to their ends before unit 2**63; got "
        "'b', which is not; give it more weight",
    ),
    (
        "a phase before the run",
        lambda: mixed().with_phase(-1, {"a": 1, "b": 1}),
        "place must be an integer from 0 to 2**63 - 1; got -1; pass cursor.epoch * epoch_size"
        " + cursor.position, or a later place",
    ),
    (
        "an epoch past the end of the run",
        lambda: mixed(epoch_size=2**62).take(2, 0),
        "epoch must be below 1, as the run ends at unit 2**63; got 2; use smaller epochs",
    ),
    (
        "an epoch of a source past the last",
        lambda: mixed(epoch_size=2**40).take(1, 0),
        "the epochs of the source 'a' must be below 2**32; got 109951162777; give it less weight, "
        "or read fewer epochs",
    ),
    (
        "an interval of no positions",
        lambda: mixed().group_shares(0, 3, 3),
        "stop must be an integer from 4 to 15; got 3; name some of the epoch's 15 units",
    ),
    (
        "reads in an epoch of a source past the last",
        lambda: mixed(epoch_size=2**40).count(1, 0),
        "the epochs of the source 'a' must be below 2**32; got 109951162777; give it less weight, "
        "or read fewer epochs",
    ),
    (
        "a weight that is text",
        lambda: mixed({"a": 1, "b": "1"}),
        "the weight of 'b' must be a finite number of at least 0; got '1'; use 0 to leave the "
        "source out",
    ),
    (
        "a weight that is true",
        lambda: mixed({"a": 1, "b": True}),
        "the weight of 'b' must be a finite number of at least 0; got True; use 0 to leave the "
        "source out",
    ),
    (
        "a curriculum of nothing",
        lambda: ip.curriculum([], [(0, 1)]),
        "difficulty must be a number for each sample; got 'none'; give each sample a number",
    ),
    (
        "a difficulty that is no number",
        lambda: ip.curriculum([1.0, float("nan")], [(0, 1)]),
        "difficulty must be a number for each sample; got 'a NaN'; give each sample a number",
    ),
    (
        "more bins than samples",
        lambda: ip.curriculum([1, 2], [(0, 1)], num_bins=3),
        "num_bins must be an integer from 1 to 2; got 3; leave it out",
    ),
    (
        "a curriculum without stages",
        lambda: ip.curriculum([1, 2], []),
        "stages must be pairs of a unit of the run and a part of the samples, above 0 and at most "
        "1; got []; pass [(0, 0.3), (10**6, 1)]: the easiest 0.3 at first, and all from unit "
        "10**6 on",
    ),
    (
        "stages without places",
        lambda: ip.curriculum([1, 2], [0.5, 1]),
        "stages must be pairs of a unit of the run and a part of the samples, above 0 and at most "
        "1; got [0.5, 1]; pass [(0, 0.3), (10**6, 1)]: the easiest 0.3 at first, and all from "
        "unit 10**6 on",
    ),
]
