"""Builders in an object store that die at any moment, whole or as parts that share a folder."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from random import Random

import s3fs  # noqa: F401 (so that children need not import it)

import indexplan as ip
import indexplan.files.saving
from indexplan.kernels.xxh64 import xxh64
from tests.support.trees import PLAN

DIED = -signal.SIGALRM  # whose default action ends a process as SIGKILL does, without a last word


def child(work: Callable[[], object]) -> int:
    """Start a process that does some work; return its number."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return pid


def ended(pid: int) -> int:
    """Wait for a process; return its exit code."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def save(url: str, part: tuple[int, int] | None = None, seconds: float = 0.0) -> None:
    """Build a plan, or a part of it, for at most so many seconds if any are given."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    ip.save(PLAN, url, units_per_chunk=64, part=part)


def look(url: str) -> None:
    """Refuse anything but the right plan, or one that lacks a file."""
    try:
        found = ip.load(url)
    except ip.PlanFileError as error:
        assert "got nothing" in str(error) or "got none named" in str(error), error  # noqa: PT017
    else:
        assert found.order.take(0, 0, 1000).tolist() == PLAN.order.take(0, 0, 1000).tolist()


def main(url: str, kills: int) -> None:
    """Kill builders of one plan this often, and print how many ended by themselves."""
    PLAN.order.take(0, 0)
    xxh64(b"")
    random, began = Random(7), time.monotonic()  # noqa: S311 (to choose moments)
    assert ended(child(lambda: save(f"{url}.whole"))) == 0
    most, died, well = time.monotonic() - began, 0, 0
    while died < kills:
        builders = []
        for part in random.sample([None, (1, 2), (2, 2)], 2):
            seconds = random.uniform(0.01, 1.2 * most)
            builders.append(child(lambda: save(url, part, seconds)))  # noqa: B023 (run at once)
        codes = [*map(ended, builders)]
        assert {*codes} <= {0, DIED}, codes
        died, well = died + codes.count(DIED), well + codes.count(0)
        assert ended(child(lambda: look(url))) == 0
    assert ended(child(lambda: save(url))) == 0
    print(f"{died} died, {well} ended")  # noqa: T201
