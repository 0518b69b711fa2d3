"""Bars of progress, for calls that take `progress`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import indexplan as ip


def test_a_bar(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From none to all, by every call that counts bytes; one bar serves several calls."""
    plan = ip.Plan(ip.Shuffle(100_000), world_size=2, batch_size=64)
    bar = ip.ProgressBar("working")
    ip.save(plan, tmp_path / "a.plan", progress=bar)
    ip.verify(ip.load(tmp_path / "a.plan"), progress=bar)
    ip.export(plan, tmp_path / "out", progress=bar)
    said = capsys.readouterr().err
    assert 3 == len(re.findall(r"working: 100%\|[^\r\n]*\n", said))


def test_a_bar_that_ends_early(capsys: pytest.CaptureFixture[str]) -> None:
    """Closing leaves the bar where it is; without a call there is none."""
    bar = ip.ProgressBar("working", "step")
    bar.close()
    assert capsys.readouterr().err == ""
    bar(0, 8)
    bar(2, 8)
    bar.close()
    assert re.search(r"working: +25%.* 2.00/8.00 .*step/s", capsys.readouterr().err)
