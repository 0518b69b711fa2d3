"""Does the order matter to the disk? Loaders that read a memory-mapped file.

The file is made in a temporary folder, which has to be on a disk (set TMPDIR). A fresh process
without threads forks another one for every measurement, and that one forks the loader's workers: so
imports run once, and no lock can be held at a fork.
"""

from __future__ import annotations

import mmap
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import indexplan as ip
from benchmarks.contenders.planners import Job as Asked
from benchmarks.contenders.planners import distributed_sampler
from benchmarks.measure import page_cache
from benchmarks.measure.fresh import run_fresh
from indexplan_torch import PlanLoader

ROW_BYTES, ROWS_AT_ONCE = 512, 2**15
BATCH = 256
PLAIN = (
    "whole file, 1 MiB at a time, cold",
    "the same, warm",
    "pages at random, one at a time, cold",
)
"""What the disk does without any loader."""
ADVICE = {"default": mmap.MADV_NORMAL, "random": mmap.MADV_RANDOM}


def make(path: Path, num_rows: int) -> None:
    """Write the dataset: a row's first 8 bytes hold its number, the rest looks random."""
    with path.open("wb") as file:
        for start in range(0, num_rows, ROWS_AT_ONCE):
            file.write(row_words(np.arange(start, min(start + ROWS_AT_ONCE, num_rows))).data)


