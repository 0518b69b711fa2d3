"""bench: how fast a plan answers on this machine, compared with torch's DistributedSampler."""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, time
from typing import Any

import numpy as np

from indexplan.errors import IndexPlanError, check_callable, counted, wrong
from indexplan.files import machine
from indexplan.partition.steps import Int64
from indexplan.plan.plan import Plan, check_plan, columns_of
from indexplan.reports.benchmark.rows import Bench, Row, show_memory, show_time

SHARE = 2**22  # indices of a rank's share that are drawn: 10 ms of work
ROUNDS = 30  # how often each small question is asked; the median is kept
TORCH_LIMIT = 10.0  # seconds that torch's sampler may be expected to take
TORCH_BYTES = {True: 48, False: 40}  # per sample: a list of ints; shuffled, a tensor too
LITTLE = 10**5  # bytes below which a growth of memory is noise
TIMEOUT = 120.0  # seconds after which a process is stopped, in case the estimate was wrong


def bench(plan: Plan, *, progress: Callable[[int, int], object] | None = None) -> Bench:
    """Measure how long a plan's answers take on this machine, in a few seconds.

    Each time is the median of several runs. torch's DistributedSampler is measured too, in a
    process of its own, if it is installed, fits in memory, and is expected to take less than
    10 seconds; else its row says why not.

    Parameters
    ----------
    plan : Plan
        A plan of any size; if its world_size is not set, it is taken as 1. Rank 0 is measured.
    progress : callable, optional
        Called as progress(measurements_done, measurements_in_all), from 0 on.

    Returns
    -------
    Bench
        Rows for the first batch of a new process and of a new epoch, the share of one rank with 1
        thread and with more, a batch at a random step, a resume, finding a sample, and torch.

    Raises
    ------
    IndexPlanError
        If the plan's first sub-epoch has no step, or a process that measures fails.

    Examples
    --------
    >>> import indexplan as ip
    >>> report = bench(ip.Plan(ip.Shuffle(1000), world_size=4, batch_size=8))
    >>> all(row.seconds is None or row.seconds > 0 for row in report.rows)
    True
    """
    check_plan("plan", plan)
    check_callable("progress", progress)
    plan = plan if plan.world_size is not None else plan.replace(world_size=1).resume(plan.start)
    epoch, sub_epoch = plan.start.epoch, plan.start.sub_epoch
    left = plan.steps(epoch, sub_epoch)
    first, num_steps = left.start, left.stop
    if first == num_steps:
        cure = "bench more samples, fewer ranks or a smaller batch"
        raise wrong("the number of steps to measure", "at least 1", 0, cure)
    num_cores, free_bytes = machine.num_cores(), machine.free_bytes()
    jobs: list[Callable[[], Row | list[Row]]] = [
        lambda: _firsts(plan),
        *(
            lambda threads=threads: _share(plan, threads)
            for threads in machine.thread_counts(num_cores)
        ),
        lambda: _random_batch(plan),
        lambda: _resume(plan),
        lambda: _locate(plan),
        lambda: _torch(plan, free_bytes),
    ]
    rows: list[Row] = []
    for done, job in enumerate(jobs):
        if progress:
            progress(done, len(jobs))
        measured = job()
        rows += measured if isinstance(measured, list) else [measured]
    if progress:
        progress(len(jobs), len(jobs))
    return Bench(plan, num_cores, free_bytes, tuple(_compared(rows)))


def _firsts(plan: Plan) -> list[Row]:
    """Time first batches: of new processes, and of new plans, each in another epoch."""
    ends, peak_bytes = [], None
    with tempfile.TemporaryDirectory() as folder:
        options = {"plan": plan.to_json(), "columns": _paths(plan, folder)}
        for _ in range(4):  # the first may fill numba's cache
            start = time()
            result = _child("first_batch", options)
            ends.append(result["ready"] - start)
            peak_bytes = result["peak_bytes"]
    begin = plan.start
    epochs = range(begin.epoch + 1, begin.epoch + 1 + ROUNDS)
    fresh = [(plan.replace(), epoch, 0, 0) for epoch in epochs if plan.steps(epoch, 0).stop]
    if not fresh:  # "carry", where a step takes many epochs
        step = plan.steps(begin.epoch, begin.sub_epoch).start
        fresh = [(plan, begin.epoch, begin.sub_epoch, step)]
    questions = iter(fresh)

    def ask() -> Int64:
        each, epoch, sub_epoch, step = next(questions)
        return each.batch(epoch, sub_epoch, step=step, rank=0)

    seconds, batch = _median(ask, len(fresh))
    name = "the first batch of a new epoch"
    return [
        Row("new_process", "a new process, from its start to a batch", statistics.median(ends[1:])),
        Row("first_batch", name, seconds, len(batch), peak_bytes),
    ]


def _paths(plan: Plan, folder: str) -> list[str]:
    """Return the paths of a plan's columns; those without a file are written to a folder."""
    paths = []
    for digest, column in columns_of(plan).items():
        path = column.path
        if path is None:
            path = str(Path(folder, f"{digest}.npy"))
            np.save(path, column.array)
        paths.append(path)
    return paths


