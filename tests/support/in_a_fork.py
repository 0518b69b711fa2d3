"""What a fork of a process counts, or is refused."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable

import indexplan as ip
from tests.support.fresh import printed

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
    return int(printed("-W", "ignore::DeprecationWarning", "-c", code))  # of forking


def refused_in_a_fork(ask: Callable[[], object]) -> str:
    """Return the error that a call raises in a fork of this process; an empty text if none."""
    told, tell = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads in this process
        pid = os.fork()
    if pid == 0:
        try:
            ask()
        except ip.IndexPlanError as error:
            os.write(tell, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    os.close(tell)
    with os.fdopen(told) as stream:
        return stream.read()
