"""What tests of shards that are fetched share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # some of the tests run on platforms without torch
    from indexplan_torch import ShardedDataset
    from tests.together.sharded_runs import Opened


@pytest.fixture
def made() -> Iterator[list[ShardedDataset]]:
    """Datasets, whose threads are ended."""
    found: list[ShardedDataset] = []
    yield found
    for each in found:
        each.stop()


@pytest.fixture
def dataset_of(tmp_path: Path) -> Iterator[Opened]:
    """Datasets that share a folder."""
    from tests.together.sharded_runs import Opened

    opened = Opened(tmp_path / "cache")
    yield opened
    opened.end()
