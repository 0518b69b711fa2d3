"""Pages whose numbers belong together: quality, loading, shards and plan files.

Each is measured as a whole, as its parts take turns, and gives the rows of its page.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from benchmarks.conftest import Effort
from benchmarks.measure import loading, plan_files, quality, shards

PAGES = {
    "quality": quality,
    "loading": loading,
    "shards": shards,
    "plan-files": plan_files,
}


@pytest.mark.nightly
@pytest.mark.parametrize("page", PAGES)
def test_page(page: str, benchmark: Any, effort: Effort) -> None:
    """Measure all of a page, once."""
    benchmark.group = page
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some rivals' own
        rows = benchmark.pedantic(lambda: PAGES[page].measure(quick=effort.quick), rounds=1)
    benchmark.extra_info.update(page=page, rows=rows)
    assert rows
