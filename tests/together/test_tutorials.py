"""The tutorials are true: their blocks run, one after another, and print what they show."""

from pathlib import Path

import pytest

from tests.test_docs import ROOT, check_page, modules

__all__ = ["modules"]  # a fixture
TUTORIALS = sorted(path.stem for path in (ROOT / "docs" / "tutorials").glob("*.md"))


@pytest.mark.usefixtures("modules")
@pytest.mark.parametrize("page", TUTORIALS)
def test_tutorial(page: str, tmp_path: Path) -> None:
    """A tutorial's run is stopped, and goes on."""
    check_page(f"tutorials/{page}", tmp_path)
