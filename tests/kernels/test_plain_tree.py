"""The first trees of few sources are written in plain Python: the same, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from indexplan.kernels import compiling, tree

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


@given(st.lists(SHARES, min_size=1, max_size=6))
def test_plain_trees_are_the_compiled_ones(shares: list[int]) -> None:
    """Nodes, ratios of floats, parents and the reach."""
    plain = compiling.Kernel(tree.plant.py_func, tree.plant.arguments)
    assert written(tree.plant, shares) == written(plain.plain_at_first, shares)
    assert plain.origin is None  # not compiled, nor loaded


def test_who_writes_many_trees_compiles() -> None:
    """After the first ones; and whoever has it compiled runs nothing as plain Python."""
    made = compiling.Kernel(tree.plant.py_func, tree.plant.arguments)
    for number in range(compiling.PLAIN_CALLS + 1):
        assert made.origin is None
        expected = written(tree.plant, [number + 1, 5])
        assert expected == written(made.plain_at_first, [number + 1, 5])
    assert made.origin is not None
