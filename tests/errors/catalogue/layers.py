"""Errors of orders over other orders, and of splits."""

from __future__ import annotations

from typing import Any

import numpy as np

import indexplan as ip
from tests.errors.catalogue.made import Case
from tests.support.bins import Bins, ChangingBins


def saved(path: str, numbers: Any) -> str:
    """Write an array to a file."""
    np.save(path, numbers)
    return path


def layered(depth: int) -> Any:
    """Lay layers over an order."""
    order: ip.Order = ip.Sequential(5)
    for _ in range(depth):
        order = ip.Repeat(order, 1)
    return order


def copied(copies: int) -> ip.Plan:
    """Plan to read each sample many times."""
    return ip.Plan(ip.Repeat(ip.Sequential(3), copies), world_size=1, batch_size=1)


def pointed(indices: Any) -> Any:
    """Read a spec that has a path, or numbers, where a column's digest belongs."""
    plan = ip.Plan(ip.Subset(ip.Sequential(3), [1, 2, 3], 10), batch_size=1).to_dict()
    plan["order"]["indices"] = indices
    return ip.Plan.from_dict(plan)


def ranged(ends: Any) -> Any:
    """Read a subset whose range has other ends."""
    data = ip.Subset(ip.Shuffle(1), range(1, 2), 5).to_dict()
    plan = ip.Plan(ip.Sequential(5), batch_size=1).to_dict()
    return ip.Plan.from_dict({**plan, "order": {**data, "indices": {"range": ends}}})


def in_itself() -> dict[str, Any]:
    """Return the dict form of an order whose field holds itself."""
    field: list[Any] = []
    field.append(field)
    return {"algorithm": "sequential-v1", "num_samples": field}


