"""Somebody at a terminal sees how far a verb is, how fast, and how long it will take."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

import indexplan as ip


def seen_at_a_terminal(*arguments: str) -> str:
    """What the command writes to stderr where that is a terminal of 80 columns."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = [sys.executable, "-m", "indexplan", *arguments]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=follower)
    os.close(follower)
    said = b""
    while True:
        try:
            more = os.read(leader, 4096)
        except OSError:  # the terminal's other end has closed
            break
        if not more:
            break
        said += more
    os.close(leader)
    assert 0 == child.wait()
    return said.decode()


@pytest.mark.parametrize("verb", ["verify", "export"])
def test_progress(tmp_path: Path, verb: str) -> None:
    """A bar of bytes from none to all, with the rate, the time taken and the time that is left."""
    plan = ip.Plan(ip.Shuffle(5_000_000), world_size=2, batch_size=1000)
    ip.save(plan, tmp_path / "a.plan")
    more = [str(tmp_path / "out"), "--per-rank"] if verb == "export" else []
    said = seen_at_a_terminal(verb, str(tmp_path / "a.plan"), *more)
    name = {"verify": "verifying", "export": "exporting"}[verb]
    bars = re.findall(rf"{name}: +(\d+)%.*?\[(\d\d:\d\d)<(\d\d:\d\d|\?), +(\S+B/s)", said)
    assert "0" == bars[0][0]
    assert ("100", "00:00") == (bars[-1][0], bars[-1][2])
    assert re.fullmatch(r"[\d.]+[kMG]?B/s", bars[-1][3])
