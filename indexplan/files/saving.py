"""save: build a plan directory, without locks, by any number of builders, which may die anywhere.

Files appear whole. Those that are there are compared, not trusted: they may be damaged, or of
another plan. Whoever is second at a name keeps the first one's file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import islice
from typing import Any

from indexplan.answers import Answer
from indexplan.errors import (
    Cure,
    check_callable,
    counted,
    integer,
    invalid,
)
from indexplan.files import columns
from indexplan.files.chunk_files import Progress, write_chunks
from indexplan.files.format import PLAN, UNITS_PER_CHUNK, Build
from indexplan.files.read import Stored
from indexplan.files.running import check_executor
from indexplan.keywords import named
from indexplan.parts import split
from indexplan.plan.plan import Plan, check_plan, columns_of
from indexplan.seeds import check_epochs
from indexplan.shards.dataset import Dataset, Identified
from indexplan.stores.agree import claim
from indexplan.stores.open import store_of

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

    Use it where an order is slow to compute, or where other tools have to read it; a plan can be
    used without it. It is safe to kill and to run again: what is there already is compared with
    what belongs there, and only the rest is written. Any number of processes may save the same plan
    to one path at once. The directory is a plan as soon as all of its files are there.

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
    build = Build.of(plan.to_dict(), order, numbers, units_per_chunk, dataset)
    mine = _chunks_of(part, build.num_chunks)
    store = store_of(path)
    check_executor(executor)
    what, rule = "a plan directory", "must be a build of the same plan and epochs"
    cure = "choose another path; if only its partition is another, load it and use plan.replace"
    claim(store, PLAN, what, build.to_dict(), rule, Cure(cure, "choose another path"))
    found = columns_of(plan)
    columns.publish(store, found)
    written = write_chunks(store, build, order, mine, executor, progress)
    names = [chunk.name for chunk in islice(build.chunks(), mine.start, mine.stop)]
    store.tidy([PLAN, *columns.files_of(found), *names])
    kept = sum(each.kept for each in written)
    return Saved(
        path=store.path,
        num_bytes=sum(each.size for each in written),
        num_written=len(written) - kept,
        num_kept=kept,
        fingerprint=plan.fingerprint,
    )


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
    number = integer("part's first number", number, 0, NUM_PARTS_STOP, cure)
    if not 1 <= number <= of:
        cure = f"count from 1, in a job array with --array=1-{of}"
        raise invalid("part", f"from 1/{of} to {of}/{of}", f"{number}/{of}", cure)
    return range(split(num_chunks, of, number - 1), split(num_chunks, of, number))
