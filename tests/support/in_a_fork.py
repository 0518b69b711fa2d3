"""A process that forks while another of its threads works, and what its child then counts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Half a second later `pause` ends by itself, since whoever forks may wait for the other thread.
SCRIPT = """
import os, signal, sys, threading
import indexplan as ip

signal.alarm(100)
inside, forked = threading.Event(), threading.Event()

def pause():
    inside.set()
    forked.wait(0.5)

{slow}
thread = threading.Thread(target=order.take, args=(0, 0))
thread.start()
inside.wait()
pid = os.fork()
if pid == 0:
    signal.alarm(80)  # enough to compile the kernels, where none is in the cache
    os._exit(int(order.count(0, {index})))
forked.set()
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
thread.join()
"""


def counted_in_a_fork(slow: str, index: int) -> int:
    """Return how often an order reads a sample, as a child counts that was forked during `take`.

    `slow` is code that makes `order`, and has what another thread's `take` does call `pause`.
    """
    code = SCRIPT.format(slow=slow, index=index)
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code]  # of forking
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (0, "") == (done.returncode, done.stderr)
    return int(done.stdout)
