"""Splits: disjoint parts that cover a dataset, groups kept together, the same for ever."""

from __future__ import annotations

import pickle
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import indexplan as ip
from indexplan import kernels
from indexplan.orders import classes as module
from indexplan.orders.columns import BLOCK
from tests.support import oracles

PURPOSE = 18
THIRDS = {"a": 1, "b": 1, "c": 1}
SHARES = st.lists(st.sampled_from([1, 2, 3, 10, 0.1, 0.25, 0.7]), min_size=1, max_size=5)

# Close together, or as far from each other as hashes are.
GROUPS = st.integers(-3, 9) | st.sampled_from([-(2**63), 2**63 - 1]) | st.integers(-(2**40), 2**40)


def split_or_none(n: int, shares: list[float], **options: Any) -> ip.Split | None:
    """Split, unless a part would be empty."""
    try:
        return ip.Split(n, [(f"part {i}", each) for i, each in enumerate(shares)], **options)
    except ip.IndexPlanError as error:
        assert "has one" in str(error)  # noqa: PT017 (another error is a fault)
        return None


@pytest.mark.parametrize("apart", [1, 10**7])
def test_a_file_that_was_deleted_since(apart: int, tmp_path: Path) -> None:
    """Its numbers stay mapped, so a part is that of the groups themselves."""
    groups = np.arange(100) // 5 * apart
    np.save(tmp_path / "groups.npy", groups)
    shares = {"train": 8, "val": 2}
    split = ip.Split(100, shares, groups=tmp_path / "groups.npy", seed=1)
    (tmp_path / "groups.npy").unlink()
    of_lists = ip.Split(100, shares, groups=groups, seed=1)
    for name in shares:
        want, got = of_lists[name], split[name]
        np.testing.assert_array_equal(want.take(0, 0, len(want)), got.take(0, 0, len(got)))


@given(st.integers(1, 200), SHARES, st.integers(0, 2**128 - 1))
def test_parts_are_the_oracles(n: int, shares: list[float], seed: int) -> None:
    """Parts are intervals of the keyed order, of sizes within one of their shares."""
    split = split_or_none(n, shares, seed=seed)
    if split is None:
        return
    words = oracles.key_words(seed, PURPOSE, 0, 2 * oracles.rounds_of(n), n)
    row = [oracles.forward(n, words, position) for position in range(n)]
    total = sum(Fraction(str(share)) for share in shares)
    for share, part in zip(shares, split.values(), strict=True):
        own, row = row[: len(part)], row[len(part) :]
        assert own == part.take(5, 0, len(part)).tolist() == part.take(0, 0, len(part)).tolist()
        assert abs(len(part) - n * Fraction(str(share)) / total) < 1
        expected = [own.index(sample) if sample in own else -1 for sample in range(n)]
        assert expected == part.locate(7, range(n)).tolist()
    assert [] == row
    for left_out, part in enumerate(split.values() if len(split) > 1 else []):  # as folds do
        others = replace(part, parts=[i for i in range(len(split)) if i != left_out])
        rows = [each.take(0, 0, len(each)).tolist() for each in (part, others)]
        assert list(range(n)) == sorted(sum(rows, []))


@example([0, 2, 2, 5], [1, 1], 0)
@given(
    st.lists(st.integers(-3, 9), min_size=1, max_size=80)
    | st.lists(GROUPS, min_size=1, max_size=80),
    SHARES,
    st.integers(0, 9),
)
def test_groups_stay_together(groups: list[int], shares: list[float], seed: int) -> None:
    """Each group is in one part, by the keyed order of values; parts are shares of the groups."""
    split = split_or_none(len(groups), shares, seed=seed, groups=groups)
    if split is None:
        return
    values = sorted(set(groups))
    total = sum(Fraction(str(share)) for share in shares)
    words = oracles.key_words(seed, PURPOSE, 0, 2 * oracles.rounds_of(len(values)), len(groups))
    row = [values[oracles.forward(len(values), words, i)] for i in range(len(values))]
    sizes = next(iter(split.values())).sizes
    for share, size, part in zip(shares, sizes, split.values(), strict=True):
        assert abs(size - len(values) * Fraction(str(share)) / total) < 1
        chosen, row = row[:size], row[size:]
        expected = [sample for sample, group in enumerate(groups) if group in chosen]
        assert expected == part.take(0, 0, len(part)).tolist()
        places = [expected.index(i) if i in expected else -1 for i in range(len(groups))]
        assert places == part.locate(0, range(len(groups))).tolist()


