"""save and finish: build a plan directory, without locks, by any number of builders at once."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass

from indexplan.answers import Answer
from indexplan.errors import check_callable, counted, wrong
from indexplan.files.building import Building, joined
from indexplan.files.chunk_files import Progress
from indexplan.files.directory import PlanDirectory
from indexplan.files.format import UNITS_PER_CHUNK, Build, sha256_of
from indexplan.files.parts import Parts, UnfinishedError, check_part, chunks_of
from indexplan.files.read import Stored
from indexplan.files.running import check_executor
from indexplan.keywords import named
from indexplan.plan.plan import Plan, check_plan, columns_of
from indexplan.seeds import check_epochs
from indexplan.shards.dataset import Dataset, Identified
from indexplan.stores.open import store_of


def was_there(number: int) -> str:
    """Write how many files of a build or an export were kept."""
    return f"{number:,} {'was' if number == 1 else 'were'} there already"


@dataclass(frozen=True, kw_only=True)
class Saved(Answer):
    """What `save` or `finish` did: chunks that were written, and right ones that were there.

    `finished` says whether the directory is a plan now; after one part, others may be missing.
    `num_bytes` is the size of these chunks, and `fingerprint` is the plan's.

    Examples
    --------
    >>> import indexplan as ip
    >>> plan = ip.Plan(ip.Shuffle(1000), batch_size=8)
    >>> saved = ip.save(plan, "part.plan", epochs=range(4), part=(1, 2))
    >>> saved.num_written, saved.finished
    (2, False)
    """

    path: str
    num_bytes: int
    num_written: int
    num_kept: int
    finished: bool = True
    fingerprint: str

    def __str__(self) -> str:
        return (
            f"{self.path}: {counted(self.num_bytes, 'byte')}; "
            f"{counted(self.num_written, 'chunk')} written, {was_there(self.num_kept)}"
            f"{'' if self.finished else '; other parts are not done yet'}"
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
    to one path at once. The directory is a plan as soon as `manifest.json` is in it.

    Parameters
    ----------
    plan : Plan
        Its order is written; its partition becomes the default of `load`.
    path : str or path-like
        The plan directory: new, empty, or a build of the same order, epochs and partition. With
        the extra `remote`, also the URL of one in an object store, such as s3://bucket/run.plan.
    epochs : iterable of int, default range(1)
        The epochs to write, 0 <= epoch < 2**32.
    dataset : Dataset or Shards, optional
        The dataset that the plan is for; its identity is stored, and `load` can compare it.
    executor : concurrent.futures.Executor, optional
        What generates and writes the chunks; by default one thread for each core. At most 1024
        tasks are in flight, fewer if the order takes more than 256 kB to send to each, and they
        return hashes, never arrays. Workers elsewhere need indexplan, the module of the order's
        class, and the directory at the same path.
    part : tuple of int, optional
        (number, of how many), counted from 1: write only that share of the chunks, in any process
        on any machine. The part that ends last finishes the plan.
    progress : callable, optional
        Called as progress(units_done, units_in_all), in the calling thread: after each chunk, and
        every million units or so if threads build single samples.
    units_per_chunk : int, default 2**26
        Units in a chunk file.

    Returns
    -------
    Saved
        How many chunks were written, and how many were kept.

    Raises
    ------
    PlanFileError
        If the directory cannot be written, is something else, holds a damaged file, or was
        built with another partition.
    IndexPlanError
        If an argument breaks its rule, or the executor was shut down; nothing has been written
        then. If the order cannot be sent to the executor's workers, or the executor breaks.
    Exception
        What the order raises, unchanged.

    See Also
    --------
    finish : makes a plan of the parts that have been built.

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
        raise wrong("epochs", "at least one epoch", numbers, "leave it out for epoch 0")
    order = plan.order.source if isinstance(plan.order, Stored) else plan.order
    balance = None if plan.balance is None else plan.balance.to_dict()
    build = Build.of(order, numbers, units_per_chunk, dataset, balance)
    for digest, column in order._lacks.items():  # noqa: SLF001 (of an order)
        if digest not in build.over:
            column.array  # noqa: B018 (raises, before anything is written)
    number, of = (1, 1) if part is None else check_part(part)
    mine = chunks_of(build.num_chunks, number, of)
    directory = PlanDirectory(store_of(path))
    check_executor(executor)
    building = Building(directory, build, plan.to_dict())
    building.claim()
    building.write_columns(columns_of(plan))
    written = building.write_chunks(order, mine, executor, progress)
    if of == 1:
        building.complete(written)
    finished = of == 1 or building.record(number, of, written)
    building.sweep(None if finished else mine)
    kept = sum(each.kept for each in written)
    return Saved(
        path=directory.path,
        num_bytes=sum(each.size for each in written),
        num_written=len(written) - kept,
        num_kept=kept,
        finished=finished,
        fingerprint=plan.fingerprint,
    )


@named
def finish(path: str | os.PathLike[str], *, progress: Progress | None = None) -> Saved:
    """Finish a plan whose parts were built in a directory, or name the parts that are missing.

    The last part to end does this by itself: call it to find out which parts have to run again. It
    doesn't read the chunks, because each part has recorded the hashes of what it generated;
    `verify` reads them.

    Parameters
    ----------
    path : str or path-like
        The plan directory.
    progress : callable, optional
        Called as progress(chunks_checked, chunks_in_all), in the calling thread.

    Returns
    -------
    Saved
        The whole plan; all of its chunks were there already.

    Raises
    ------
    PlanFileError
        If chunks are missing: the message names them, and the parts to run again. If a file of the
        plan or a part's record is damaged, parts were given different partitions, or there is no
        build at the path.
    IndexPlanError
        If path is not a path, or progress is not a function.

    Examples
    --------
    >>> import tempfile, indexplan as ip
    >>> plan, folder = ip.Plan(ip.Shuffle(1000), batch_size=8), tempfile.mkdtemp()
    >>> [ip.save(plan, folder, epochs=range(4), part=(i, 2)).finished for i in (1, 2)]
    [False, True]
    >>> ip.finish(folder).num_kept
    4
    """
    check_callable("progress", progress)
    directory = PlanDirectory(store_of(path))
    build = directory.build
    try:
        manifest = joined(directory, build, progress).manifest
    except UnfinishedError as error:
        raise Parts(directory, build).missing(error) from None
    Building(directory, manifest.build, manifest.plan).sweep()
    sizes = manifest.chunk_bytes
    return Saved(
        path=directory.path,
        num_bytes=sum(sizes),
        num_written=0,
        num_kept=len(sizes),
        fingerprint=sha256_of(manifest.plan),
    )
