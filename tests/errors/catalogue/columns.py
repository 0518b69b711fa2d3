"""Errors of columns."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

import indexplan as ip
from tests.errors.catalogue.made import Case, locked, written
from tests.support.listed import Listed

DIGEST = ip.Column([3, 1]).to_dict()["sha256"]


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


def described(columns: Any = None, samples: Any = None, **identity: Any) -> Any:
    """Read an order whose column has another identity, or something else in its place."""
    data = Listed([3, 1], 5).to_dict()
    data["samples"] = samples or {**data["samples"], **identity}
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


def piped() -> Any:
    """Pass a named pipe as a column."""
    os.mkfifo("weights.npy")
    return ip.Weighted("weights.npy")


CASES: list[Case] = [
    (
        "a path in JSON",
        lambda: described(samples="/some/pipe"),
        "a column must be given in JSON by dtype, length and sha256; got '/some/pipe'; write "
        "specs with to_json",
    ),
    (
        "a named pipe",
        piped,
        "a column's path must be that of a .npy file of numbers in one dimension; got "
        "'{here}/weights.npy (a pipe, device or socket)'; write it with np.save",
    ),
    (
        "a range that would take gigabytes",
        lambda: ip.Weighted(range(10**9)),
        "weights must be an array, or a range of at most 134,217,728 numbers; got range(0, "
        "1000000000); pass np.arange(...), or a file, if you have the memory",
    ),
    (
        "a column of text",
        lambda: ip.Column(["a"]),
        "a column must be a flat list or array of integers below 2**63, or of floats; got ['a']; "
        "number the names: numpy.unique(names, return_inverse=True)[1]",
    ),
    (
        "a boolean among a column's integers",
        lambda: ip.Column([True, 2, 3]),
        "a column must be a flat list or array of integers below 2**63, or of floats; got [True, "
        "2, 3]; pass integers, such as an int64 array",
    ),
    (
        "a boolean among weights",
        lambda: ip.Weighted([0.5, True]),
        "weights must be a flat list or array of floats; got [0.5, True]; pass numbers, or keep "
        "the samples of a mask with indexplan.Subset",
    ),
    (
        "a mask with numbers in it",
        lambda: ip.Subset(ip.Shuffle(3), [True, 2, 3], 3),
        "indices, a mask, must be of shape (3,), a boolean for each sample; got [True, 2, 3]; make "
        "it for the whole dataset",
    ),
    (
        "a column of rows",
        lambda: ip.Column([[1], [2, 3]]),
        "a column must be a flat list or array of integers below 2**63, or of floats; got [[1], "
        "[2, 3]]; pass numbers in one dimension, or the path of a .npy file of them",
    ),
    (
        "a column of huge integers",
        lambda: ip.Column(np.array([2**63], np.uint64)),
        "a column must be a flat list or array of integers below 2**63, or of floats; got "
        "9223372036854775808; pass smaller integers, or floats",
    ),
    (
        "integers that no float is",
        lambda: ip.Column([-(2**53) - 1], "floats"),
        "a column must be integers up to 2**53, which floats hold exactly; got 9007199254740993; "
        "divide them",
    ),
    (
        "a column of another kind",
        lambda: ip.Column([1], "strings"),
        "kind must be one of integers, floats; got 'strings'; leave it out",
    ),
    (
        "a column of a list of kinds",
        lambda: ip.Column([1], kind=[]),  # type: ignore[arg-type]
        "kind must be one of integers, floats; got []; leave it out",
    ),
    (
        "floats for integers",
        lambda: Listed([0.5], 5),
        "a column must be a flat list or array of integers; got [0.5]; pass integers, such as an "
        "int64 array",
    ),
    (
        "many floats for integers",
        lambda: ip.Plan(ip.Shuffle(100), world_size=1, batch_size=2).step_total(
            [0.5] * 100, epoch=0, step=0
        ),
        "a column to sum must be a flat list or array of integers; got 'float64 of shape (100,)'; "
        "pass integers, such as an int64 array",
    ),
    (
        "a column that is no .npy file",
        lambda: ip.Column(written("a.npy", "text")),
        "a column's path must be that of a .npy file of numbers in one dimension; got "
        "'{here}/a.npy (This file contains pickled (object) data. If you trust the file you can "
        "load it unsafely using the `allow_pickle=` keyword argument or `pickle.load()`.)'; write "
        "it with np.save",
    ),
    (
        "a column of a table",
        lambda: ip.Column(saved("a.npy", np.zeros((2, 2)))),
        "{here}/a.npy must be a flat array of integers below 2**63, or of floats; got "
        "'float64 of shape (2, 2)'; pass numbers in one dimension, or the path of a .npy file of "
        "them",
    ),
    (
        "a column of an archive",
        lambda: [np.savez("a.npz", np.zeros(2)), ip.Column("a.npz")],
        "a column's path must be that of a .npy file of numbers in one dimension; got "
        "'{here}/a.npz, an archive'; write it with np.save",
    ),
    (
        "a column that has changed",
        changed,
        "{here}/a.npy must be the file that was opened; got 'one that has changed'; open it again "
        "once it is complete",
    ),
    (
        "a column that is gone",
        gone,
        "{here}/a.npy must be the file that was opened; got 'nothing'; open it again once it is "
        "complete",
    ),
    (
        "another column under its name",
        claimed,
        f"{DIGEST}.npy must be the column with sha256 {DIGEST}; got 'one with sha256 "
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
        f"samples needs a column of 2 numbers, <u4, with sha256 {DIGEST}; got no such column; "
        "pass it, or the folder that it is in, as columns= or --column",
    ),
    (
        "columns that are none",
        lambda: described(columns=5),
        "columns must be a folder or list of columns; got 5; pass a list of arrays",
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
        "a column with a mask",
        lambda: ip.Column(np.ma.array([1, 2], mask=[0, 1])),
        "a column must be a flat list or array of integers below 2**63, or of floats; got 'a "
        "masked array'; leave out what is masked, or fill it",
    ),
    (
        "a column of integers that became floats",
        lambda: ip.Column([2**63, -1]),
        "a column must be a flat list or array of integers below 2**63, or of floats; got "
        "9223372036854775808; pass smaller integers, or floats",
    ),
    (
        "a column of integers of more than 64 bits",
        lambda: ip.Column([1, 2**64]),
        "a column must be a flat list or array of integers below 2**63, or of floats; got "
        "18446744073709551616; pass smaller integers, or floats",
    ),
    (
        "a column of an array of such integers",
        lambda: Listed(np.array([1, 2**64], object), 5),
        "a column must be a flat list or array of integers; got 18446744073709551616; pass smaller "
        "integers",
    ),
]
