"""What tests of shards that are fetched share, and of plans in stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.remote import anywhere, cache, saved, server, url

if TYPE_CHECKING:  # some of the tests run on platforms without torch
    from tests.together.sharded_runs import Opened

__all__ = ["anywhere", "cache", "saved", "server", "url"]  # fixtures

pytestmark = pytest.mark.together


@pytest.fixture
def dataset_of(tmp_path: Path) -> Iterator[Opened]:
    """Datasets that share a folder."""
    from tests.together.sharded_runs import Opened

    opened = Opened(tmp_path / "cache")
    yield opened
    opened.end()