def _share(plan: Plan, num_threads: int) -> Row:
    epoch, sub_epoch = plan.start.epoch, plan.start.sub_epoch
    left = plan.steps(epoch, sub_epoch)
    first, num_steps = left.start, left.stop
    size = max(1, len(plan.batch(epoch, sub_epoch, step=first, rank=0)))
    stop = min(num_steps, first + max(1, SHARE // size))
    steps = {"start_step": first, "stop_step": stop}

    def ask() -> Int64:
        return plan.indices(epoch, sub_epoch, rank=0, **steps, num_threads=num_threads)

    ask()
    seconds, indices = _median(ask, 5)
    part = (
        "one rank's share" if stop == num_steps else f"{counted(stop - first, 'step')} of one rank"
    )
    name = f"{part}, {num_threads} thread" + "s" * (num_threads > 1)
    return Row(f"share_{num_threads}", name, seconds, len(indices))


def _random_batch(plan: Plan) -> Row:
    epoch, sub_epoch = plan.start.epoch, plan.start.sub_epoch
    left = plan.steps(epoch, sub_epoch)
    first, num_steps = left.start, left.stop
    steps = iter(np.random.default_rng(0).integers(first, num_steps, 10 * ROUNDS).tolist())
    seconds, batch = _median(
        lambda: plan.batch(epoch, sub_epoch, step=next(steps), rank=0), 10 * ROUNDS
    )
    return Row("random_batch", "a batch at a random step", seconds, len(batch))


def _resume(plan: Plan) -> Row:
    epoch, sub_epoch = plan.start.epoch, plan.start.sub_epoch
    left = plan.steps(epoch, sub_epoch)
    first, num_steps = left.start, left.stop
    middle = (first + num_steps) // 2
    cursor = plan.cursor(epoch, sub_epoch, step=middle)

    def ask() -> Int64:
        return plan.resume(cursor).batch(epoch, sub_epoch, step=middle, rank=0)

    seconds, batch = _median(ask, ROUNDS)
    return Row("resume", "resume in the middle, and its batch", seconds, len(batch))


def _locate(plan: Plan) -> Row:
    num = plan.order.num_samples
    samples = iter(np.random.default_rng(1).integers(num, size=ROUNDS + 1).tolist())
    epoch = plan.start.epoch
    plan.locate(next(samples), epoch)  # this loads the kernel of the inverse
    seconds, _ = _median(lambda: plan.locate(next(samples), epoch), ROUNDS)
    return Row("locate", "where one sample is read", seconds)


def _torch(plan: Plan, free_bytes: int | None) -> Row:
    key, name = "torch", "torch DistributedSampler, first batch"
    num, world_size = plan.order.num_samples, plan.world_size
    shuffle = plan.order.algorithm != "sequential-v1"
    if importlib.util.find_spec("torch") is None:
        return Row(key, name, None, note="torch is not installed")
    needed = TORCH_BYTES[shuffle] * num
    if free_bytes is None and needed > 10**9:
        note = f"not run: needs about {show_memory(needed)}; how much is free is unknown here"
        return Row(key, name, None, note=note)
    if free_bytes is not None and needed > free_bytes:
        words = (
            f"does not fit: needs about {show_memory(needed)}, {show_memory(free_bytes)} are free"
        )
        return Row(key, name, None, note=words)
    start = plan.start
    step = plan.steps(start.epoch, start.sub_epoch).start
    size = len(plan.batch(start.epoch, start.sub_epoch, step=step, rank=0))
    options: dict[str, Any] = {"num_samples": num, "world_size": world_size, "batch_size": size}
    try:
        options = {**options, "shuffle": shuffle, "limit": TORCH_LIMIT}
        result = _child("torch_sampler", options)
    except subprocess.TimeoutExpired:
        return Row(key, name, None, note=f"stopped after {TIMEOUT:.0f} s")
    if "estimate" in result:
        words = f"about {show_time(result['estimate'])} by extrapolation from 1e6 samples; not run"
        return Row(key, name, None, note=words)
    return Row(key, name, result["seconds"], size, result["peak_bytes"])


def _compared(rows: list[Row]) -> Iterator[Row]:
    """Add to torch's row how many times the time and memory of the plan's first batch it takes."""
    ours = next(row for row in rows if row.key == "first_batch")
    for row in rows:
        if row.key != "torch" or row.seconds is None or ours.seconds is None:
            yield row
            continue
        words = f"{row.seconds / ours.seconds:,.0f} times the plan's time"
        if row.peak_bytes and ours.peak_bytes is not None:
            over = "over " if ours.peak_bytes < LITTLE else ""
            times = row.peak_bytes / max(ours.peak_bytes, LITTLE)
            words += f", {over}{times:,.0f} times its memory"
        yield Row(row.key, row.name, row.seconds, row.num_indices, row.peak_bytes, words)


def _child(job: str, options: dict[str, Any]) -> dict[str, Any]:
    """Run a measurement in a new process, and return its result."""
    root = str(Path(__file__).parents[3])  # the folder of the package
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(  # noqa: S603 (this interpreter, and a module of this package)
        [sys.executable, "-m", f"{__package__}.child", job, json.dumps(options)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )
    if done.returncode:
        got = done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}"
        cure = "bench one of indexplan's own orders, with memory to spare"
        raise IndexPlanError(f"the process that measures {job}", "must end well", f"{got!r}", cure)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _median(ask: Callable[[], Any], rounds: int) -> tuple[float, Any]:
    """Return the median time of some calls, in seconds, and the last answer."""
    times, answer = [], None
    for _ in range(rounds):
        start = perf_counter()
        answer = ask()
        times.append(perf_counter() - start)
    return statistics.median(times), answer
