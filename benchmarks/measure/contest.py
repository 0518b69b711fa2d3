"""Ask every rival every question, in fresh processes, until it runs out of memory or time.

A question has two parts: `begin(rival, job)` sets up, and returns the function that is timed;
`check(output, job)` asserts, after timing, that the output is plausible. (tests/benchmarks test on
small sizes that resumes and shares are right in every index.)
"""

from __future__ import annotations

import resource
import signal
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.contenders.planners import FULL_SHARE, NAMES, RIVALS, Job, Rival
from benchmarks.measure.fresh import JobError, run_fresh
from benchmarks.measure.memory import measured
from benchmarks.render.tables import power

Timed = Callable[[], Any]
# Rivals that answer index by index take minutes for a whole share; their rate shows on this many.
FEW = 2**18
WARM = Job(60_000, world=2, rank=1, limit=2**12)
"""A small job, done first: imports, compilation and caches are then there."""


def begin_first_batch(rival: Any, job: Job) -> Timed:
    """Sampler objects are made in the timed part, as each epoch or run makes or re-iterates them.

    The iterator is returned too, so that what it holds is alive when memory is read.
    """

    def first() -> Any:
        batches = rival.stream(job)
        return next(batches), batches

    return first


def begin_share(rival: Any, job: Job) -> Timed:
    """Have the file there already, if the rival has one: `build` is a question of its own."""
    rival.prepare(job)
    return lambda: rival.share(job)


def begin_resume(rival: Any, job: Job) -> Timed:
    """Have the file there, from before the stop; the state is what the checkpoint holds.

    What is timed is a new process's work: all objects are made anew.
    """
    rival.prepare(job)
    state = rival.saved(job, job.steps() // 2)

    def first() -> Any:
        batches = rival.resume(job, state)
        return next(batches), batches

    return first


def check_batch(output: Any, job: Job) -> None:
    batch = np.asarray(output[0])
    # A remainder may be spread, so that no step is full: half of it, where two steps share it.
    least = min(job.batch // 2, max(1, job.n // job.world))
    assert least <= len(batch) <= job.batch, len(batch)
    assert len(set(batch.tolist())) == len(batch)
    assert 0 <= batch.min() <= batch.max() < job.n


def check_share(output: Any, job: Job) -> None:
    """Allow for a remainder that is dropped or padded, of a global batch at most."""
    share = np.asarray(output)
    whole = min(job.limit, job.n // job.world)
    assert whole - job.batch - whole // 50 <= len(share) <= whole + 1, (len(share), whole)
    assert len(np.unique(share)) == len(share)
    assert 0 <= share.min() <= share.max() < job.n


def begin_build(rival: Any, job: Job) -> Timed:
    return partial(rival.build, job)


def check_file(output: Any, job: Job) -> None:
    assert output >= 4 * job.n


@dataclass(frozen=True)
class Question:
    """What is asked, of which sizes; the page of planning says it in words."""

    key: str
    begin: Callable[[Any, Job], Timed]
    check: Callable[[Any, Job], None]
    rivals: tuple[str, ...]
    sizes: tuple[int, ...] = (10**6, 10**7, 10**8, 10**9, 10**10, 10**12)
    worlds: tuple[int, ...] = (64,)
    seconds: int = 120
    """The time limit."""
    limit: int = FULL_SHARE
    follows: str = ""
    """A question that does the same and less: who stopped there is not tried again."""

    def jobs(self, *, quick: bool) -> list[Job]:
        """Return what is asked of each rival, the cheapest first."""
        sizes = (10**6,) if quick else self.sizes
        worlds = self.worlds[:2][-1:] if quick else self.worlds
        return [
            Job(n, world=world, rank=min(7, world - 1), limit=self.limit)
            for n in sizes
            for world in worlds
        ]


TO_1E8 = (10**6, 10**7, 10**8)

ALL = tuple(rival.name for rival in RIVALS)
BUILDERS = tuple(rival.name for rival in RIVALS if rival.bytes_per_index)
QUESTIONS = (
    Question("first_batch", begin_first_batch, check_batch, ALL),
    Question("share", begin_share, check_share, ALL, follows="first_batch"),
    Question(
        "worlds",
        begin_share,
        check_share,
        ALL,
        sizes=(10**7,),
        worlds=(4096, 512, 64, 8, 1),
        seconds=30,
        limit=2**62,
    ),
    Question("resume", begin_resume, check_batch, ALL, follows="first_batch"),
    Question("build", begin_build, check_file, BUILDERS, sizes=TO_1E8),
)

KEYS = {question.key: question for question in QUESTIONS}


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
        small_job = WARM._replace(folder=small)
        question.check(question.begin(rival, small_job)(), small_job)
    try:
        timed = question.begin(rival, job)  # a file that is there before is built without a limit
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
    return dict(result)


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
    """Return what was found of a rival as rows of the page: also its memory."""
    key, seconds = found["table"], found.get("seconds", 1)
    numbers: dict[str, dict[str, float]] = {key: {"seconds": seconds}}
    if key == "share":
        numbers = {key: {"indices_per_second": found.get("num_indices", 0) / seconds}}
    if key == "first_batch":
        numbers["memory"] = {"peak_bytes": found.get("peak_bytes", 0)}
    start = {name: found[name] for name in ("case", "who", "stop", "since") if name in found}
    return [
        {"table": table, **start, **({} if "stop" in found else number)}
        for table, number in numbers.items()
    ]
