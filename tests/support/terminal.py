"""A terminal, for what commands show to a person only."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

KNOWN = ("COLUMNS", "NO_COLOR")  # variables that would say something else of the terminal


def seen_at_a_terminal(*arguments: str) -> str:
    """What the command writes to stderr where that is a terminal, of 80 columns."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = [sys.executable, "-m", "indexplan", *arguments]
    where = {name: value for name, value in os.environ.items() if name not in KNOWN}
    child = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=follower, env={**where, "TERM": "xterm"}
    )
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
