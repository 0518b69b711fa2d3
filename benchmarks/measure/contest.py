"""Ask every rival every question, in fresh processes, until it runs out of memory or time."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.measure.arena import MEMORY, SHORT
from benchmarks.measure.questions import FEW, KEYS, QUESTIONS, Question
from benchmarks.rivals import FULL_SHARE, NAMES, Job, Rival

ROOT = Path(__file__).resolve().parents[2]
RUNS = 3
"""A short measurement is made in so many processes, and the median taken."""
Record = dict[str, Any]


def ask(rival: Rival, asked: list[tuple[str, Job]], cache: str) -> list[Record]:
    """Return what one fresh process measured, or {"stop": reason}, for each question."""
    call = (rival.name, [(key, job._asdict()) for key, job in asked])
    done = subprocess.run(
        [sys.executable, "-c", f"from benchmarks.measure.arena import main; main{call!r}"],
        cwd=ROOT,
        env={**os.environ, "NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        check=False,
        text=True,
    )
    if done.returncode == -signal.SIGALRM:
        return [{"stop": "time"}]
    if done.returncode == -signal.SIGKILL:  # the kernel was faster than the limit
        return [{"stop": "memory"}]
    if done.returncode:
        raise RuntimeError(f"{rival.name}, {asked}:\n{done.stderr}")
    result: list[Record] = json.loads(done.stdout.splitlines()[-1])
    return result


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


def measure_question(
    question: Question, rivals: list[str], before: list[Record], cache: str, folder: str
) -> list[Record]:
    """Return all cells of a question's table; who stopped is not asked for more."""
    stopped: dict[str, Record] = {}
    records = []
    for job in question.jobs(quick=False):
        for name in (name for name in question.rivals if name in rivals):
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
            print(f"{question.key}: {name}, n = {job.n}, world {job.world}: {seconds}")
    return records


def measure(
    keys: list[str], rivals: list[str], known: dict[str, list[Record]]
) -> dict[str, list[Record]]:
    """Measure some questions; `known` has what was measured before, and is not changed."""
    result = dict(known)
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as folder:
        for question in QUESTIONS:
            if question.key in keys:
                before = result.get(question.follows, [])
                result[question.key] = measure_question(question, rivals, before, cache, folder)
    return {key: result[key] for key in KEYS if key in result}


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
