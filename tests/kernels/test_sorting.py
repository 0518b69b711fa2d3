"""Sorting in linear time, against Python's own sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexplan.kernels import sorting

KEYS = st.integers(0, 5) | st.sampled_from([2**16 - 1, 2**16, 2**48]) | st.integers(0, 2**64 - 1)


@given(st.lists(KEYS, max_size=40) | st.lists(st.integers(0, 2**32 - 1), max_size=40))
def test_rows_are_sorted_by_key(keys: list[int]) -> None:
    """Rows of equal keys keep their order, and keys that fit may be of 32 bits.

    A few are sorted by NumPy, and by the kernel once none are few.
    """
    bits = max([1, *keys]).bit_length()
    for dtype in (np.uint64, np.uint32)[: 1 + (bits <= 32)]:
        given_keys = np.array(keys, dtype)
        cast = given_keys.view(np.int64) if dtype == np.uint64 else given_keys
        for few in (sorting.FEW, -1):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(sorting, "FEW", few)
                found, rows = sorting.sort_rows(cast.copy(), bits)
            assert sorted(range(len(keys)), key=keys.__getitem__) == rows.tolist()
            assert rows.dtype == np.uint32
            assert sorted(keys) == found.view(dtype).tolist()
