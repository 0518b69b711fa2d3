"""A short storm under torchft: groups are killed, and no sample is lost or read twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.storm import Storm


@pytest.mark.parametrize("quorum", ["sync", "async"])
def test_a_short_storm_loses_nothing(quorum: str, tmp_path: Path) -> None:
    """Of the steps that count, each whole epoch reads each sample once."""
    counted = Storm(tmp_path, quorum, seed=1).run(kills=3, steps_after=25)
    assert counted.right, counted
    assert len(counted.worlds) > 1, counted
