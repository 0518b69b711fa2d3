"""Histories by several processes at once, until time is over, legs are enough, or Ctrl-C."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from tests.soak.history import Counts, Story, tell

HUNG = 600  # seconds without a word, after which a job is given up


class News(NamedTuple):
    """What jobs have done since the last news."""

    counts: Counts
    wrong: list[Story]


def soak(first: int, num_jobs: int, *, seconds: float | None, legs: int | None) -> Iterator[News]:
    """Yield news of jobs, which run the histories of the seeds from `first` on.

    Ctrl-C ends it as the time does: histories that have begun are finished, and counted.
    """
    interrupted: list[int] = []
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # which jobs inherit
    context = multiprocessing.get_context("spawn")
    stop = time.perf_counter() + seconds if seconds is not None else None
    jobs: dict[Connection, Any] = {}
    heard: dict[Connection, float] = {}
    for job in range(num_jobs):
        ours, its = context.Pipe()
        process = context.Process(target=work, args=(its, first + job, num_jobs))
        process.start()
        its.close()
        jobs[ours], heard[ours] = process, time.perf_counter()
    signal.signal(signal.SIGINT, lambda number, _: interrupted.append(number))
    done, stopping = 0, False
    while jobs:
        late = stop is not None and time.perf_counter() > stop
        if not stopping and (late or interrupted or (legs is not None and done >= legs)):
            stopping = True
            for pipe in jobs:
                pipe.send("stop")
        for pipe in wait(list(jobs), timeout=0.2):
            assert isinstance(pipe, Connection)
            news = _received(pipe, jobs)
            heard[pipe] = time.perf_counter()
            if news is not None:
                done += news.counts["", "legs"]
                yield news
        for pipe in [p for p in jobs if time.perf_counter() - heard[p] > HUNG]:
            jobs[pipe].kill()  # then its pipe ends
    signal.signal(signal.SIGINT, before)


def _received(pipe: Connection, jobs: dict[Connection, Any]) -> News | None:
    """Return what a job says; forget the job if it is the last."""
    try:
        news: News | None = pipe.recv()
    except (EOFError, ConnectionError):
        news = None
    if news is not None:
        return news
    process = jobs.pop(pipe)
    process.join()
    if process.exitcode == 0:
        return None
    story = Story(-1)
    story.wrong.append(f"a job died, or was killed as it hung: exit code {process.exitcode}")
    story.count("", "jobs that died")
    return News(story.counts, [story])


def work(pipe: Connection, first: int, every: int) -> None:
    """Tell the histories of every `every`-th seed from `first` on, until told to stop."""
    seed, said, counts, wrong = first, time.perf_counter(), Counts(), list[Story]()
    while not pipe.poll():
        story = tell(seed)
        counts += story.counts
        wrong += [story] if story.wrong else []
        seed += every
        if wrong or time.perf_counter() - said > 0.5:
            pipe.send(News(counts, wrong))
            said, counts, wrong = time.perf_counter(), Counts(), []
    pipe.send(News(counts, wrong))
    pipe.close()