def row_words(numbers: np.ndarray) -> np.ndarray:
    """Return the rows of these numbers as int64 words, shape (rows, ROW_BYTES // 8)."""
    salt = np.random.default_rng(0).integers(0, 2**62, ROW_BYTES // 8)  # no zeros, no runs: a
    salt[0] = 0  # virtual disk may not store those
    return numbers[:, None] ^ salt


@dataclass(frozen=True, kw_only=True)
class Job:
    """One thing to measure; its fields are those of the results."""

    who: str
    workers: int = 0
    cache: str = "cold"
    advice: str = "default"

    def limits(self, seconds: float) -> tuple[int, float]:
        """Return after how many batches a run ends, and how many seconds after its first."""
        if self.cache == "cold" and self.advice == "default":
            # A full shuffle has the file in memory after some batches, so that only the same
            # number of them, all in, is a fair comparison.
            return 1000, 20 * seconds
        return 4000, seconds


class Rows:
    """A dataset of a file's rows, asked for by the batch, which is what a loader does if it can.

    The map is made where the dataset is, and forked workers inherit it: it does not pickle.
    """

    def __init__(self, path: Path, advice: str) -> None:
        # As np.memmap does, which has no public way to madvise.
        with path.open("rb") as file:
            pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        pages.madvise(ADVICE[advice])
        self.rows = np.frombuffer(pages, np.uint8).reshape(-1, ROW_BYTES)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitems__(self, indices: list[int]) -> np.ndarray:
        return self.rows[indices]


def plan_of(job: Job, num_rows: int) -> ip.Plan:
    """Return the plan of one of ours."""
    order = {
        "indexplan Sequential": lambda: ip.Sequential(num_rows),
        "indexplan Shuffle": lambda: ip.Shuffle(num_rows),
        "indexplan BlockShuffle": lambda: ip.BlockShuffle(num_rows, 4096, 8),
    }[job.who]()
    return ip.Plan(order, world_size=1, batch_size=BATCH, remainder="drop")


def loader_of(job: Job, dataset: Rows) -> Iterable[torch.Tensor]:
    """Return the loader of a job; all that differs is who says which rows are read."""
    options: dict[str, Any] = {"num_workers": job.workers, "collate_fn": torch.from_numpy}
    if job.workers:
        options["multiprocessing_context"] = "fork"
    if job.who == "torch DistributedSampler":
        sampler = distributed_sampler().sampler(Asked(len(dataset), world=1, rank=0))
        return DataLoader(dataset, BATCH, sampler=sampler, drop_last=True, **options)
    return PlanLoader(dataset, plan_of(job, len(dataset)), **options)


def planned(job: Job, num_rows: int, num_batches: int) -> np.ndarray:
    """Return the numbers of the rows that one of ours has to read, int64."""
    plan = plan_of(job, num_rows)
    return np.concatenate(list(plan.batches(0, rank=0, stop_step=num_batches)))


def disk_bytes() -> int | None:
    """Return what this process and its workers had the disk read so far; None if it is not told.

    Workers may have drawn four batches more than the loop has: their bytes are in it.
    """
    processes = ["self", *(child.pid for child in multiprocessing.active_children())]
    total = 0
    for process in processes:
        try:
            total += page_cache.read_by(process)
        except OSError:  # another system, or a container that hides it
            return None
    return total


def read(job: Job, path: Path, theirs: np.ndarray, seconds: float) -> dict[str, Any]:
    """Time the first batch, and then batches until there are enough or the time is over.

    `theirs` are the rows that torch's sampler has to read, int64.
    """
    num_batches, most = job.limits(seconds)
    before = disk_bytes()
    dataset = Rows(path, job.advice)
    start = perf_counter()
    batches = iter(loader_of(job, dataset))
    batch = next(batches)
    first = perf_counter() - start
    between = disk_bytes()
    numbers = [batch[:, :8].numpy().copy()]
    start = perf_counter()
    for batch in islice(batches, num_batches - 1):
        numbers.append(batch[:, :8].numpy().copy())  # not the rows: new memory costs as much
        if perf_counter() - start > most:
            break
    rest = perf_counter() - start
    after = disk_bytes()
    del batches  # ends the workers
    seen = np.concatenate(numbers).view(np.int64).ravel()  # of [rows, 8] bytes
    ours = job.who != "torch DistributedSampler"
    np.testing.assert_array_equal(
        seen, planned(job, len(dataset), len(numbers)) if ours else theirs[: len(seen)]
    )
    np.testing.assert_array_equal(batch.numpy().view(np.int64), row_words(seen[-BATCH:]))
    told = before is not None and between is not None and after is not None
    return {
        "first": first,
        "first_read_bytes": between - before if told else None,
        "seconds": first + rest,
        "rows_per_s": (len(seen) - BATCH) / rest,
        "read_bytes": after - before if told else None,
        "useful_bytes": len(seen) * ROW_BYTES,
    }


def forked(job: Job, *arguments: Any) -> dict[str, Any]:
    """Return what `read` returns in a process of its own."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=lambda: sender.send(read(job, *arguments)))
    process.start()
    sender.close()  # so that a process that fails ends the wait
    try:
        return receiver.recv()
    except EOFError:
        raise RuntimeError(f"{job} failed; its error is above") from None
    finally:
        process.join()


def all_jobs() -> list[Job]:
    """Return what is measured, in the order of the tables."""
    ours = [f"indexplan {order}" for order in ("Sequential", "Shuffle", "BlockShuffle")]
    whos = ["torch DistributedSampler", *ours]
    scenarios = [("cold", "default"), ("cold", "random"), ("warm", "default")]
    return [
        Job(who=who, workers=workers, cache=cache, advice=advice)
        for cache, advice in scenarios
        for workers in (0, 2)
        for who in whos
    ]


def in_turns(file: str, rounds: int, seconds: float) -> list[dict[str, Any]]:
    """Measure everything in turns, `rounds` times, in a process of its own; return rows."""
    path = Path(file)
    torch.set_num_threads(1)
    for order in (ip.Shuffle(1000), ip.BlockShuffle(1000, block_size=8)):
        order.take(0, 0, 10)  # loads or compiles the kernels, before any process is forked
    theirs = np.fromiter(
        distributed_sampler().sampler(Asked(len(Rows(path, "default")), world=1, rank=0)), np.int64
    )
    threads = os.listdir("/proc/self/task") if sys.platform == "linux" else [""]  # noqa: PTH208
    assert len(threads) == 1, "forking a process with threads can hang"
    jobs = all_jobs()
    runs: dict[Job, list[dict[str, Any]]] = {job: [] for job in jobs}
    plain: dict[str, list[float]] = {case: [] for case in PLAIN}
    groups = [("cold", "default"), ("warm", "default"), ("cold", "random")]
    for turn in range(rounds):
        # Reading page by page leaves free memory in small pieces: the next read of the whole file
        # was seen to take up to four times as long, the one after it not. So one goes before the
        # timed one, and what reads page by page comes last.
        for _ in range(2):
            page_cache.cool(path)
            bytes_per_s = page_cache.read_through(path)
        cold, warm, pages = plain.values()
        cold.append(bytes_per_s / ROW_BYTES)
        warm.append(page_cache.read_through(path) / ROW_BYTES)
        for group in groups:
            members = [job for job in jobs if (job.cache, job.advice) == group]
            for job in members[:: (1, -1)[turn % 2]]:  # nobody always comes first
                (page_cache.cool if job.cache == "cold" else page_cache.warm)(path)
                runs[job].append(forked(job, path, theirs, seconds))
        page_cache.cool(path)
        pages.append(page_cache.read_pages(path, seconds / 2, turn))  # a row used of each
    rows: list[dict[str, Any]] = []
    for case, speed in plain.items():
        told = {"slowest_rows_per_second": min(speed), "rows_per_second": median(speed)}
        told |= {"best_rows_per_second": max(speed), "bytes_per_second": median(speed) * ROW_BYTES}
        rows.append({"table": "disk", "case": case, **told})
    for job, found in runs.items():
        shown = {"table": f"{job.cache}, {job.advice}, gather", "case": f"{job.workers} workers"}
        rows.append({**shown, "who": job.who, **of_runs(found)})
    return rows


def of_runs(runs: list[dict[str, Any]]) -> dict[str, float]:
    """Return the numbers of a job: medians and bests; of disks that do not tell, none."""
    first, speed, read = (
        [run[key] for run in runs] for key in ("first", "rows_per_s", "first_read_bytes")
    )
    numbers = {
        "first_seconds": median(first),
        "best_first_seconds": min(first),
        "rows_per_second": median(speed),
        "best_rows_per_second": max(speed),
        "bytes_per_second": median(speed) * ROW_BYTES,
        "best_seconds": min(run["seconds"] for run in runs),
    }
    if None not in read:
        numbers["first_read_bytes"] = median(read)
        numbers["amplification"] = median(run["read_bytes"] / run["useful_bytes"] for run in runs)
    return numbers


def measure(*, quick: bool) -> list[dict[str, Any]]:
    """Measure all; `quick` on a small file, and once. Return rows."""
    num_rows, rounds, seconds = (2**13, 1, 0.3) if quick else (2**22, 3, 0.8)
    facts: dict[str, Any] = {"num_rows": num_rows, "rounds": rounds, "seconds": seconds}
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory(prefix="indexplan-") as folder:
        path = Path(folder) / "rows.bin"
        make(path, num_rows)
        page_cache.cool(path)  # before anything else fails for want of it
        found = run_fresh(f"{__name__}.in_turns", str(path), rounds, seconds, **one_thread)
        facts["read_ahead"] = page_cache.read_ahead(path)
        return [{"table": "conditions", **facts}, *found]


@pytest.mark.nightly
def test_loading(whole: Callable[..., Any]) -> None:
    """Measure all of it."""
    whole(measure)
