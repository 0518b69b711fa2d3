"""Columns are known by their numbers: in a list, an array, a file, a plan directory or a worker."""

from __future__ import annotations

import ast
import hashlib
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import indexplan as ip
from tests.support.fresh import printed
from tests.support.listed import Listed, Wrapped

INTEGERS = ("u1", "i2", "<u4", ">i4", "<i8", ">i8", "<u8")

loads = pickle.loads  # of our own


def digest(dtype: str, numbers: list[Any]) -> str:
    """The sha256 of the design's words, by `struct` alone."""
    letter = {"<u4": "I", "<i8": "q", "<f8": "d"}[dtype]
    body = struct.pack(f"<{len(numbers)}{letter}", *numbers)
    return hashlib.sha256(f"{dtype} {len(numbers)}\n".encode() + body).hexdigest()


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 2**32), max_size=9))
def test_equal_integers_are_one_column(numbers: list[int]) -> None:
    """Whatever type and container they come in, integers have the identity of their values."""
    dtype = "<u4" if all(0 <= each < 2**32 for each in numbers) else "<i8"
    expected = {"dtype": dtype, "length": len(numbers), "sha256": digest(dtype, numbers)}
    assert expected == ip.Column(numbers).to_dict()
    for kind in INTEGERS:
        least, most = np.iinfo(kind).min, np.iinfo(kind).max
        if all(least <= each <= most for each in numbers):
            array = np.array(numbers, kind)
            assert expected == ip.Column(array).to_dict()
            assert expected == ip.Column(np.repeat(array, 2)[::2]).to_dict()


@given(hnp.arrays("f8", st.integers(0, 9), elements=st.just(-0.0) | st.floats(allow_nan=False)))
def test_equal_floats_are_one_column(numbers: np.ndarray) -> None:
    """-0.0 is 0.0; integers that a float holds are that float where floats are asked for."""
    plain = [each + 0.0 for each in numbers.tolist()]
    expected = {"dtype": "<f8", "length": len(plain), "sha256": digest("<f8", plain)}
    assert expected == ip.Column(numbers, "floats").to_dict()
    assert expected == ip.Column(numbers.astype(">f8"), "floats").to_dict()
    whole = [int(each) for each in plain if abs(each) < 2**53]
    of_floats = ip.Column([float(each) for each in whole], "floats")
    assert of_floats == ip.Column(whole, "floats")


@pytest.mark.parametrize("length", [0, 1, 2**17 - 1, 2**17, 2**17 + 1, 3 * 2**17])
def test_blocks_join(length: int) -> None:
    """The digest does not depend on where blocks of numbers end."""
    array = np.arange(length) * 0.5
    data = f"<f8 {length}\n".encode() + array.tobytes()
    assert hashlib.sha256(data).hexdigest() == ip.Column(array, "floats").to_dict()["sha256"]
    assert ip.Column(np.arange(length)) == ip.Column(np.arange(length, dtype="u4"))


@pytest.mark.parametrize("dtype", ["<u4", "<i8", "<f8", "<f4", ">i8", "u1"])
def test_a_file_is_a_column(tmp_path: Path, dtype: str) -> None:
    """A file is mapped where it has a column's type, and pickles to its path."""
    array = np.arange(100).astype(dtype)
    np.save(tmp_path / "a.npy", array)
    column = ip.Column(tmp_path / "a.npy")
    assert column == ip.Column(array)
    assert (dtype in ("<u4", "<i8", "<f8")) == (column.array.base is not None)
    assert len(pickle.dumps(column)) < 600
    again = loads(pickle.dumps(column))
    assert (again, again.path) == (column, str(tmp_path / "a.npy"))
    assert not again.array.flags.writeable
    assert len(pickle.dumps(ip.Column(np.arange(10**5)))) > 10**5


def test_an_array_that_is_written_to_later() -> None:
    """What a caller does to an array afterwards does not reach the column."""
    array = np.arange(5)
    column = ip.Column(array)
    array[0] = 7
    assert [0, 1, 2, 3, 4] == column.array.tolist()


@pytest.mark.parametrize("how", ["written", "replaced"])
def test_a_file_that_changes(tmp_path: Path, how: str) -> None:
    """A file that has changed since it was opened, or hashed, is refused; a touched one is not."""
    path = tmp_path / "a.npy"
    np.save(path, np.arange(100))
    column = ip.Column(path)
    order = Listed(column, 100)
    saved = pickle.dumps(order)
    os.utime(path, ns=(1, 1))  # another time, the same numbers
    assert order == loads(saved)
    unhashed = ip.Column(path)
    if how == "written":
        with path.open("r+b") as stream:
            stream.seek(200)
            stream.write(b"\x0b")
    else:
        np.save(tmp_path / "b.npy", np.arange(100)[::-1])
        (tmp_path / "b.npy").rename(path)
    with pytest.raises(ip.IndexPlanError, match="which has changed since"):
        loads(saved)
    with pytest.raises(ip.IndexPlanError, match="must be the file that was opened"):
        unhashed.to_dict()


