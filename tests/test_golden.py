"""The script of the known answers writes the files that are there."""

from __future__ import annotations

import pytest

from tests.golden.lines import FOLDER
from tests.golden.make import MAKERS

pytestmark = pytest.mark.goldens


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_the_script_writes_what_is_there(name: str) -> None:
    """A script that could no longer write its file would be noticed when an answer is needed."""
    assert (FOLDER / f"{name}.json").read_text() == MAKERS[name]()
