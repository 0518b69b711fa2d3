"""A short storm under torchft: groups are killed, and no sample is lost or read twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import indexplan as ip
from tests.live.replica import LEDGER
from tests.live.storm import SAMPLES, Storm, count
from tests.runs.groups.logs import Logs


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


def lines(group: int, num_steps: int) -> list[list[Any]]:
    """Return what one of two groups writes that reads every other sample of each step."""
    written: list[list[Any]] = [["ready"]]
    for step in range(num_steps):
        first = step % 17 * 60  # 16 steps of 60 samples, and one of 37
        rows = [*range(first, min(first + 60, SAMPLES))][group::2]
        written += [["read", 1, step + 1, 2, group, rows], ["counts", 1, step + 1]]
    return written


def test_planted_faults_are_counted(tmp_path: Path) -> None:
    """Of a log that is right, and of ones with a fault each, the storm's count says so."""

    def counted(*groups: list[list[Any]]) -> tuple[int, int, int, int, bool]:
        for group, written in enumerate(groups):
            text = "".join(f"{json.dumps(line)}\n" for line in written)
            (tmp_path / f"g{group}.1.log").write_text(text)
        found = count(tmp_path, kills=0)
        return found.lost, found.twice, found.void, found.different, found.right

    one, other = lines(0, 40), lines(1, 40)
    read = next(line for line in other if line[0] == "read")
    assert (0, 0, 0, 0, True) == counted(one, other)
    with_fault = [[*line[:-1], [*line[-1][:-1], 0]] if line is read else line for line in other]
    assert (1, 1, 0, 0, False) == counted(one, with_fault)  # 0 in place of 59
    again = ["read", 2, 1, 1, 0, list(range(60))]
    assert (0, 0, 1, 0, True) == counted([*one, again, ["counts", 2, 1]], other)
    elsewhere = [*again[:-1], list(range(1, 61))]
    assert (0, 0, 1, 1, False) == counted([*one, elsewhere, ["counts", 2, 1]], other)
    tried = [read[0], *read[1:-1], read[-1][::-1]]
    assert (0, 0, 0, 1, False) == counted(one, [*other[:1], tried, *other[1:]])
    with pytest.raises(AssertionError, match="ranks of step 1"):
        counted(one, [line for line in other if line is not read])
    gone = [line for line in one if line != ["counts", 1, 9]]
    with pytest.raises(AssertionError, match="no group says that step 9 counts"):
        counted(gone, [line for line in other if line != ["counts", 1, 9]])
