"""What an error about values or a file advises is done, and then the call works."""

from __future__ import annotations

import json
import re
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
# what is called, with which values, and which numbers are those that it says to pass instead
VALUES: list[tuple[list[Callable[[Any], Any]], Any, list[Any]]] = [
    (LENGTHS, SECONDS, [1250, 800, 3500]),
    (LENGTHS, np.array(SECONDS, np.float32), [1250, 800, 3500]),
    (LENGTHS, pd.Series(SECONDS), [1250, 800, 3500]),
    (LENGTHS, pa.array(SECONDS), [1250, 800, 3500]),
    (LENGTHS, pd.Series([timedelta(seconds=each) for each in SECONDS]), [1250, 800, 3500]),
    (LENGTHS, [3.0, 1.0, 2.0], [3, 1, 2]),
    (LENGTHS, ["3", "1", "2"], [3, 1, 2]),
    (LENGTHS, ["a text", "b", "cd"], [6, 1, 2]),
    (LENGTHS, [[7, 8], [9], [1, 2, 3]], [2, 1, 3]),
    (LENGTHS, [[7, 8], [9, 1], [2, 3]], [2, 2, 2]),
    (LENGTHS, {"a": 3, "b": 1, "c": 2}, [3, 1, 2]),
    (NAMED, ["b", "a", "b"], [1, 0, 1]),
    (NAMED, [b"b", b"a", b"b"], [1, 0, 1]),
    (NAMED, np.array(["b", "a", "b"], object), [1, 0, 1]),
    (NAMED, pd.Series(["b", "a", "b"]), [1, 0, 1]),
    (NAMED, pd.Series(["b", "a", "b"]).astype("category"), [1, 0, 1]),
    (NAMED, pa.array(["b", "a", "b"]), [1, 0, 1]),
    (NAMED, np.array(["2026-02", "2026-01", "2026-02"], "M8[D]"), [1, 0, 1]),
    (NAMED, [("b", "1"), ("a", "1"), ("b", "1")], [1, 0, 1]),
    (NAMED, [0.5, 0.25, 0.5], [1, 0, 1]),
    (NAMED, [1.0, 0.0, 1.0], [1, 0, 1]),
    (INDICES[1:], [True, False, True], [0, 2]),
    (INDICES, [0.0, 2.0], [0, 2]),
    ([ip.ShardShuffle], {"0.tar": 3, "1.tar": 5}, [3, 5]),
    ([ip.ShardShuffle], [3.0, 5.0], [3, 5]),
    ([ip.Weighted], [Decimal("0.5"), Decimal(2)], [0.5, 2]),
]


ADVICE = re.compile(r"(numpy\.|pandas\.|json\.|list\(|\[len).*?(?=; |, and |, one |, if |$)")


def advised(call: Callable[[Any], Any], value: Any, **known: Any) -> Any:
    """Return the value of the expression in the error of a call, which it says to pass instead."""
    with pytest.raises(ip.IndexPlanError) as error:
        call(value)
    assert "pickle" not in str(error.value)
    expression = ADVICE.search(str(error.value.cure))
    assert expression, error.value
    known |= {"numpy": np, "pandas": pd, "json": json, "Path": Path}
    return eval(expression[0], known)  # noqa: S307 (of the library)


@pytest.mark.parametrize("which", range(len(VALUES)))
def test_values(which: int) -> None:
    """The expression in the error is evaluated on what was passed, and passed instead."""
    calls, values, expected = VALUES[which]
    for call in calls:
        followed = advised(call, values, values=values, names=values, mask=values)
        assert expected == np.asarray(followed).tolist()
        call(followed)


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


@pytest.mark.usefixtures("here")
def test_files() -> None:
    """What reads a file that is no .npy, by its name; no advice to unpickle one."""
    for name in ("raw.npy", "raw.bin"):
        np.array([3, 1, 2], np.uint32).tofile(name)
    np.savez("a.npz", lengths=[3, 1, 2])
    for name in ("a.txt", "a.csv", "a.tsv"):
        Path(name).write_text("3\n1\n2\n")
    Path("list.json").write_text("[3, 1, 2]")
    pd.DataFrame({"lengths": [3, 1, 2]}).to_parquet("a.parquet")
    for path in Path().iterdir():
        for call in LENGTHS:
            read = advised(call, str(path), path=path, dtype=np.uint32, name="lengths")
            assert [3, 1, 2] == np.asarray(read).tolist()
            call(read)


@pytest.mark.usefixtures("here")
def test_indexes_of_shards() -> None:
    """Counts by name, as open_clip writes them, go to ShardShuffle; so does a list of counts."""
    for counts in ({"00000.tar": 3, "00001.tar": 5}, [3, 5]):
        Path("sizes.json").write_text(json.dumps(counts))
        with pytest.raises(ip.IndexPlanError) as error:
            ip.shard_sizes("sizes.json")
        expression = str(error.value).rpartition("pass ")[2]
        known = {"ShardShuffle": ip.ShardShuffle, "json": json, "Path": Path}
        assert ip.ShardShuffle([3, 5]) == eval(expression, known)  # noqa: S307
