"""What tests of shards that are fetched share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # some of the tests run on platforms without torch
    from indexplan_torch import ShardedDataset


@pytest.fixture
def made() -> Iterator[list[ShardedDataset]]:
    """Datasets, whose threads are ended."""
    found: list[ShardedDataset] = []
    yield found
    for each in found:
        if each._fetcher is not None:
            each._fetcher.stop()
