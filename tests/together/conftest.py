"""What tests of shards that are fetched share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # some of the tests run on platforms without torch
    from tests.together.sharded_runs import Opened

pytestmark = pytest.mark.together


@pytest.fixture
def dataset_of(tmp_path: Path) -> Iterator[Opened]:
    """Datasets that share a folder."""
    from tests.together.sharded_runs import Opened

    opened = Opened(tmp_path / "cache")
    yield opened
    opened.end()