CASES: list[Case] = [
    (
        "a layer over no order",
        lambda: ip.Epochs(10, 5),
        "order must be an Order; got 10; pass indexplan.Shuffle(len(dataset))",
    ),
    (
        "reads without end",
        lambda: ip.Repeat(ip.Sequential(3), 2**30).locate_all(0, [1, 2]),
        "the number of reads to list must be at most 134217728; got 2147483648; ask for fewer "
        "samples at a time, or for their count",
    ),
    (
        "reads without end in part of an epoch inside",
        lambda: ip.Epochs(ip.Repeat(ip.Sequential(3), 2**40 // 2**10), 2**30).locate_all(0, [0]),
        "the number of reads to list must be at most 134217728; got 1073741824; ask for fewer "
        "samples at a time, or for their count",
    ),
    (
        "epochs inside without end",
        lambda: ip.Epochs(ip.Subset(ip.Shuffle(1), [0], 2), 2**31).count(0, [1]),
        "the epochs of an order inside another to look through must be at most 1048576; got "
        "2147483648; use smaller epochs",
    ),
    (
        "a field in itself",
        lambda: ip.Plan.from_dict(
            {**ip.Plan(ip.Sequential(5), batch_size=1).to_dict(), "order": in_itself()}
        ),
        "an order must be a dict that is nested less deeply; got {'algorithm': 'sequential-v1', "
        "'num_samples': [[...]]}; write specs with to_json",
    ),
    (
        "too many reads to explain",
        lambda: ip.explain(copied(2**17), 1),
        "reads of sample 1 must be at most 65536 in an epoch, to be explained; got 131072; call "
        "plan.locate_all or plan.order.count",
    ),
    (
        "epochs of nothing",
        lambda: ip.Epochs(ip.Shuffle(10), 0),
        "epoch_size must be an integer from 1 to 2**63 - 1; got 0; pass how many units an epoch "
        "has",
    ),
    (
        "epochs of changing sizes",
        lambda: ip.Epochs(ChangingBins(10), 5),
        "Epochs needs an order with the same number of units in every epoch; got "
        "test-changing-bins-v1; use that order without Epochs",
    ),
    (
        "an epoch past the stream",
        lambda: ip.Epochs(ip.Shuffle(10), 11).take(2**32 - 1, 0),
        "epoch must be below 3904515723, where the stream of its order ends; got 4294967295; use "
        "smaller epochs",
    ),
    (
        "no copies",
        lambda: ip.Repeat(ip.Shuffle(10), 0),
        "copies must be an integer from 1 to 2**31 - 1; got 0; pass how often a unit is read",
    ),
    (
        "a span of nothing",
        lambda: ip.Repeat(ip.Shuffle(10), 3, span=0),
        "span must be an integer from 1 to 2**63 - 1; got 0; leave it out for copies that are "
        "neighbours",
    ),
    (
        "a span that copies do not divide",
        lambda: ip.Repeat(ip.Shuffle(10), 3, span=10),
        "span must be a multiple of copies, 3; got 10; use 12",
    ),
    (
        "too many copies",
        lambda: ip.Repeat(ip.Shuffle(2**62), 2),
        "an epoch of Repeat must have fewer than 2**63 units; got 9223372036854775808; use fewer "
        "copies",
    ),
    (
        "a subset of nothing",
        lambda: ip.Subset(ip.Shuffle(1), [], 5),
        "indices must be at least one sample; got 'none'; pass the samples to read, such as "
        "np.flatnonzero(mask), or the mask itself",
    ),
    (
        "a subset of another size than its order's",
        lambda: ip.Subset(ip.Shuffle(5), [1, 2], 5),
        "the order's num_samples must be 2, the number of indices; got 5; use an order of 2 "
        "samples",
    ),
    (
        "a subset of one sample, and an order of more",
        lambda: ip.Subset(ip.Shuffle(5), [2], 5),
        "the order's num_samples must be 1, the number of indices; got 5; use an order of 1 sample",
    ),
    (
        "a subset of samples that are none",
        lambda: ip.Subset(ip.Shuffle(2), [1, 5], 5),
        "indices must be numbers of samples, from 0 to 4; got 5; pass the samples to read, such "
        "as np.flatnonzero(mask), or the mask itself",
    ),
    (
        "a mask of another dataset",
        lambda: ip.Subset(ip.Shuffle(2), np.array([True, True]), 5),
        "indices, a mask, must be of shape (5,), a boolean for each sample; got (2,); make it for "
        "the whole dataset",
    ),
    (
        "a range of two ends",
        lambda: ranged([1, 2]),
        "indices must be a range's start, stop and step; got [1, 2]; write specs with to_json",
    ),
    (
        "a range of halves",
        lambda: ranged([1, 2, 0.5]),
        "a range's end or step must be an integer from -9223372036854775808 to 2**63 - 1; got 0.5; "
        "write specs with to_json",
    ),
    (
        "a range without a step",
        lambda: ranged([1, 2, 0]),
        "a range's step must be other than 0; got 0; write specs with to_json",
    ),
    (
        "a part that is empty",
        lambda: ip.Split(3, {"train": 0.9, "val": 0.1}),
        "the number of samples must be large enough that 'val' has one; got 3; give that part a "
        "larger share, or split 10 or more",
    ),
    (
        "a part of nothing",
        lambda: ip.Split(10, {"train": 1, "val": 0}),
        "parts must be names, each with a positive number; got {'train': 1, 'val': 0}; pass "
        '{"train": 0.9, "val": 0.1}',
    ),
    (
        "parts without names",
        lambda: ip.Split(10, [0.9, 0.1]),
        "parts must be names, each with a positive number; got [0.9, 0.1]; pass "
        '{"train": 0.9, "val": 0.1}',
    ),
    (
        "groups of another dataset",
        lambda: ip.Split(3, {"all": 1}, groups=[1, 2]),
        "groups must be 3 numbers, one for each sample; got 2; pass the group of each sample",
    ),
    (
        "one fold",
        lambda: ip.folds(10, 1),
        "k must be an integer from 2 to 65536; got 1; pass how many folds to make",
    ),
    (
        "sizes that do not add up",
        lambda: ip.Part(10, [5, 4], [0]),
        "the sum of sizes must be 10, num_samples; got 9; make parts with indexplan.Split, or "
        "indexplan.folds",
    ),
    (
        "sizes that are no groups'",
        lambda: len(ip.Part(4, [5, 4], [0], groups=[1, 1, 2, 2])),
        "the sum of sizes must be 2, the number of groups; got 9; make parts with indexplan.Split, "
        "or indexplan.folds",
    ),
    (
        "sizes that are no row",
        lambda: ip.Part(10, 10, [0]),
        "sizes must be a list of integers; got 10; make parts with indexplan.Split, or "
        "indexplan.folds",
    ),
    (
        "too many sizes",
        lambda: ip.Part(2**17, [1] * 2**17, [0]),
        "sizes must be at most 65536 numbers; got 131072; make parts with indexplan.Split, or "
        "indexplan.folds",
    ),
    (
        "a size of nothing",
        lambda: ip.Part(10, [10, 0], [0]),
        "a number of sizes must be an integer from 1 to 2**63 - 1; got 0; make parts with "
        "indexplan.Split, or indexplan.folds",
    ),
    (
        "parts twice",
        lambda: ip.Part(10, [5, 5], [1, 1]),
        "parts must be rising numbers, at least one; got [1, 1]; make parts with indexplan.Split, "
        "or indexplan.folds",
    ),
    (
        "a subset by an order of bins",
        lambda: ip.Subset(ip.Shuffle(5), Bins(10), 10),
        "indices must be an order of single samples; got 'test-bins-v1'; pass such an order, or a "
        "list",
    ),
    (
        "a subset by an order of another dataset",
        lambda: ip.Subset(ip.Shuffle(5), ip.Shuffle(5), 10),
        "indices must be an order of 10 samples, the dataset's; got 5; make it for the whole "
        "dataset",
    ),
    (
        "epochs longer than all epochs inside",
        lambda: ip.Epochs(ip.Shuffle(3), 2**61),
        "epoch_size must be at most 12884901888, the units of all epochs of its order; got "
        "2305843009213693952; use a smaller one",
    ),
    (
        "layers too deep",
        lambda: layered(8),
        "an order must be inside at most 7 others; got 'repeat-v1'; nest them less",
    ),
    (
        "numbers in a column's place",
        lambda: pointed([1, 2, 3]),
        "indices of an order of subset-v1 must be as its to_dict writes them; got {'algorithm': "
        "'subset-v1', 'order': {'algorithm': 'sequential-v1', 'num_samples': 3}, 'indices': "
        "[1, 2, 3], 'num_samples': 10}; write specs with to_json",
    ),
    (
        "a path in a column's place",
        lambda: pointed("a.npy"),
        "indices must be given in JSON by dtype, length and sha256; got 'a.npy'; write specs "
        "with to_json",
    ),
    (
        "a range of samples that are none",
        lambda: ip.Subset(ip.Sequential(2**62), range(2**64), 2**63 - 1),
        "indices must be numbers of samples, from 0 to 9223372036854775806; got "
        "18446744073709551615; pass the samples to read, such as np.flatnonzero(mask), or the "
        "mask itself",
    ),
]
