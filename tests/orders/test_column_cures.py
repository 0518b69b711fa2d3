"""What an error about values or a file advises is done, and then the call works."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import indexplan as ip

LENGTHS: list[Callable[[Any], Any]] = [
    partial(ip.TokenBudget, max_tokens=10**6),
    partial(ip.LengthGrouped, batch_size=2),
    partial(ip.Packed, max_length=10**6),
    partial(ip.DocumentWindows, length=1),
    ip.Balance,
]
NAMED: list[Callable[[Any], Any]] = [
    partial(ip.Grouped, batch_size=2),
    ip.ClassBalanced,
    partial(ip.ClassBatches, classes=2, per_class=1),
    lambda groups: ip.Split(3, {"a": 0.5, "b": 0.5}, groups=groups)["a"],
]
INDICES: list[Callable[[Any], Any]] = [
    lambda indices: ip.Subset(ip.Shuffle(2), indices, 3),
    lambda samples: ip.Without(ip.Shuffle(3), samples),
]
SECONDS = [1.25, 0.8, 3.5004]
FROM_NAMES = "numpy.unique(names, return_inverse=True)[1]"
FROM_TEXTS = "[len(each) for each in values]"
IN_MS = "numpy.round(1000 * numpy.asarray(values)).astype(numpy.int64)"
AS_INT = "numpy.asarray(values, numpy.int64)"
AS_FLOAT = "numpy.asarray(values, float)"
# what is called, with which values, what it says to pass, and which numbers that is
VALUES: list[tuple[list[Callable[[Any], Any]], Any, str, list[Any]]] = [
    (LENGTHS, SECONDS, IN_MS, [1250, 800, 3500]),
    (LENGTHS, np.array(SECONDS, np.float32), IN_MS, [1250, 800, 3500]),
    (LENGTHS, pd.Series(SECONDS), IN_MS, [1250, 800, 3500]),
    (LENGTHS, pa.array(SECONDS), IN_MS, [1250, 800, 3500]),
    (
        LENGTHS,
        pd.Series([timedelta(seconds=each) for each in SECONDS]),
        "numpy.asarray(values, 'timedelta64[ms]').astype(numpy.int64)",
        [1250, 800, 3500],
    ),
    (LENGTHS, [3.0, 1.0, 2.0], AS_INT, [3, 1, 2]),
    (LENGTHS, ["3", "1", "2"], AS_INT, [3, 1, 2]),
    (LENGTHS, ["a text", "b", "cd"], FROM_TEXTS, [6, 1, 2]),
    (LENGTHS, [[7, 8], [9], [1, 2, 3]], FROM_TEXTS, [2, 1, 3]),
    (LENGTHS, [[7, 8], [9, 1], [2, 3]], FROM_TEXTS, [2, 2, 2]),
    (LENGTHS, {"a": 3, "b": 1, "c": 2}, "list(values.values())", [3, 1, 2]),
    (NAMED, ["b", "a", "b"], FROM_NAMES, [1, 0, 1]),
    (NAMED, [b"b", b"a", b"b"], FROM_NAMES, [1, 0, 1]),
    (NAMED, np.array(["b", "a", "b"], object), FROM_NAMES, [1, 0, 1]),
    (NAMED, pd.Series(["b", "a", "b"]), FROM_NAMES, [1, 0, 1]),
    (NAMED, pd.Series(["b", "a", "b"]).astype("category"), FROM_NAMES, [1, 0, 1]),
    (NAMED, pa.array(["b", "a", "b"]), FROM_NAMES, [1, 0, 1]),
    (NAMED, np.array(["2026-02", "2026-01", "2026-02"], "M8[D]"), FROM_NAMES, [1, 0, 1]),
    (
        NAMED,
        [("b", "1"), ("a", "1"), ("b", "1")],
        "numpy.unique(names, axis=0, return_inverse=True)[1]",
        [1, 0, 1],
    ),
    (NAMED, [0.5, 0.25, 0.5], FROM_NAMES.replace("names", "values"), [1, 0, 1]),
    (NAMED, [1.0, 0.0, 1.0], AS_INT, [1, 0, 1]),
    (INDICES[1:], [True, False, True], "numpy.flatnonzero(mask)", [0, 2]),
    (INDICES, [0.0, 2.0], AS_INT, [0, 2]),
    ([ip.ShardShuffle], {"0.tar": 3, "1.tar": 5}, "list(values.values())", [3, 5]),
    ([ip.ShardShuffle], [3.0, 5.0], AS_INT, [3, 5]),
    ([ip.Weighted], [Decimal("0.5"), Decimal(2)], AS_FLOAT, [0.5, 2]),
]


@pytest.mark.parametrize("which", range(len(VALUES)))
def test_values(which: int) -> None:
    """The expression in the error is evaluated on what was passed, and passed instead."""
    calls, values, said, expected = VALUES[which]
    for call in calls:
        with pytest.raises(ip.IndexPlanError) as error:
            call(values)
        assert said in str(error.value)
        known = {"numpy": np, "values": values, "names": values, "mask": values}
        followed = eval(said, known)  # noqa: S307 (of this file)
        assert expected == np.asarray(followed).tolist()
        call(followed)


def test_the_limit_is_counted_alike() -> None:
    """Milliseconds with a limit in seconds, as fractions or whole, name the unit or the length."""
    lengths = np.round(1000 * np.asarray(SECONDS)).astype(np.int64)
    with pytest.raises(ip.IndexPlanError, match="limits too"):
        ip.TokenBudget(SECONDS, max_tokens=200)
    with pytest.raises(ip.IndexPlanError, match="counted as the lengths are"):
        ip.TokenBudget(lengths, max_tokens=7.5)  # type: ignore[arg-type]
    with pytest.raises(ip.IndexPlanError, match="must be at least 3500, the longest length"):
        ip.TokenBudget(lengths, max_tokens=200)
    assert 2 == ip.TokenBudget(lengths, max_tokens=7000, num_buckets=1).num_units(0)


@pytest.mark.parametrize(
    "values",
    [
        [1.5, float("nan"), 2],
        pd.Series([3, None, 2], dtype="Int64"),
        pd.Series([3, None, 2]),
        pa.array([3, None, 2]),
        [3, None, 2],
        ["a", None, "b"],
    ],
)
def test_missing_values(values: Any) -> None:
    """They are not rounded, numbered or taken for 0."""
    for call in [*LENGTHS, *NAMED]:
        with pytest.raises(ip.IndexPlanError, match="leave out or fill what is missing"):
            call(values)


def test_other_values() -> None:
    """A table's column, an iterator's list, and the numbers of samples for their names."""
    for values, said in (
        (pd.DataFrame({"length": [3, 1]}), "pass one of its columns"),
        (pa.table({"length": [3, 1]}), "pass one of its columns"),
        ((each for each in [3, 1]), "pass list(values)"),
    ):
        with pytest.raises(ip.IndexPlanError) as error:
            ip.Balance(values)  # type: ignore[arg-type]
        assert str(error.value).endswith(f"; {said}")
    for values, call, said in (
        (["a.jpg"], INDICES[0], "pass the numbers of samples, counted from 0"),
        (["a.tar"], ip.ShardShuffle, "pass how many samples each shard holds"),
    ):
        with pytest.raises(ip.IndexPlanError) as error:
            call(values)
        assert str(error.value).endswith(f"; {said}")


def files() -> dict[str, tuple[str, Any]]:
    """Write files of 3, 1, 2 in the current folder; return what is said of each, and done then."""
    np.array([3, 1, 2], np.uint32).tofile("raw.npy")
    np.array([3, 1, 2], np.uint32).tofile("raw.bin")
    np.savez("a.npz", lengths=[3, 1, 2])
    for name in ("a.txt", "a.csv", "a.tsv"):
        Path(name).write_text("3\n1\n2\n")
    Path("list.json").write_text("[3, 1, 2]")
    pd.DataFrame({"n": [3, 1, 2]}).to_parquet("a.parquet")
    raw, read = "numpy.memmap(path, dtype, 'r')", "json.loads(Path(path).read_text())"
    return {
        "raw.npy": (raw, lambda path: np.memmap(path, np.uint32, "r")),
        "raw.bin": (raw, lambda path: np.memmap(path, np.uint32, "r")),
        "a.npz": ("numpy.load(path)[name]", lambda path: np.load(path)["lengths"]),
        "a.txt": ("numpy.loadtxt(path, int)", lambda path: np.loadtxt(path, int)),
        "a.csv": (
            "numpy.loadtxt(path, int, delimiter=',')",
            lambda path: np.loadtxt(path, int, delimiter=","),
        ),
        "a.tsv": ("numpy.loadtxt(path, int)", lambda path: np.loadtxt(path, int)),
        "list.json": (read, lambda path: json.loads(Path(path).read_text())),
        "a.parquet": ("pandas.read_parquet(path)[name]", lambda path: pd.read_parquet(path)["n"]),
    }


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What reads a file that is no .npy, by its name; no advice to unpickle one."""
    monkeypatch.chdir(tmp_path)
    for path, (said, read) in files().items():
        for call in LENGTHS:
            with pytest.raises(ip.IndexPlanError) as error:
                call(path)
            assert said in str(error.value)
            assert "pickle" not in str(error.value)
            call(read(path))
    with pytest.raises(ip.IndexPlanError, match="; check the path"):
        ip.Balance("nowhere.npy")
    with pytest.raises(ip.IndexPlanError, match="; copy the file to this machine first"):
        ip.Balance("s3://bucket/a.npy")
    with pytest.raises(ip.IndexPlanError, match="; pass the path of a file in it"):
        ip.Balance(".")


def test_indexes_of_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts by name, as open_clip writes them, go to ShardShuffle; so does a list of counts."""
    monkeypatch.chdir(tmp_path)
    os.mkdir("laion")  # noqa: PTH102 (as a user would)
    for counts in ({"00000.tar": 3, "00001.tar": 5}, [3, 5]):
        Path("laion/sizes.json").write_text(json.dumps(counts))
        with pytest.raises(ip.IndexPlanError) as error:
            ip.shard_sizes("laion/sizes.json")
        expression = str(error.value).rpartition("pass ")[2]
        known = {"ShardShuffle": ip.ShardShuffle, "json": json, "Path": Path}
        assert ip.ShardShuffle([3, 5]) == eval(expression, known)  # noqa: S307
