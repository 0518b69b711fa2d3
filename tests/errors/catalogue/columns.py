"""Errors of columns."""

from __future__ import annotations

import json
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
    plan = json.loads(ip.Plan(ip.Sequential(5), batch_size=1).to_json())
    return ip.Plan.from_json(json.dumps({**plan, "order": data}), columns=columns)


def damaged() -> Any:
    """Build on where something else lies in a column's place."""
    plan = ip.Plan(Listed([3, 1], 5), batch_size=1)
    ip.save(plan, "a.plan", part=(1, 2))
    written(f"a.plan/columns/{DIGEST}.npy", "other numbers")
    return ip.save(plan, "a.plan")


def read_damaged() -> Any:
    """Read a column of a plan directory that was damaged."""
    ip.save(ip.Plan(Listed([3, 1], 5), batch_size=1), "a.plan")
    path = Path(f"a.plan/columns/{DIGEST}.npy")
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    return ip.load("a.plan").order.locate(0, 1)


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
    ("a path in JSON", lambda: described(samples="/some/pipe")),
    ("a named pipe", piped),
    ("a range that would take gigabytes", lambda: ip.Weighted(range(10**9))),
    ("a column of text", lambda: ip.Column(["a"])),
    ("a boolean among a column's integers", lambda: ip.Column([True, 2, 3])),
    ("a boolean among weights", lambda: ip.Weighted([0.5, True])),
    ("a mask with numbers in it", lambda: ip.Subset(ip.Shuffle(3), [True, 2, 3], 3)),
    ("a column of rows", lambda: ip.Column([[1], [2, 3]])),
    ("a column of huge integers", lambda: ip.Column(np.array([2**63], np.uint64))),
    ("integers that no float is", lambda: ip.Column([-(2**53) - 1], "floats")),
    ("floats for integers", lambda: Listed([0.5], 5)),
    (
        "many floats for integers",
        lambda: ip.Plan(ip.Shuffle(100), world_size=1, batch_size=2).step_total(
            [0.5] * 100, epoch=0, step=0
        ),
    ),
    ("a column that is no .npy file", lambda: ip.Column(written("a.npy", "text"))),
    ("a column of a table", lambda: ip.Column(saved("a.npy", np.zeros((2, 2))))),
    ("a column of an archive", lambda: [np.savez("a.npz", np.zeros(2)), ip.Column("a.npz")]),
    ("a column that has changed", changed),
    ("a column that is gone", gone),
    ("another column under its name", claimed),
    ("something else in a column's place", damaged),
    ("a column that was damaged", read_damaged),
    ("a column that is hidden", hidden),
    ("a column that was removed", removed),
    ("a column that nobody has", described),
    ("columns that are none", lambda: described(columns=5)),
    ("a column of another type", lambda: described(dtype="<f4")),
    ("a column of half a length", lambda: described(length=0.5)),
    ("a column of another digest", lambda: described(sha256="a.npy")),
    ("a column with a mask", lambda: ip.Column(np.ma.array([1, 2], mask=[0, 1]))),
    ("a column of integers that became floats", lambda: ip.Column([2**63, -1])),
    ("a column of integers of more than 64 bits", lambda: ip.Column([1, 2**64])),
    ("a column of an array of such integers", lambda: Listed(np.array([1, 2**64], object), 5)),
]
