"""Kernels that others are made of: sorting, trees, which plain Python writes first, and XXH64."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from indexplan.kernels import compiling, sorting, tree
from indexplan.kernels.xxh64 import xxh64

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


SHARES = st.integers(1, 9) | st.integers(1, 2**53) | st.integers(0, 59).map(lambda e: 2**e)


def written(run: Any, shares: list[int]) -> list[Any]:
    """Return the tree of some shares, as bytes, and how far a source may be from its share."""
    each = np.array(shares, np.int64)
    leaves = each.argsort(kind="stable")
    num = len(leaves) - 1
    nodes, ratios = np.empty((num, tree.COLUMNS), np.int64), np.empty((num, tree.RATIOS))
    ups = np.empty(num + len(each), np.int64)
    reach = run(each, leaves, nodes, ratios, ups)
    return [type(reach), reach, nodes.tobytes(), ratios.tobytes(), ups.tobytes()]


@given(st.lists(SHARES, min_size=1, max_size=40).filter(lambda shares: sum(shares) < 2**62))
def test_plain_trees_are_the_compiled_ones(shares: list[int]) -> None:
    """Nodes, ratios of floats, parents and the reach."""
    plain = compiling.Kernel(tree.plant.py_func, tree.plant.arguments)
    assert written(tree.plant, shares) == written(partial(plain.plain_at_first, 1), shares)
    assert plain.origin is None  # not compiled, nor loaded


def test_who_writes_many_trees_compiles() -> None:
    """After the first ones; and whoever has it compiled runs nothing as plain Python."""
    made = compiling.Kernel(tree.plant.py_func, tree.plant.arguments)
    for number in range(4):
        assert made.origin is None
        expected = written(tree.plant, [number + 1, 5])
        assert expected == written(partial(made.plain_at_first, 3), [number + 1, 5])
    assert made.origin is not None


def test_xxh64_of_every_short_length() -> None:
    """XXH64 of 0 to 200 bytes, at any alignment, is that of the reference library."""
    data = np.random.default_rng(0).bytes(300)
    for length in range(201):
        assert xxhash.xxh64_intdigest(data[:length]) == xxh64(data[:length])
        shifted = memoryview(data)[length % 9 :][:length]
        assert xxhash.xxh64_intdigest(shifted) == xxh64(shifted)


@pytest.mark.parametrize("length", [0, 140, 2**20, 5 * 2**20 + 3])
def test_xxh64_of_what_holds_bytes(length: int) -> None:
    """XXH64 of megabytes too is that of the reference library, for bytes and arrays alike."""
    data = np.random.default_rng(1).bytes(length)
    expected = xxhash.xxh64_intdigest(data)
    given_: list[Any] = [data, bytearray(data), np.frombuffer(data, np.uint8)]
    if length % 20 == 0:
        given_.append(np.frombuffer(data, np.int32).reshape(-1, 5))
    assert {expected} == {*map(xxh64, given_)}
