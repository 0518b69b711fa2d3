"""Errors of orders of one's own, and of columns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import indexplan as ip
from tests.errors.catalogue.made import Case, locked, written
from tests.support.bins import Bins, ChangingBins
from tests.support.listed import Listed, Wrapped

DIGEST = ip.Column([3, 1]).to_dict()["sha256"]


@dataclass(frozen=True, eq=False)
class Nowhere(ip.Order):
    """An order that does not say where it reads samples."""

    num_samples: int

    algorithm = "test-nowhere-v1"

    def _fill(self, epoch: int, starts: Any, stops: Any, out: Any) -> None:
        out[:] = 0


@dataclass(frozen=True, eq=False)
class Once(Nowhere):
    """An order that may repeat samples, and names one place of each."""

    traits = ip.Traits(reads="any")

    def _locate(self, epoch: int, indices: Any) -> Any:
        return indices


class Plain(ip.Sequential):
    """An order whose fields nobody knows."""

    __dataclass_fields__ = None  # type: ignore[assignment]


def saved(path: str, numbers: Any) -> str:
    """Write an array to a file."""
    np.save(path, numbers)
    return path


def claimed() -> Any:
    """Ask for a column of a folder that has another one under its name."""
    saved(f"{DIGEST}.npy", np.array([1, 3], "u4"))
    return described(columns=".")


def changed() -> Any:
    """Change a file between opening and hashing it."""
    column = ip.Column(saved("a.npy", np.arange(5)))
    saved("a.npy", np.arange(6))
    return column.to_dict()


def gone() -> Any:
    """Delete a file between opening and hashing it."""
    column = ip.Column(saved("a.npy", np.arange(5)))
    Path("a.npy").unlink()
    return column.to_dict()


def described(columns: Any = None, **identity: Any) -> Any:
    """Read an order whose column has another identity."""
    data = Listed([3, 1], 5).to_dict()
    data["samples"] = {**data["samples"], **identity}
    plan = ip.Plan(ip.Sequential(5), batch_size=1).to_dict()
    return ip.Plan.from_dict({**plan, "order": data}, columns=columns)


def damaged() -> Any:
    """Build on where something else lies in a column's place."""
    plan = ip.Plan(Listed([3, 1], 5), batch_size=1)
    ip.save(plan, "a.plan", part=(1, 2))
    written(f"a.plan/columns/{DIGEST}.npy", "other numbers")
    return ip.save(plan, "a.plan")


def hidden() -> Any:
    """Build on where a column cannot be read."""
    plan = ip.Plan(Listed([3, 1], 5), batch_size=1)
    ip.save(plan, "a.plan", part=(1, 2))
    modes = {"a.plan": 0o777, "a.plan/columns": 0o777, f"a.plan/columns/{DIGEST}.npy": 0}
    return locked(modes, lambda: ip.save(plan, "a.plan"))


def removed() -> Any:
    """Ask for a column of a plan directory that was there when it was loaded."""
    ip.save(ip.Plan(Listed([3, 1], 5), batch_size=1), "a.plan")
    plan = ip.load("a.plan")
    Path(f"a.plan/columns/{DIGEST}.npy").unlink()
    return plan.order.locate(0, 1)


@dataclass(frozen=True, eq=False)
class Spread(ip.Sequential):
    """An order with a float."""

    width: float = 1.0

    algorithm = "test-spread-v1"


def layered(depth: int) -> Any:
    """Lay layers over an order."""
    order: ip.Order = ip.Sequential(5)
    for _ in range(depth):
        order = ip.Repeat(order, 1)
    return order


def pointed() -> Any:
    """Read a spec that has a path where a column's digest belongs."""
    saved("a.npy", np.arange(3))
    plan = ip.Plan(ip.Subset(ip.Sequential(3), [1, 2, 3], 10), batch_size=1).to_dict()
    plan["order"]["indices"] = "a.npy"
    return ip.Plan.from_dict(plan)


def ranged(ends: Any) -> Any:
    """Read a subset whose range has other ends."""
    data = ip.Subset(ip.Shuffle(1), range(1, 2), 5).to_dict()
    plan = ip.Plan(ip.Sequential(5), batch_size=1).to_dict()
    return ip.Plan.from_dict({**plan, "order": {**data, "indices": {"range": ends}}})


def nested(depth: int) -> Any:
    """Nest an order, and read it back."""
    order: ip.Order = ip.Sequential(5)
    for _ in range(depth):
        order = Wrapped(order)
    return ip.Plan.from_json(ip.Plan(order, batch_size=1).to_json())


