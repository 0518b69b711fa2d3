"""Errors of bins by length and by group, and of sums over a step."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import indexplan as ip
from tests.errors.catalogue.made import Case

NUMBERS = "pass numbers in one dimension, or the path of a .npy file of them"
EMPTY = "leave out what is empty, or count in larger units"
SIZES = "pass one number for all groups, or {group: number} with all of them"
PLAN = ip.Plan(ip.Sequential(3), world_size=1, batch_size=3)


def too_many() -> None:
    """Name a file of more samples than there may be, which takes no room."""
    num = 2**32 + 1
    with Path("many.npy").open("wb") as file:
        header = {"descr": "<u4", "fortran_order": False, "shape": (num,)}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + 4 * num)
    ip.LengthGrouped("many.npy", 8)


def changed() -> None:
    """Change a column's file before the bins are cut."""
    np.save("lengths.npy", np.arange(1, 9))
    order = ip.LengthGrouped("lengths.npy", 2)
    order.to_dict()
    np.save("lengths.npy", np.arange(1, 99))
    order.num_units(0)


CASES: list[Case] = [
    (
        "lengths in two dimensions",
        lambda: ip.LengthGrouped(np.ones((2, 2), np.int64), 8),
        f"lengths must be a flat list or array of integers; got array([[1, 1], [1, 1]]); {NUMBERS}",
    ),
    (
        "whole floats as lengths",
        lambda: ip.TokenBudget([3.0, 5.0], 8),
        "lengths must be a flat list or array of integers; got [3.0, 5.0]; pass integers, such "
        "as an int64 array",
    ),
    (
        "truths as groups",
        lambda: ip.Grouped([True, False], 8),
        "groups must be a flat list or array of integers; got [True, False]; pass integers, such "
        "as an int64 array",
    ),
    (
        "objects as lengths",
        lambda: ip.LengthGrouped([3, None], 8),
        f"lengths must be a flat list or array of integers; got [3, None]; {NUMBERS}",
    ),
    (
        "no lengths",
        lambda: ip.LengthGrouped([], 8),
        "lengths must be from 1 to 4294967296 numbers; got 0; pass the length of each sample",
    ),
    (
        "more lengths than there may be",
        too_many,
        "lengths must be from 1 to 4294967296 numbers; got 4294967297; pass the length of each "
        "sample",
    ),
    (
        "a length of 0",
        lambda: ip.LengthGrouped([*[7] * 200_000, 0, 0], 8),
        f"the length of sample 200000 must be an integer from 1 to 1099511627776; got 0; {EMPTY}",
    ),
    (
        "a negative length",
        lambda: ip.TokenBudget([3, 5, -1], 8),
        f"the length of sample 2 must be an integer from 1 to 1099511627776; got -1; {EMPTY}",
    ),
    (
        "a length that is too large",
        lambda: ip.LengthGrouped([3, 2**40 + 1], 8),
        "the length of sample 1 must be an integer from 1 to 1099511627776; got 1099511627777; "
        f"{EMPTY}",
    ),
    (
        "bins of nothing",
        lambda: ip.LengthGrouped([3, 5], 0),
        "batch_size must be an integer from 1 to 2**31 - 1; got 0; pass how many samples a bin has",
    ),
    (
        "no buckets",
        lambda: ip.LengthGrouped([3, 5], 8, num_buckets=0),
        "num_buckets must be an integer from 1 to 65536; got 0; leave it out for 64",
    ),
    (
        "no buckets for a budget",
        lambda: ip.TokenBudget([3, 5], 8, num_buckets=0),
        "num_buckets must be an integer from 1 to 65536; got 0; leave it out for 64",
    ),
    (
        "no budget",
        lambda: ip.TokenBudget([3, 5], 0),
        "max_tokens must be an integer from 1 to 2**63 - 1; got 0; pass how many tokens a bin may "
        "have",
    ),
    (
        "samples above the budget",
        lambda: ip.TokenBudget([3, 50, 9, 60], 8),
        "max_tokens must be at least 60, the longest length; got 8, but 3 samples are longer, the "
        "first of them sample 1; raise it, or cut or leave out longer samples",
    ),
    (
        "a sample above the budget",
        lambda: ip.TokenBudget([3, 50, 9], 10),
        "max_tokens must be at least 50, the longest length; got 10, but sample 1 is longer; raise "
        "it, or cut or leave out longer samples",
    ),
    (
        "a budget of no samples",
        lambda: ip.TokenBudget([3, 5], 8, max_samples=0),
        "max_samples must be an integer from 1 to 2**31 - 1; got 0; leave it out, or pass how many "
        "samples a bin may have",
    ),
    (
        "multiples of nothing",
        lambda: ip.TokenBudget([3, 5], 8, multiple_of=0),
        "multiple_of must be an integer from 1 to 2**31 - 1; got 0; leave it out for any number, "
        "or raise max_samples",
    ),
    (
        "multiples above the samples of a bin",
        lambda: ip.TokenBudget([3, 5], 8, max_samples=4, multiple_of=8),
        "multiple_of must be an integer from 1 to 4; got 8; leave it out for any number, or raise "
        "max_samples",
    ),
    (
        "a group that is too large",
        lambda: ip.Grouped([0, 1, 65536], 8),
        "the group of sample 2 must be an integer from 0 to 65535; got 65536; number the groups 0, "
        "1, 2, ..., such as by np.unique(groups, return_inverse=True)",
    ),
    (
        "bins of no sample of a group",
        lambda: ip.Grouped([0, 1], [4, 0]),
        f"batch_size of group 1 must be an integer from 1 to 2**31 - 1; got 0; {SIZES}",
    ),
    (
        "a batch size that is none",
        lambda: ip.Grouped([0, 1], "8"),
        f"batch_size must be an integer from 1 to 2**31 - 1; got '8'; {SIZES}",
    ),
    (
        "a group without a batch size",
        lambda: ip.Grouped([4, 4, 7], {4: 2}),
        f"batch_size of group 7 must be given, as sample 2 is in that group; got None; {SIZES}",
    ),
    (
        "a group with two batch sizes",
        lambda: ip.Grouped([0, 1], [(0, 2), (1, 3), (0, 4)]),
        f"a group of batch_size must be given once; got 0; {SIZES}",
    ),
    (
        "a batch size of no group",
        lambda: ip.Grouped([0, 1], {"portrait": 4}),
        f"a group of batch_size must be an integer from 0 to 65535; got 'portrait'; {SIZES}",
    ),
    (
        "a sum of floats over a step",
        lambda: PLAN.step_total([0.5, 1.0, 1.5], 0, step=0),
        "a column to sum must be a flat list or array of integers; got [0.5, 1.0, 1.5]; pass "
        "integers, such as an int64 array",
    ),
    (
        "a sum over a step of another dataset",
        lambda: PLAN.step_total([1, 2], 0, step=0),
        "a column to sum must be 3 numbers, one for each sample; got 2; pass a number for each "
        "sample of the dataset, or None to count samples",
    ),
    (
        "a sum over a step that is too large",
        lambda: PLAN.step_total([2**62, 2**62, 5], 0, step=0),
        "the sum of a step must be from -2**63 to 2**63 - 1; got 9223372036854775813; count in "
        "larger units, or use smaller batches",
    ),
    (
        "lengths that have changed",
        changed,
        "{here}/lengths.npy must be the file that was opened; got 'one that has changed'; open it "
        "again once it is complete",
    ),
    (
        "a picture of padding of single samples",
        lambda: ip.plot.padding(ip.Plan(ip.Shuffle(9), batch_size=2)),
        "an order must be one that deals bins, for this; got 'shuffle-v1'; pack them, or group "
        "them by length",
    ),
    (
        "a picture of padding without lengths",
        lambda: ip.plot.padding(ip.Plan(ip.Grouped([0, 0, 1], 2), batch_size=2)),
        "an order must be one with lengths, for this; got 'grouped-v1'; pass lengths=, the "
        "length of each sample",
    ),
    (
        "a picture of padding with lengths of others",
        lambda: ip.plot.padding(ip.Plan(ip.Grouped([0, 0, 1], 2), batch_size=2), lengths=[1, 2]),
        "lengths must be of 3 samples; got 2; pass the length of each sample",
    ),
    (
        "a picture of padding of no steps",
        lambda: ip.plot.padding(
            ip.Plan(ip.LengthGrouped([5], 1), global_batch_size=2, remainder="drop")
        ),
        "a picture of padding must be of at least one step; got 0; pass a sub_epoch with steps",
    ),
]
