"""Inside a fresh process: one rival, one question, one job, under the limits."""

from __future__ import annotations

import json
import resource
import signal
import statistics
import tempfile
from time import perf_counter
from types import ModuleType
from typing import Any

from benchmarks.measure.questions import KEYS, Timed
from benchmarks.measure.starts import measured
from benchmarks.rivals import NAMES, Job

# RLIMIT_DATA counts private memory that can be written, which is what arrays and lists are;
# RLIMIT_AS would count the libraries that torch maps, and files mapped to be read.
MEMORY = 16 * 10**9
SHORT = 0.1
"""Seconds below which a timed part is short."""


def out_of_memory(error: BaseException) -> bool:
    """Whether an error is how NumPy, Python or torch says so."""
    return isinstance(error, MemoryError) or "can't allocate memory" in str(error)


def answer(rival: ModuleType, key: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Return what was measured, or what stopped it.

    The time limit is the default action of SIGALRM, which ends the process also inside of C code.
    """
    question, job = KEYS[key], Job(**fields)
    with tempfile.TemporaryDirectory() as small:
        small_job = question.warm._replace(folder=small)
        question.check(question.begin(rival, small_job)(), small_job)
    try:
        timed = question.begin(rival, job)  # a file that is there before is built without a limit
        signal.alarm(question.seconds)
        output, result = measured(timed)
        signal.alarm(0)
        question.check(output, job)
        if question.again and result["seconds"] < SHORT:
            times = [result["seconds"], *(seconds(timed) for _ in range(question.again))]
            result["seconds"] = statistics.median(times)
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        return {"stop": "memory"}
    finally:
        signal.alarm(0)
    if key in {"share", "worlds"}:
        result["num_indices"] = len(output)
    if key == "build":
        result["num_bytes"] = output
    return dict(result)


def seconds(timed: Timed) -> float:
    """Return how long a call takes."""
    start = perf_counter()
    timed()
    return perf_counter() - start


def main(name: str, asked: list[tuple[str, dict[str, Any]]]) -> None:
    """Print the answers of one rival as JSON; one, but for quick runs."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    rival = NAMES[name].load()
    print(json.dumps([answer(rival, key, fields) for key, fields in asked]))
