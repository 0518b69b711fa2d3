"""save and finish: build a plan directory, without locks, by any number of builders at once."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from indexplan.answers import Answer
from indexplan.canonical import parse_json_object
from indexplan.errors import IndexPlanError, PlanFileError, check_callable, counted, in_file, wrong
from indexplan.files import columns
from indexplan.files.building import check_chunks, check_there, clear, complete, join
from indexplan.files.directory import read_manifest
from indexplan.files.format import (
    BUILD,
    CURE,
    INDICES,
    UNITS_PER_CHUNK,
    Build,
    Chunk,
    sha256_of,
)
from indexplan.files.parts import UnfinishedError, check_part, chunks_of, missing, record
from indexplan.files.read import Stored
from indexplan.files.running import check_executor, run
from indexplan.orders.base import Order
from indexplan.plan.plan import Plan, check_plan, columns_of
from indexplan.seeds import check_epochs
from indexplan.shards.dataset import Dataset, Identified
from indexplan.stores.agree import claim, difference
from indexplan.stores.open import store_of
from indexplan.stores.store import Store

Progress = Callable[[int, int], None]

NUM_CHUNKS_MAX = 2**26  # with more, the manifest would be longer than any that is read


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
    _check_num_chunks(build)
    number, of = (1, 1) if part is None else check_part(part)
    root = store_of(path)
    check_executor(executor)
    _claim(root, build)
    check_there(root, plan.to_dict())
    columns.publish(root, columns_of(plan))
    mine = chunks_of(build.num_chunks, number, of)
    results = _build_chunks(root, build, order, mine, executor, progress)
    kept = sum(result.kept for result in results)
    left = [(result.size, result.hashes) for result in results]
    finished = True
    if of == 1:
        complete(root, build, plan.to_dict(), left)
        clear(root, build)
    else:
        record(root, build, number, of, plan.to_dict(), left)
        try:
            join(root, build)
            check_chunks(root, plan.to_dict(), mine.start, left)
        except UnfinishedError:
            finished = False
            chunks = islice(build.chunks(), mine.start, mine.stop)
            root.sweep([BUILD, *(chunk.name for chunk in chunks)])
    return Saved(
        path=root.path,
        num_bytes=sum(result.size for result in results),
        num_written=len(results) - kept,
        num_kept=kept,
        finished=finished,
        fingerprint=plan.fingerprint,
    )


def finish(path: str | os.PathLike[str], *, progress: Progress | None = None) -> Saved:
    """Make a plan of the parts that were built in a directory, or tell which are missing.

    The last part does so by itself: call this to find out which parts have to run again. Chunks are
    not read, as each part has recorded the hashes of what it generated; `verify` reads them.

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
    root = store_of(path)
    if not root.has(BUILD):
        read_manifest(root)  # which says what is there instead
    try:
        build = Build.from_dict(parse_json_object(BUILD, root.read(BUILD), CURE))
        _check_num_chunks(build)
    except PlanFileError:
        raise
    except IndexPlanError as error:
        raise in_file(root.path, error) from None
    try:
        manifest = join(root, build, progress)
    except UnfinishedError as error:
        raise missing(root, build, error) from None
    sizes = manifest.chunk_bytes
    return Saved(
        path=root.path,
        num_bytes=sum(sizes),
        num_written=0,
        num_kept=len(sizes),
        fingerprint=sha256_of(manifest.plan),
    )


def _check_num_chunks(build: Build) -> None:
    """Raise `IndexPlanError` if there are more chunk files than a plan directory can have."""
    if build.num_chunks > NUM_CHUNKS_MAX:
        cure = "build fewer epochs, or leave units_per_chunk out"
        raise wrong("the number of chunk files", "at most 2**26", build.num_chunks, cure)


def _claim(root: Store, build: Build) -> None:
    """Make the directory, and write to `build.json` what it is a build of."""
    mine = build.to_dict()
    there = claim(root, BUILD, "a plan directory", mine)
    if there != mine:
        differ = [name for name in mine if there.get(name) != mine[name]]
        said = "; ".join(f"{name} {there.get(name)!r}, not {mine[name]!r}" for name in differ)
        raise PlanFileError(
            root.path,
            "must be a build of the same order and epochs",
            f"one with {said[:1000]}",
            "choose another path",
        )


@dataclass(frozen=True)
class _Built:
    """What a task returns of one chunk file."""

    size: int
    hashes: NDArray[np.uint64]
    kept: bool


def _build_chunks(
    root: Store,
    build: Build,
    order: Order,
    numbers: range,
    executor: Executor | None,
    progress: Progress | None,
) -> list[_Built]:
    def chunks() -> Iterator[Chunk]:
        return islice(build.chunks(), numbers.start, numbers.stop)

    total = sum(chunk.stop - chunk.start for chunk in chunks() if chunk.kind == INDICES)
    done = 0
    results: dict[Chunk, _Built] = {}
    begun: dict[Chunk, int] = {}  # units of chunks that are not whole yet

    def told(chunk: Chunk, size: int) -> None:
        whole = build.num_bytes(chunk)
        if progress is not None and chunk.kind == INDICES and whole is not None and size < whole:
            units = (chunk.stop - chunk.start) * size // whole
            if units > begun.get(chunk, 0):  # a chunk that is compared is drawn again
                begun[chunk] = units
                progress(done + sum(begun.values()), total)

    def take(chunk: Chunk, result: _Built) -> None:
        nonlocal done
        results[chunk] = result
        begun.pop(chunk, None)
        done += chunk.stop - chunk.start if chunk.kind == INDICES else 0
        if progress is not None:
            progress(done, total)

    if progress is not None:
        progress(0, total)
    # workers may have another working directory, and need to know little of the build
    store = root.path if executor is None else root.absolute()
    light = replace(build, epochs=(), num_units=(), dataset=None)
    said = None if progress is None else told
    run(executor, build_chunk, (store, light, order), chunks(), take, said)
    return [results[chunk] for chunk in chunks()]


def build_chunk(
    root: str,
    build: Build,
    order: Order,
    chunk: Chunk,
    tell: Callable[[tuple[Chunk, int]], None] | None = None,
) -> _Built:
    """Write one chunk file, or compare the one that is there; return its size and block hashes."""
    from indexplan.kernels.xxh64 import xxh64

    store = store_of(root)
    if not store.has(BUILD):
        got = f"no {BUILD} there on {platform.node()}"
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
            hashes.append(xxh64(block))
            size += len(block)
            if tell is not None:
                tell((chunk, size))
            yield block

    kept = store.has(chunk.name) or not store.publish(chunk.name, hashed())
    if kept and (got := difference(store, chunk.name, hashed())):  # or another builder was faster
        raise PlanFileError(
            f"{store.path}/{chunk.name}",
            "must hold what its order generates",
            got,
            "delete the file and run the same build again",
        )
    return _Built(size, np.array(hashes, "<u8"), kept)
