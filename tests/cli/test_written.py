"""Orders as they are written in Python: what they make, and what they refuse to run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import indexplan as ip
from indexplan.cli.written import order_as_written
from tests.orders.test_layers import INSIDE, layers


@given(layers(layers(INSIDE)))
def test_what_python_writes_is_read(order: ip.Order) -> None:
    """An order's own repr makes it again, unless it holds a column, whose numbers no text has."""
    if not order.columns:
        assert order == order_as_written(repr(order))


def test_all_that_may_be_written(tmp_path: Path) -> None:
    """Paths of columns, lists and powers, with or without the library's name."""
    np.save(tmp_path / "kept.npy", [4, 2])
    kept = str(tmp_path / "kept.npy")
    written: list[tuple[str, Any]] = [
        (f"ip.Subset(ip.Shuffle(2), {kept!r}, num_samples=10)", ip.Subset(ip.Shuffle(2), kept, 10)),
        (" indexplan.Packed([3, 1, 2], 3)\n", ip.Packed([3, 1, 2], 3)),
        ("Shuffle(10**9, seed=2**100)", ip.Shuffle(10**9, 2**100)),
        ("Part(10, [5, 5], (1,))", ip.types.Part(10, [5, 5], [1])),
    ]
    for text, expected in written:
        assert expected == order_as_written(text)


@pytest.mark.parametrize(
    "text",
    [
        *("__import__('os').getcwd()", "open('a')", "eval('1')", "Shuffle(10).take(0, 0, 3)"),
        *("Shuffle(*[3])", "Shuffle(**{'num_samples': 3})", "(lambda: Shuffle(3))()", "Shuffle"),
        *("[Shuffle(3) for _ in range(2)][0]", "Shuffle(3) if True else 0", "(a := Shuffle(3))"),
        *("Shuffle(10**10**10)", "Shuffle(f'{3}')", "Shuffle('a' * 10**9)", "Shuffle(3", ""),
        *("Shuffle.__init__(3)", "range(3)", "Shuffle(3).__class__(4)", "{**{}}", "Shuffle(b'a')"),
        *("(" * 5000 + ")" * 5000, "-" * 9000 + "3", "Shuffle(3)\0", "Shuffle(-Shuffle(3))"),
        *("Shuffle(3).fill", "Shuffle(3).__dict__", "Split(3, {'a': 1}).__class__"),
        *("Shuffle(0**-1)", "Mixture({[1]: Shuffle(3)}, {1: 1})", "Shuffle(1 + 1)"),
    ],
)
def test_nothing_else_is_run(text: str) -> None:
    """Whatever is no order is refused with the rule, and nothing of it is run."""
    with pytest.raises(ip.IndexPlanError, match=r"^an order"):
        order_as_written(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Shuffle(3, seed=1, seed=2)", "each argument once"),
        (
            "Mixture({'a': Shuffle(3), 'b': Shuffle(4), 'a': Shuffle(5)}, {'a': 1, 'b': 1})",
            "each key once",
        ),
    ],
)
def test_nothing_is_given_twice(text: str, said: str) -> None:
    """Of two seeds, or two sources of a name, none is left out in silence."""
    with pytest.raises(ip.IndexPlanError, match=f"that gives {said}; got "):
        order_as_written(text)
