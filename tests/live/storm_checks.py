"""A short storm under torchft: groups are killed, and no sample is lost or read twice."""

from __future__ import annotations

from pathlib import Path

import pytest

import indexplan as ip
from tests.live.replica import LEDGER
from tests.live.storm import Storm
from tests.runs.groups.logs import Logs

pytestmark = pytest.mark.live


@pytest.mark.parametrize("quorum", ["sync", "async"])
def test_a_short_storm_loses_nothing(quorum: str, tmp_path: Path) -> None:
    """Of the steps that count, each whole epoch reads each sample once."""
    counted = Storm(tmp_path, quorum, seed=1).run(kills=3, steps_after=25)
    assert counted.right, counted
    assert len(counted.worlds) > 1, counted
    ledger, logs = ip.Ledger(tmp_path / LEDGER), Logs(tmp_path)
    assert ledger.verify().ok
    assert ledger.step > counted.steps - 30  # the last is of the last checkpoint
    for step in range(ledger.step):
        quorums = logs.quorums[step + 1]  # torchft's first step reads nothing
        parts = [logs.read[quorum, step + 1] for quorum in quorums]
        read = [sum((each[rank] for rank in sorted(each)), []) for each in parts]
        assert ledger.batch(step, rank=0).tolist() in read, step
