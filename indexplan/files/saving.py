"""save: build a plan directory, without locks, by any number of builders, which may die anywhere.

Files appear whole. Those that are there are compared, not trusted: they may be damaged, or of
another plan. Whoever is second at a name keeps the first one's file.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from indexplan import kernels
from indexplan.answers import Answer
from indexplan.errors import Cure, PlanFileError, check_callable, counted, integer, invalid
from indexplan.files import columns
from indexplan.files.format import INDICES, PLAN, UNITS_PER_CHUNK, Build, Chunk, hashes_file
from indexplan.files.read import Stored
from indexplan.files.running import check_executor, run
from indexplan.keywords import named
from indexplan.orders.base import Order
from indexplan.parts import split
from indexplan.plan.plan import Plan, check_plan, columns_of, dict_of
from indexplan.seeds import check_epochs
from indexplan.shards.dataset import Dataset, Identified
from indexplan.stores.agree import claim, put
from indexplan.stores.open import store_of

Progress = Callable[[int, int], None]

NUM_PARTS_STOP = 10**9


@dataclass(frozen=True, kw_only=True)
class Saved(Answer):
    """What `save` or `export` did: files that it wrote, and right ones that were there already.

    `num_bytes` is the size of these files, and `fingerprint` is the plan's. Of a plan directory,
    they are its chunk files.

    Examples
    --------
    >>> import indexplan as ip
    >>> plan = ip.Plan(ip.Shuffle(1000), batch_size=8)
    >>> saved = ip.save(plan, "part.plan", epochs=range(4), part=(1, 2))
    >>> saved.num_written
    2
    """

    path: str
    num_bytes: int
    num_written: int
    num_kept: int
    fingerprint: str

    def __str__(self) -> str:
        were = "was" if self.num_kept == 1 else "were"
        return (
            f"{self.path}: {counted(self.num_bytes, 'byte')}; "
            f"{counted(self.num_written, 'file')} written, {self.num_kept:,} {were} there already"
        )


@named
def save(
    plan: Plan,
    path: str | os.PathLike[str],
    *,
    epochs: Iterable[int] = range(1),
    dataset: Dataset | Identified | None = None,
    executor: Executor | None = None,
    part: tuple[int, int] | None = None,
    progress: Progress | None = None,
    units_per_chunk: int = UNITS_PER_CHUNK,
) -> Saved:
    """Write the order of some epochs to a plan directory, which `load` opens.

    Use it if an order is slow to compute, or if other tools have to read it; other plans need no
    files. You may kill it and run it again: existing files are compared with what belongs in them,
    and only the rest is written. Any number of processes may save the same plan to one path at
    once. The directory is a plan as soon as all of its files are there.

    Parameters
    ----------
    plan : Plan
        Its order is written; its partition becomes the default of `load`.
    path : str or path-like
        The plan directory: new, empty, or a build of the same plan and epochs. With
        the extra `remote`, also the URL of one in an object store, such as s3://bucket/run.plan.
    epochs : iterable of int, default range(1)
        The epochs to write, 0 <= epoch < 2**32.
    dataset : Dataset or Shards, optional
        The dataset that the plan is for; its identity is stored, and `load` can compare it.
    executor : concurrent.futures.Executor, optional
        What generates and writes the chunks; by default one thread for each core. At most 1024
        tasks are in flight, fewer if the order takes more than 256 kB to send to each. Workers
        elsewhere need indexplan, the module of the order's class, and the directory at the same
        path.
    part : tuple of int, optional
        (number, of how many), counted from 1: write only that share of the chunk files, in any
        process on any machine. Run each part once or more often, in any sequence; to build the same
        plan in another number of parts is fine too.
    progress : callable, optional
        Called as progress(units_done, units_in_all), in the calling thread, after each chunk.
    units_per_chunk : int, default 2**26
        Units in a chunk file.

    Returns
    -------
    Saved
        How many chunks were written, and how many were kept.

    Raises
    ------
    PlanFileError
        If the directory cannot be written, is something else, holds a damaged file, or is a build
        of another plan, such as one with another partition.
    IndexPlanError
        If an argument breaks its rule; nothing has been written then. If the order cannot be sent
        to the executor's workers, or the executor breaks or was shut down.
    Exception
        What the order raises, unchanged.

    Examples
    --------
    >>> import indexplan as ip
    >>> plan = ip.Plan(ip.Shuffle(1000), world_size=8, batch_size=16)
    >>> ip.save(plan, "run.plan", epochs=range(3)).num_bytes
    12384
    >>> ip.load("run.plan") == plan
    True
    """
    check_plan("plan", plan)
    check_callable("progress", progress)
    numbers = sorted(set(check_epochs(epochs)))
    if not numbers:
        raise invalid("epochs", "at least one epoch", numbers, "leave it out for epoch 0")
    order = plan.order.source if isinstance(plan.order, Stored) else plan.order
    build = Build.of(dict_of(plan), order, numbers, units_per_chunk, dataset)
    mine = _chunks_of(part, build.num_chunks)
    store = store_of(path)
    check_executor(executor)
    what, rule = "a plan directory", "must be a build of the same plan and epochs"
    cure = "choose another path; if only its partition is another, load it and use plan.replace"
    claim(store, PLAN, what, build.to_dict(), rule, Cure(cure, "choose another path"))
    found = columns_of(plan)
    columns.publish(store, found)
    chunks = [*islice(build.chunks(), mine.start, mine.stop)]
    total = sum(chunk.stop - chunk.start for chunk in chunks if chunk.kind == INDICES)
    done = num_bytes = num_kept = 0

    def take(chunk: Chunk, result: tuple[int, bool]) -> None:
        nonlocal done, num_bytes, num_kept
        done += chunk.stop - chunk.start if chunk.kind == INDICES else 0
        num_bytes += result[0]
        num_kept += result[1]
        if progress is not None:
            progress(done, total)

    if progress is not None:
        progress(0, total)
    # workers may have another working directory, and need to know little of the build
    root = store.path if executor is None else store.absolute()
    light = replace(build, plan={}, epochs=(), num_units=(), dataset=None)
    run(executor, write_chunk, (root, light, build.sha256, order), chunks, take)
    store.tidy([PLAN, *columns.files_of(found), *(chunk.name for chunk in chunks)])
    return Saved(
        path=store.path,
        num_bytes=num_bytes,
        num_written=len(chunks) - num_kept,
        num_kept=num_kept,
        fingerprint=plan.fingerprint,
    )


def write_chunk(
    root: str, build: Build, digest: str, order: Order, chunk: Chunk
) -> tuple[int, bool]:
    """Write one chunk file and then its hashes, or compare those that are there.

    Return its bytes, and whether it was there.

    A builder that is killed in between leaves a chunk without hashes, which no reader opens. The
    next one compares the chunk and writes them.
    """
    store = store_of(root)
    if not store.has(PLAN):
        got = f"no {PLAN} there on {platform.node()}"
        raise PlanFileError(
            root,
            "must be there, for every worker to see",
            got,
            "if nobody removed it, choose a path on shared storage",
        )
    hashes: list[int] = []
    size = 0

    def hashed() -> Iterator[memoryview]:
        nonlocal size
        hashes.clear()
        size = 0
        for block in build.content(order, chunk):
            hashes.append(kernels.xxh64.xxh64(block))
            size += len(block)
            yield block

    def noted() -> list[memoryview]:
        return [memoryview(hashes_file(digest, chunk, hashes))]

    kept = put(store, chunk.name, hashed, "must hold what its order generates", "build")
    put(store, chunk.hashes_name, noted, f"must hold the hashes of {chunk.name}", "build")
    return size, kept


def _chunks_of(part: Any, num_chunks: int) -> range:
    """Return which of a build's chunk files a part writes; parts differ by one file at most."""
    if part is None:
        return range(num_chunks)
    try:
        number, of = part
    except Exception:  # TypeError, ValueError, or whatever a user's class raises
        rule = "a pair (number, of how many), such as (1, 4)"
        raise invalid("part", rule, part, "leave it out to build all") from None
    cure = "pass (number, of how many), such as (1, 4)"
    of = integer("part's second number", of, 1, NUM_PARTS_STOP, cure)
    cure = f"count from 1, in a job array with --array=1-{of}"
    number = integer("part", number, 1, of + 1, cure)
    return range(split(num_chunks, of, number - 1), split(num_chunks, of, number))
