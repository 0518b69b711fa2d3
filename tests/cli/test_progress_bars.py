"""Somebody at a terminal sees how far a verb is, how fast, and how long it will take."""

import re
from pathlib import Path

import indexplan as ip
from tests.support.terminal import seen_at_a_terminal


def test_progress(tmp_path: Path) -> None:
    """A bar of bytes from none to all, with the rate, the time taken and the time that is left."""
    plan = ip.Plan(ip.Shuffle(5_000_000), world_size=2, batch_size=1000)
    ip.save(plan, tmp_path / "a.plan")
    said = seen_at_a_terminal("verify", str(tmp_path / "a.plan"))
    bars = re.findall(r"verifying: +(\d+)%.*?\[(\d\d:\d\d)<(\d\d:\d\d|\?), +(\S+B/s)", said)
    assert "0" == bars[0][0]
    assert ("100", "00:00") == (bars[-1][0], bars[-1][2])
    assert re.fullmatch(r"[\d.]+[kMG]?B/s", bars[-1][3])
