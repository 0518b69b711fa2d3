"""The functions that write all pages write what they should."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.render.writer import Figure, figures, markdown, number, power, refresh, size, time


def test_numbers() -> None:
    """Three digits count, and thousands have commas."""
    assert ["0.0123", "1.23", "99.9", "100", "1,235"] == [
        number(value) for value in (0.01234, 1.234, 99.94, 99.96 + 0.04, 1234.6)
    ]
    assert ["1e6", "1,234"] == [power(10**6), power(1234)]
    assert ["1.5 s", "20 ms", "3 us"] == [time(seconds) for seconds in (1.5, 0.02, 3e-6)]
    assert ["2 GB", "4.1 kB", "0"] == [size(num_bytes) for num_bytes in (2e9, 4096, 10)]


def test_a_table_aligns_its_columns() -> None:
    """The first is left and the others right, or as is asked; the last letter goes on."""
    rows = ["| a | b | c |", "| 1 | 2 | 3 |", ""]
    for align, marks in {"lr": "| --- | ---: | ---: |", "lrl": "| --- | ---: | --- |"}.items():
        assert [rows[0], marks, *rows[1:]] == markdown("a | b | c", [(1, 2, 3)], align)


def test_figures_are_judged() -> None:
    """What is reached, missed and not measured; only what was missed is explained."""
    most = Figure("most", 2, "s", lambda found: found["a"], loss="slow")
    least = most._replace(name="least", least=True)
    *_, first, second, _, _, _, missed, _ = figures([most, least], {"a": 3})
    assert ("| most | <= 2 s | 3 s | **no** |", "| least | >= 2 s | 3 s | yes |") == (first, second)
    assert "| most | slow |" == missed
    assert "not measured" == most.verdict({})
    assert ["reached", "reached"] == [each.verdict({"a": 2}) for each in (most, least)]


def test_a_figure_just_below_its_limit_says_so() -> None:
    """Three digits would say that it is the limit, which such a figure must not reach."""
    below = Figure("below", 1, "reads", lambda found: found["a"], below=True)
    *_, row, _ = figures([below], {"a": 0.99998})
    assert "| below | < 1 reads | 0.99998 reads | yes |" == row
    assert "missed" == below.verdict({"a": 1.0})


def test_a_block_is_replaced(tmp_path: Path) -> None:
    """What stands between a page's markers is, and a page without them is an error."""
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- x -->\nold\n<!-- /x -->\nb\n")
    refresh(page, "x", ["new", "lines", ""])
    assert "a\n<!-- x -->\nnew\nlines\n<!-- /x -->\nb\n" == page.read_text()
    with pytest.raises(AssertionError, match="must have"):
        refresh(page, "y", [])
