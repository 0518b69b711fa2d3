"""The pages are true: their blocks run, one after another, and print what they show."""

from pathlib import Path

import pytest

from tests.test_docs import check_page, modules

__all__ = ["modules"]  # a fixture

# whose every Python and shell block runs, in the page's order, and says what it prints
PAGES = (
    "index",
    "idea",
    "epochs",
    "resume",
    "ledger",
    "live",
    "determinism",
    "faq",
    "orders",
    "classes",
    "mixtures",
    "tokens",
    "lengths",
    "shards",
    "subsets",
    "migrate/grain",
    "migrate/webdataset",
    "command-line",
)


@pytest.mark.usefixtures("modules")
@pytest.mark.parametrize("page", PAGES)
def test_page_runs(page: str, tmp_path: Path) -> None:
    """What a page's blocks print is what it shows."""
    check_page(page, tmp_path)
