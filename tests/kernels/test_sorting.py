"""Sorting in linear time, against Python's own sort."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from indexplan.kernels.sorting import sort_rows

KEYS = st.integers(0, 5) | st.sampled_from([2**16 - 1, 2**16, 2**48]) | st.integers(0, 2**64 - 1)


@given(st.lists(KEYS, max_size=40))
def test_rows_are_sorted_by_key(keys: list[int]) -> None:
    """Rows of equal keys keep their order, and the keys that were given are left alone."""
    given_keys = np.array(keys, np.uint64).view(np.int64)
    found, rows = sort_rows(given_keys, max([1, *keys]).bit_length())
    assert sorted(range(len(keys)), key=keys.__getitem__) == rows.tolist()
    assert sorted(keys) == found.view(np.uint64).tolist()
    assert keys == given_keys.view(np.uint64).tolist()
