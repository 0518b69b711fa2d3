"""Ask every rival every question, in fresh processes, until it runs out of memory or time."""

from __future__ import annotations

import resource
import signal
import statistics
import tempfile
from time import perf_counter
from typing import Any

from benchmarks.contenders.planners import FULL_SHARE, NAMES, Job, Rival
from benchmarks.measure.fresh import JobError, run_fresh
from benchmarks.measure.memory import measured
from benchmarks.measure.questions import FEW, KEYS, Question, Timed
from benchmarks.render.tables import power

# RLIMIT_DATA counts private memory that can be written, which is what arrays and lists are;
# RLIMIT_AS would count the libraries that torch maps, and files mapped to be read.
MEMORY = 16 * 10**9
SHORT = 0.1
"""Seconds below which a timed part is short."""
RUNS = 3
"""A short measurement is made in so many processes, and the median taken."""
Record = dict[str, Any]


def out_of_memory(error: BaseException) -> bool:
    """Whether an error is how NumPy, Python or torch says so."""
    return isinstance(error, MemoryError) or "can't allocate memory" in str(error)


def answer(rival: Any, key: str, fields: dict[str, Any]) -> dict[str, Any]:
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


def answers(name: str, key: str, fields: dict[str, Any]) -> Record:
    """Answer for one rival, in a process of its own."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    return answer(NAMES[name].load(), key, fields)


def ask(rival: Rival, key: str, job: Job, cache: str) -> Record:
    """Return what one fresh process measured, or {"stop": reason}."""
    limits = {"NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}
    try:
        found: Record = run_fresh(f"{__name__}.answers", rival.name, key, job._asdict(), **limits)
    except JobError as error:
        # of SIGKILL, as the kernel was faster than the limit
        stops = {-signal.SIGALRM: "time", -signal.SIGKILL: "memory"}
        if error.code not in stops:
            raise
        return {"stop": stops[error.code]}
    return found


def median_of(runs: list[Record]) -> Record:
    """Return the medians of several runs' numbers."""
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def asked_of(question: Question, rival: Rival, job: Job, folder: str) -> Job:
    """Return the job as this rival gets it."""
    if rival.by_index and question.limit == FULL_SHARE:
        job = job._replace(limit=FEW)
    return job._replace(folder=folder)


def measure_rival(
    question: Question, rival: Rival, job: Job, cache: str, folder: str, *, quick: bool
) -> Record:
    """Return one cell of a table. Files go where the next question finds them, but for builds.

    `quick` asks once, in this process: for the outputs.
    """
    if job.n * rival.bytes_per_index > MEMORY:
        return {"stop": "disk"}
    builds = question.key in {"first_batch", "build"}
    runs: list[Record] = []
    while len(runs) < RUNS:
        with tempfile.TemporaryDirectory(dir=folder) as empty:
            job = asked_of(question, rival, job, empty if builds else folder)
            if quick:
                return answer(rival.load(), question.key, job._asdict())
            runs.append(ask(rival, question.key, job, cache))
        if "stop" in runs[-1] or runs[0]["seconds"] > SHORT:
            return runs[-1]
    return median_of(runs)


def case_of(key: str, job: Job) -> str:
    """Return what the page calls a size, or a number of ranks."""
    return f"{job.world:,}" if key == "worlds" else power(job.n)


def rows(found: Record) -> list[Record]:
    """Return what was found of a rival as rows of the page: also its memory, and bytes."""
    key, seconds = found["table"], found.get("seconds", 1)
    numbers: dict[str, dict[str, float]] = {key: {"seconds": seconds}}
    if key == "share":
        numbers = {key: {"indices_per_second": found.get("num_indices", 0) / seconds}}
    if key == "first_batch":
        numbers["memory"] = {"peak_bytes": found.get("peak_bytes", 0)}
    if key == "build":
        numbers["build_rate"] = {"bytes_per_second": found.get("num_bytes", 0) / seconds}
    start = {name: found[name] for name in ("case", "who", "stop", "since") if name in found}
    return [
        {"table": table, **start, **({} if "stop" in found else number)}
        for table, number in numbers.items()
    ]
