"""Inside a fresh process: one rival, one question, one job, under the limits."""

from __future__ import annotations

import json
import resource
import signal
import tempfile
from types import ModuleType
from typing import Any

from benchmarks.fresh import measured
from benchmarks.questions import KEYS
from benchmarks.rivals import NAMES, Job

# RLIMIT_DATA counts private memory that can be written, which is what arrays and lists are;
# RLIMIT_AS would count the libraries that torch maps, and files mapped to be read.
MEMORY = 16 * 10**9


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
        signal.alarm(question.seconds)
        timed = question.begin(rival, job)
        signal.alarm(question.seconds)
        output, result = measured(timed)
        signal.alarm(0)
        question.check(output, job)
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


def main(name: str, asked: list[tuple[str, dict[str, Any]]]) -> None:
    """Print the answers of one rival as JSON; one, but for quick runs."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    rival = NAMES[name].load()
    print(json.dumps([answer(rival, key, fields) for key, fields in asked]))