@pytest.mark.parametrize("apart", [1, 10**7])
def test_groups_of_more_samples_than_are_looked_at_at_a_time(apart: int) -> None:
    """A part has all samples of its groups, rising, and the parts have all samples."""
    num = 2 * BLOCK + 5
    groups = np.arange(num) * 7919 % 5003 * apart
    rows = [part.take(0, 0, len(part)) for part in ip.Split(num, THIRDS, groups=groups).values()]
    for row in rows:
        np.testing.assert_array_equal(np.flatnonzero(np.isin(groups, groups[row])), row)
    assert num == sum(map(len, rows))


@pytest.mark.parametrize("num_parts", [2, 256, 257, 300])
def test_groups_are_numbered_once(num_parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the split, whose parts share what it found; a pickled part does it by itself."""
    groups = np.arange(900) // 3 * 7**20
    split = ip.Split(900, [(str(i), 1) for i in range(num_parts)], groups=groups)
    again = pickle.loads(pickle.dumps(split["1"]))  # noqa: S301
    monkeypatch.setattr(module, "_sorted", None)
    read = [part.take(0, 0, len(part)) for part in split.values()]
    assert list(range(900)) == sorted(np.concatenate(read).tolist())
    monkeypatch.undo()
    assert read[1].tolist() == again.take(0, 0, len(again)).tolist()


def test_how_many_samples_are_enough() -> None:
    """An error names a number that is; fewer may be, as the largest remainder decides."""
    with pytest.raises(ip.IndexPlanError, match="or split 10 or more"):
        ip.Split(3, {"train": 0.9, "val": 0.1})
    for n in (6, 10, 11, 97):
        split = ip.Split(n, {"train": 0.9, "val": 0.1})
        assert len(split["val"]) >= 1
    assert "<Split of train: 87 samples, val: 10 samples>" == repr(split)


def test_a_trillion_samples() -> None:
    """The largest remainders decide to the last sample, and each is found in its own part."""
    thirds = ip.Split(10**12, THIRDS)
    assert [333333333334, 333333333333, 333333333333] == [len(part) for part in thirds.values()]
    part, sample = thirds["b"], thirds["b"].take(0, 123_456_789_012)
    assert [123_456_789_012] == part.locate(0, sample).tolist()
    assert np.all(thirds["a"].locate(0, sample) == -1)


@pytest.mark.parametrize("share", [True, "0.5", np.True_], ids=repr)
def test_shares_are_numbers_as_they_are_written(share: Any) -> None:
    """Text and booleans are refused, as for weights; no digit of an integer is lost."""
    with pytest.raises(ip.IndexPlanError, match="parts must be names, each with a positive number"):
        ip.Split(10, {"train": share, "val": 0.5})
    sizes = {"train": 2**53 + 1, "val": 2**53 - 1}
    assert sizes == {name: len(part) for name, part in ip.Split(2**54, sizes).items()}
    with pytest.raises(ip.IndexPlanError, match=r"a larger share$"):
        ip.Split(3, {"train": 10**5000, "val": 1})


def test_labels_of_a_changed_file_stay_inside() -> None:
    """Those past the least and the last that were seen are not marked, found, counted or placed."""
    labels, bits, found = np.array([-9, 3, 2**60, 64]), np.zeros(8, np.uint8), np.empty(4, np.int64)
    kernels.classes.mark_labels(labels, 0, bits)
    assert [8, *[0] * 7] == bits.tolist()
    assert 1 == kernels.classes.find_marked(labels, 0, bits, found)
    assert 1 == found[0]
    room, places = np.zeros(99, np.int64), np.empty(4, np.int64)
    kernels.classes.count_labels(labels, 0, room[50:60])
    kernels.classes.place_members(np.array([-1, 0, 0, -1]), room[53:54], places)
    assert [3] == room[room > 0].tolist()
    assert [1, 2] == places[1:3].tolist()