def test_a_file_that_changes_before_it_is_kept(tmp_path: Path) -> None:
    """Numbers that changed after they were hashed are never written under the digest."""
    path = tmp_path / "a.npy"
    np.save(path, np.arange(100))
    plan = ip.Plan(Listed(path, 100), world_size=1, batch_size=1)
    assert plan.fingerprint
    with path.open("r+b") as stream:
        stream.seek(200)
        stream.write(b"\x0b")
    for keep in (ip.save, ip.export):
        root = tmp_path / keep.__name__
        with pytest.raises(ip.IndexPlanError, match="must be the file that was opened"):
            keep(plan, root)
        assert [] == list(root.glob("columns/*"))


class Endless:
    """Something whose length nobody knows."""

    def __len__(self) -> int:
        raise ZeroDivisionError


def test_specs_hold_identities(tmp_path: Path) -> None:
    """Fingerprints, JSON and cursors hold digests; columns are found in lists and folders."""
    rows = np.array([3, 1, 3, 0], np.int64)
    order = Wrapped(Listed(rows, 5, [0.5, 2.0]))
    plan = ip.Plan(order, world_size=2, batch_size=1)
    text = plan.to_json()
    assert "0.5" not in text
    assert len(plan.cursor(0, step=1).to_json()) < 700
    assert {"<u4", "<f8"} == {each.to_dict()["dtype"] for each in order.columns.values()}
    for digest_of, column in order.columns.items():
        np.save(tmp_path / f"{digest_of}.npy", column.array)
    np.save(tmp_path / "rows.npy", rows)
    candidates: list[Any] = [
        [rows, [0.5, 2.0]],
        [Endless(), np.zeros(4), [1, 2], np.array([2, 0.5])[::-1], rows.astype("u1")],
        [ip.Column([0.5, 2.0]), tmp_path / "rows.npy"],
        tmp_path,
        str(tmp_path),
    ]
    (other := tmp_path / "other").mkdir()
    np.save(other / "a.npy", np.zeros((4, 2)))
    np.save(other / "b.npy", np.zeros(4))
    (other / "c.npy").write_bytes(b"none")
    np.save(other / "rows.npy", rows)
    np.save(other / "shares.npy", np.array([0.5, 2.0]))
    for columns in [*candidates, other, [other]]:
        again = ip.Plan.from_json(text, columns=columns)
        assert (again, again.fingerprint) == (plan, plan.fingerprint)
        assert again.indices(0, rank=0).tolist() == plan.indices(0, rank=0).tolist()
    nothing = ip.Plan(Listed([3, 1], 5, []), world_size=1, batch_size=1)
    np.save(other / "none.npy", np.empty(0))
    ip.save(nothing, tmp_path / "none.plan")
    assert nothing == ip.load(tmp_path / "none.plan")
    assert ip.verify(ip.load(tmp_path / "none.plan")).ok
    folder = tmp_path / "none.plan/columns"
    for columns in ([[3, 1], []], [[3, 1], str(other / "none.npy")], folder):
        assert nothing == ip.Plan.from_json(nothing.to_json(), columns=columns)
    for columns in (None, [], [rows], [rows, [0.5, 2.1]], tmp_path / "rows.npy"):
        with pytest.raises(ip.IndexPlanError, match=r"(samples|shares) needs a column of \d"):
            ip.Plan.from_json(text, columns=columns)
    for columns in (tmp_path / "nowhere", [tmp_path / "nowhere"], "x" * 100_000):
        with pytest.raises(ip.IndexPlanError, match=r"a column's path must be .*; check the path"):
            ip.Plan.from_json(text, columns=columns)


@pytest.mark.slow
def test_a_worker_maps_what_lies_in_a_file(tmp_path: Path) -> None:
    """A spawned worker that gets an order over a file of 80 MB grows by less than 10 MB."""
    np.save(tmp_path / "a.npy", np.arange(10**7, dtype=np.int64))
    (tmp_path / "order").write_bytes(pickle.dumps(Listed(tmp_path / "a.npy", 10**7)))
    code = (
        "import pathlib, pickle, sys, tests.support.listed\n"
        "from benchmarks.measure.memory import measured\n"
        "data = pathlib.Path(sys.argv[1]).read_bytes()\n"
        "job = lambda: pickle.loads(data).take(0, 5_000_000, 5_000_003).tolist()\n"
        "print(*measured(job), sep='\\n')\n"  # pages of mapped files that were read count, too
    )
    taken, grown = printed("-c", code, tmp_path / "order").splitlines()
    assert "[5000000, 5000001, 5000002]" == taken
    assert ast.literal_eval(grown)["peak_bytes"] < 10**7
