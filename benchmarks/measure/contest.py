"""Ask every rival every question, in fresh processes, until it runs out of memory or time."""

from __future__ import annotations

import resource
import signal
import statistics
import tempfile
from itertools import product
from time import perf_counter
from types import ModuleType
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


def answers(name: str, asked: list[tuple[str, dict[str, Any]]]) -> list[Record]:
    """Answer for one rival, in a process of its own; one question, but for quick runs."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    rival = NAMES[name].load()
    return [answer(rival, key, fields) for key, fields in asked]


def ask(rival: Rival, asked: list[tuple[str, Job]], cache: str) -> list[Record]:
    """Return what one fresh process measured, or {"stop": reason}, for each question."""
    limits = {"NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}
    fields = [(key, job._asdict()) for key, job in asked]
    try:
        found: list[Record] = run_fresh(f"{__name__}.answers", rival.name, fields, **limits)
    except JobError as error:
        # of SIGKILL, as the kernel was faster than the limit
        stops = {-signal.SIGALRM: "time", -signal.SIGKILL: "memory"}
        if error.code not in stops:
            raise
        return [{"stop": stops[error.code]}]
    return found


def median_of(runs: list[Record]) -> Record:
    """Return the medians of several runs' numbers."""
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def asked_of(question: Question, rival: Rival, job: Job, folder: str) -> Job:
    """Return the job as this rival gets it."""
    if rival.by_index and question.limit == FULL_SHARE:
        job = job._replace(limit=FEW)
    return job._replace(folder=folder)


def measure_rival(question: Question, rival: Rival, job: Job, cache: str, folder: str) -> Record:
    """Return one cell of a table. Files go where the next question finds them, but for builds."""
    if job.n * rival.bytes_per_index > MEMORY:
        return {"stop": "disk"}
    builds = question.key in {"first_batch", "build"}
    runs: list[Record] = []
    while len(runs) < RUNS:
        with tempfile.TemporaryDirectory(dir=folder) as empty:
            job = asked_of(question, rival, job, empty if builds else folder)
            runs += ask(rival, [(question.key, job)], cache)
        if "stop" in runs[-1] or runs[0]["seconds"] > SHORT:
            return runs[-1]
    return median_of(runs)


def measure(key: str, rivals: list[str], known: dict[str, list[Record]]) -> list[Record]:
    """Return all cells of a question's table; who stopped is not asked for more.

    `known` has the tables of questions that were asked before.
    """
    question, stopped, records = KEYS[key], dict[str, Record](), []
    before = known.get(question.follows, [])
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as folder:
        for job, name in product(question.jobs(quick=False), question.rivals):
            if name not in rivals:
                continue
            rival = NAMES[name]
            earlier = {r["rival"]: r for r in before if r["n"] == job.n and "stop" in r}
            if name in earlier and not rival.bytes_per_index:
                stopped.setdefault(name, earlier[name])
            if name in stopped:
                last = stopped[name]
                place = last["world" if len(question.worlds) > 1 else "n"]
                cell = {"stop": last["stop"], "since": last.get("since", place)}
            else:
                cell = measure_rival(question, rival, job, cache, folder)
            record = {"rival": name, "n": job.n, "world": job.world, **cell}
            if "stop" in cell:
                stopped.setdefault(name, record)
            records.append(record)
            seconds = cell.get("stop") or f"{cell['seconds']:.3g} s"
            print(f"{key}: {name}, n = {job.n}, world {job.world}: {seconds}")
    return records


def rows(key: str, records: list[Record]) -> list[Record]:
    """Return what was found of a question as rows of its page."""
    found = []
    for record in records:
        world = key == "worlds"
        start = {
            "case": f"{record['world']:,}" if world else power(record["n"]),
            "who": record["rival"],
        }
        if "stop" in record:
            start["stop"] = record["stop"]
            if "since" in record:
                since = record["since"]
                start["since"] = f"world {since}" if world else power(since)
        seconds = record.get("seconds", 1)
        numbers: dict[str, dict[str, float]] = {key: {"seconds": seconds}}
        if key == "share":
            numbers = {key: {"indices_per_second": record.get("num_indices", 0) / seconds}}
        if key == "first_batch":
            numbers["memory"] = {"peak_bytes": record.get("peak_bytes", 0)}
        if key == "build":
            numbers["build_rate"] = {"bytes_per_second": record.get("num_bytes", 0) / seconds}
        for table, number in numbers.items():
            found.append({"table": table, **start, **({} if "stop" in record else number)})
    return found


def measure_quickly(keys: list[str], rivals: list[str]) -> dict[str, list[Record]]:
    """Ask one process per rival all questions, once and on small jobs: for the outputs."""
    result: dict[str, list[Record]] = {key: [] for key in KEYS if key in keys}
    for name in rivals:
        with tempfile.TemporaryDirectory() as folder:
            asked = [
                (key, asked_of(KEYS[key], NAMES[name], job, folder))
                for key in result
                if name in KEYS[key].rivals
                for job in KEYS[key].jobs(quick=True)
            ]
            for (key, job), cell in zip(asked, ask(NAMES[name], asked, folder), strict=True):
                result[key].append({"rival": name, "n": job.n, "world": job.world, **cell})
    return result
