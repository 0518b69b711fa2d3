"""The command line on plans whose order cuts samples: it says which part of each is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import indexplan as ip
from indexplan.cli.main import main

LENGTHS = np.arange(1, 90) % 31 + 1


@pytest.fixture
def plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> ip.Plan:
    """Build the plan that the commands are asked about, and return it."""
    monkeypatch.chdir(tmp_path)
    np.save("lengths.npy", LENGTHS)
    order = "DocumentWindows('lengths.npy', 24, block_size=8, seed=1)"
    options = ["--world-size", "2", "--batch-size", "3", "--epochs", "2"]
    assert main(["build", "a.plan", "--order", order, *options]) == 0
    assert main(["verify", "a.plan"]) == 0
    capsys.readouterr()
    windows = ip.DocumentWindows(LENGTHS, 24, block_size=8, seed=1)
    return ip.Plan(windows, world_size=2, batch_size=3)


def test_a_document_is_explained(plan: ip.Plan, capsys: pytest.CaptureFixture[str]) -> None:
    """All parts of it are named, and together they are all of it; `locate` finds the first."""
    assert LENGTHS[29] == 31
    assert main(["explain", "a.plan", "--index", "29", "--epochs", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for epoch in (0, 1):
        parts = [reading.span for reading in ip.explain(plan, 29, [epoch])]
        positions = plan.order.locate_all(epoch, 29)[0].tolist()
        assert len(parts) == len(positions) >= 2
        tokens = {i for part in parts if part for i in range(*part)}
        assert set(range(31)) == tokens
        for position, (start, stop) in zip(positions, filter(None, parts), strict=True):
            said = f"epoch {epoch}, position {position}, part [{start}, {stop}): "
            assert 1 == sum(line.startswith(said) for line in lines)
    assert main(["locate", "a.plan", "--index", "29", "--epoch", "1"]) == 0
    where = plan.locate(29, 1)
    assert f"step {where.step}, rank {where.rank}" in capsys.readouterr().out
