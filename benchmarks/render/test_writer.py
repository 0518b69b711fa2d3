"""The functions that write all pages write what they should."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.render.page import UNKNOWN, after, keep, markdown, read, table, text
from benchmarks.render.writer import Figure, judged, number, power, refresh, size, tabular, time


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
    for align, marks in {"lr": "| --- | ---: | ---: |", "lrl": "| --- | ---: | --- |"}.items():
        (found,) = tabular("a | b | c", [(1, 2, 3)], align)
        assert ["| a | b | c |", marks, "| 1 | 2 | 3 |"] == text(found).splitlines()


def test_figures_are_judged() -> None:
    """What is reached and missed; only what was missed is explained, and what lacks is left out."""
    most = Figure("most", 2, "s", lambda found: found["a"], loss="slow")
    least = most._replace(name="least", least=True)
    missed, reached = judged([most, least], {"a": 3})
    assert ("<= 2 s", "3 s", False, "slow") == tuple(missed.values())[1:]
    assert (">= 2 s", "3 s", True, "") == tuple(reached.values())[1:]
    assert [] == judged([most, least], {})
    assert [True, True] == [each["reached"] for each in judged([most, least], {"a": 2})]


def test_a_figure_just_below_its_limit_says_so() -> None:
    """Three digits would say that it is the limit, which such a figure must not reach."""
    below = Figure("below", 1, "reads", lambda found: found["a"], below=True)
    (figure,) = judged([below], {"a": 0.99998})
    assert ("< 1 reads", "0.99998 reads", True) == tuple(figure.values())[1:4]
    assert not judged([below], {"a": 1.0})[0]["reached"]


def run_of(instructions: str, measured: str, reached: bool) -> dict[str, Any]:
    """Return a run with one figure and one table."""
    figure = {"name": "speed", "target": "<= 2 s", "measured": measured, "reached": reached}
    figure["why"] = "" if reached else "slow"
    blocks = ["## A heading", table(("who", "time"), [("us", measured)])]
    return {
        "instructions": instructions,
        "date": "2026-11-24",
        "command": "run",
        "figures": [figure],
        "blocks": blocks,
    }


def test_runs_become_a_page(tmp_path: Path) -> None:
    """Targets have a column for each instruction set, tables a part; a new run replaces its own."""
    keep("a", "Title", "Words.", run_of(UNKNOWN, "9 s", False), tmp_path)
    keep("a", "Title", "Words.", run_of("AVX-512", "1 s", True), tmp_path)
    keep("a", "Title", "Words.", run_of("AVX2", "4 s", False), tmp_path)
    keep("a", "Title", "Words.", run_of("AVX2", "3 s", False), tmp_path)
    runs = read("a", tmp_path)["runs"]
    assert ["AVX2", "AVX-512"] == [run["instructions"] for run in runs]
    page = markdown((tmp_path / "a.json").read_text())
    assert page.startswith("# Title\n\nWords.\n\n## Targets\n\n| target | at | AVX2 | AVX-512 |\n")
    assert "| speed | <= 2 s | 3 s **missed** | 1 s |\n" in page
    assert "| speed | slow |\n" in page
    assert page.index("## AVX2\n") < page.index("| us | 3 s |") < page.index("## AVX-512\n")
    assert "9 s" not in page
    assert after(runs[1]["blocks"], "## A heading") == table(("who", "time"), [("us", "1 s")])


def test_a_block_is_replaced(tmp_path: Path) -> None:
    """What stands between a page's markers is, and a page without them is an error."""
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- x -->\nold\n<!-- /x -->\nb\n")
    refresh(page, "x", ["new", "lines", ""])
    assert "a\n<!-- x -->\nnew\nlines\n<!-- /x -->\nb\n" == page.read_text()
    with pytest.raises(AssertionError, match="must have"):
        refresh(page, "y", [])