CASES: list[Case] = [
    (
        "a trait of a number",
        lambda: ip.Traits(deals_bins=1),
        "a trait, deals_bins, must be a boolean; got 1; leave it out for False",
    ),
    (
        "a trait of another word",
        lambda: ip.Traits(reads="twice"),
        "a trait, reads, must be one of once, at most once, any; got 'twice'; leave it out for "
        "once",
    ),
    (
        "no inverse",
        lambda: Nowhere(5).locate(0, 1),
        "Nowhere must write _locate, or _locate_all if it repeats samples; got neither; see "
        "docs/orders.md",
    ),
    (
        "an inverse of one place",
        lambda: Once(5).count(0, 1),
        "Once must write _locate_all, as it may repeat samples; got only _locate; see "
        "docs/orders.md",
    ),
    (
        "an order without fields",
        lambda: Plain(5).to_dict(),
        "a kind of order must be a dataclass; got 'Plain'; make it a frozen dataclass, or write "
        "to_dict and _from_fields",
    ),
    (
        "a check of a class",
        lambda: ip.testing.check_order(ip.Shuffle),
        "order must be an indexplan.Order; got <class 'indexplan.orders.shuffle.Shuffle'>; pass "
        "one, such as MyOrder(100)",
    ),
    (
        "a check of no epochs",
        lambda: ip.testing.check_order(ip.Shuffle(5), epochs=[]),
        "epochs must be some that the order reads; got []; leave it out",
    ),
    (
        "a check of an order that breaks a law",
        lambda: ip.testing.check_order(Nowhere(5)),
        "Nowhere(num_samples=5) must read each sample as often as its traits say; got sample 0 "
        'more than once in epoch 0; set reads="at most once" or reads="any" in traits if that is '
        "what it does",
    ),
    (
        "orders too deep",
        lambda: nested(8),
        "an order must be inside at most 7 others; got 'sequential-v1'; nest them less",
    ),
    (
        "a column of text",
        lambda: ip.Column(["a"]),
        "a column must be a row of integers below 2**63, or of floats; got ['a']; pass numbers in "
        "one dimension, or the path of a .npy file of them",
    ),
    (
        "a column of rows",
        lambda: ip.Column([[1], [2, 3]]),
        "a column must be a row of integers below 2**63, or of floats; got [[1], [2, 3]]; pass "
        "numbers in one dimension, or the path of a .npy file of them",
    ),
    (
        "a column of huge integers",
        lambda: ip.Column(np.array([2**63], np.uint64)),
        "a column must be a row of integers below 2**63, or of floats; got 9223372036854775808; "
        "pass numbers in one dimension, or the path of a .npy file of them",
    ),
    (
        "integers that no float is",
        lambda: ip.Column([-(2**53) - 1], "floats"),
        "a column must be of integers up to 2**53, for floats; got 9007199254740993; divide them",
    ),
    (
        "a column of another kind",
        lambda: ip.Column([1], "strings"),
        "kind must be one of integers, floats; got 'strings'; leave it out",
    ),
    (
        "floats for integers",
        lambda: Listed([0.5], 5),
        "a column must be a row of integers; got [0.5]; pass numbers in one dimension, or the path "
        "of a .npy file of them",
    ),
    (
        "a column that is no .npy file",
        lambda: ip.Column(written("a.npy", "text")),
        "a column's path must be that of a .npy file with a row of numbers; got '{here}/a.npy "
        "(This file contains pickled (object) data. If you trust the file you can load it unsafely "
        "using the `allow_pickle=` keyword argument or `pickle.load()`.)'; write it with np.save",
    ),
    (
        "a column of a table",
        lambda: ip.Column(saved("a.npy", np.zeros((2, 2)))),
        "{here}/a.npy must be a row of integers below 2**63, or of floats; got 'float64 of shape "
        "(2, 2)'; pass numbers in one dimension, or the path of a .npy file of them",
    ),
    (
        "a column of an archive",
        lambda: [np.savez("a.npz", np.zeros(2)), ip.Column("a.npz")],
        "a column's path must be that of a .npy file with a row of numbers; got '{here}/a.npz, an "
        "archive'; write it with np.save",
    ),
    (
        "a column that has changed",
        changed,
        "{here}/a.npy must be the file that was opened; got 'one that has changed'; open it again, "
        "when it is whole",
    ),
    (
        "a column that is gone",
        gone,
        "{here}/a.npy must be the file that was opened; got 'nothing'; open it again, when it is "
        "whole",
    ),
    (
        "another column under its name",
        claimed,
        f"{DIGEST}.npy must be the column of sha256 {DIGEST}; got 'one of sha256 "
        f"{ip.Column([1, 3]).to_dict()['sha256']}'; restore the file, which has changed since it "
        "was hashed",
    ),
    (
        "something else in a column's place",
        damaged,
        f"a.plan/columns/{DIGEST}.npy must hold 2 numbers of the sha256 in its name; it does not; "
        "restore the file, or build the plan again at another path",
    ),
    (
        "a column that is hidden",
        hidden,
        f"a.plan/columns/{DIGEST}.npy must be readable; got 'Permission denied'; check its "
        "permissions and its file system",
    ),
    (
        "a column that was removed",
        removed,
        f"{{here}}/a.plan/columns/{DIGEST}.npy must be readable; got 'No such file or directory'; "
        "check the path",
    ),
    (
        "a column that nobody has",
        described,
        f"samples needs a column of 2 numbers, <u4, of sha256 {DIGEST}; got none such; pass it, or "
        "the folder that it lies in, as columns= or --column",
    ),
    (
        "columns that are none",
        lambda: described(columns=5),
        "columns must be a folder, or columns; got 5; pass a list of arrays",
    ),
    (
        "a column of another type",
        lambda: described(dtype="<f4"),
        "samples's dtype must be one of <u4, <i8, <f8; got '<f4'; write specs with to_json",
    ),
    (
        "a column of half a length",
        lambda: described(length=0.5),
        "samples's length must be an integer from 0 to 2**60 - 1; got 0.5; write specs with "
        "to_json",
    ),
    (
        "a column of another digest",
        lambda: described(sha256="a.npy"),
        "samples's sha256 must be 64 hexadecimal digits; got 'a.npy'; write specs with to_json",
    ),
    (
        "a layer over no order",
        lambda: ip.Epochs(10, 5),
        "order must be an Order; got 10; pass indexplan.Shuffle(len(dataset))",
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
        "test-changing-bins-v1; give it epochs of its own",
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
        "np.flatnonzero(keep), or keep itself",
    ),
    (
        "a subset of another size than its order's",
        lambda: ip.Subset(ip.Shuffle(5), [1, 2], 5),
        "the order's num_samples must be 2, the number of indices; got 5; use an order of 2 "
        "samples",
    ),
    (
        "a subset of samples that are none",
        lambda: ip.Subset(ip.Shuffle(2), [1, 5], 5),
        "indices must be samples from 0 to 4; got 5; pass the samples to read, such as "
        "np.flatnonzero(keep), or keep itself",
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
        "the number of samples must be enough for 'val' to have one, which 10 are; got 3; use "
        "larger parts",
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
        "groups must be of 3 numbers, one for each sample; got 2; give each sample its group",
    ),
    (
        "one fold",
        lambda: ip.folds(10, 1),
        "k must be an integer from 2 to 65536; got 1; pass how many folds there are",
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
        "sizes must be a row of integers; got 10; make parts with indexplan.Split, or "
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
        "indices must be an order of single samples; got 'test-bins-v1'; pass one of single "
        "samples, or a list",
    ),
    (
        "a subset by an order of another dataset",
        lambda: ip.Subset(ip.Shuffle(5), ip.Shuffle(5), 10),
        "indices must be of 10 samples, the dataset's; got 5; make it for the whole dataset",
    ),
    (
        "epochs longer than all epochs inside",
        lambda: ip.Epochs(ip.Shuffle(3), 2**61),
        "epoch_size must be at most 12884901888, the units of its order's epochs; got "
        "2305843009213693952; use a smaller one",
    ),
    (
        "layers too deep",
        lambda: layered(8),
        "an order must be inside at most 7 others; got 'repeat-v1'; nest them less",
    ),
    (
        "a path in a column's place",
        pointed,
        "indices of an order of subset-v1 must be as its to_dict writes them; got {'algorithm': "
        "'subset-v1', 'order': {'algorithm': 'sequential-v1', 'num_samples': 3}, 'indices': "
        "'a.npy', 'num_samples': 10}; write specs with to_json",
    ),
    (
        "a field of nan",
        lambda: Spread(5, float("nan")).fingerprint,
        "the fields of an order of test-spread-v1 must be of JSON types, without NaN; got "
        "ValueError('Out of range float values are not JSON compliant'); use numbers, text, lists, "
        "columns and orders",
    ),
    (
        "a column with a mask",
        lambda: ip.Column(np.ma.array([1, 2], mask=[0, 1])),
        "a column must be a row of integers below 2**63, or of floats; got 'one with a mask'; "
        "leave out what is masked, or fill it",
    ),
    (
        "a column of integers that became floats",
        lambda: ip.Column([2**63, -1]),
        "a column must be a row of integers below 2**63, or of floats; got 9223372036854775808; "
        "pass numbers in one dimension, or the path of a .npy file of them",
    ),
    (
        "a range of samples that are none",
        lambda: ip.Subset(ip.Sequential(2**62), range(2**64), 2**63 - 1),
        "indices must be samples from 0 to 9223372036854775806; got 18446744073709551615; pass the "
        "samples to read, such as np.flatnonzero(keep), or keep itself",
    ),
]
