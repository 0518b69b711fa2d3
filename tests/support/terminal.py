"""A terminal of 80 columns, for what commands show to a person only."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios


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
