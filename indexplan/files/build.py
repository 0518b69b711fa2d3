"""Building a plan directory: idempotent, without locks, by any number of builders at once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from indexplan.canonical import canonical_json, parse_json_object
from indexplan.dataset import Dataset
from indexplan.errors import PlanFileError, wrong
from indexplan.files.format import (
    BLOCKS,
    BUILD,
    MANIFEST,
    UNITS_PER_CHUNK,
    Build,
    Chunk,
    Manifest,
    header,
)
from indexplan.files.publish import TEMPORARY, explained, publish
from indexplan.files.read import Stored, open_chunk, read_small
from indexplan.orders.base import Order
from indexplan.plan import Plan
from indexplan.seeds import check_epoch
from indexplan.version import __version__

Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Saved:
    """What `save` did: files that it wrote, and files that were there already and were right."""

    path: str
    num_bytes: int
    num_written: int
    num_kept: int


def save(
    plan: Plan,
    path: str | os.PathLike[str],
    *,
    epochs: Iterable[int] = range(1),
    dataset: Dataset | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    units_per_chunk: int = UNITS_PER_CHUNK,
) -> Saved:
    """Write the order of some epochs of a plan to a plan directory.

    Safe to kill, and to run again: what is there already is compared with what belongs there,
    and only the rest is written. Any number of processes may save the same plan to one path at
    once. The directory is a plan as soon as `manifest.json` is in it.

    Parameters
    ----------
    plan : Plan
        Its order is written; its partition becomes the default of `load`.
    path : str or path-like
        The plan directory: new, empty, or a build of the same order and epochs.
    epochs : iterable of int, default range(1)
        The epochs to write, 0 <= epoch < 2**32.
    dataset : Dataset, optional
        The identity of the dataset, to be checked by `load`.
    executor : concurrent.futures.Executor, optional
        Who generates and writes the chunks; by default a thread for each core. Tasks return
        hashes, never arrays.
    progress : callable, optional
        Called as progress(units_done, units_in_all) after each chunk, in the calling thread.
    units_per_chunk : int, default 2**26
        Units in a chunk file.

    Returns
    -------
    Saved
        How many files were written and how many were kept.

    Raises
    ------
    PlanFileError
        If the directory cannot be written, is something else, or holds a damaged chunk.
    IndexPlanError
        If an argument breaks its rule; nothing has been written then.
    """
    if not isinstance(plan, Plan):
        raise wrong("plan", "a Plan", plan)
    numbers = sorted({check_epoch(epoch) for epoch in epochs})
    if not numbers:
        raise wrong("epochs", "at least one epoch", numbers)
    order = plan.order.source if isinstance(plan.order, Stored) else plan.order
    build = Build.of(order, numbers, units_per_chunk, dataset)
    root = Path(path)
    _claim(root, build)
    results = _build_chunks(root, build, order, executor, progress)
    kept = sum(result.kept for result in results)
    manifest = _finish(root, build, plan, results)
    return Saved(
        path=str(root),
        num_bytes=sum(manifest.chunk_bytes),
        num_written=len(results) - kept,
        num_kept=kept,
    )


def _claim(root: Path, build: Build) -> None:
    """Make the directory and say in `build.json` what it is a build of."""
    rule = f"{root} must be new, empty or a plan directory"
    with explained("a folder that can be made", root):
        try:
            root.mkdir()
        except FileExistsError:
            if not root.is_dir():
                raise PlanFileError(f"{rule}; got a file; choose another path") from None
            names = {file.name for file in root.iterdir() if file.suffix != TEMPORARY}
            if names and BUILD not in names:
                got = f"a folder that holds {min(names)}"
                raise PlanFileError(f"{rule}; got {got}; choose another path") from None
    text = canonical_json(build.to_dict()).encode()
    if publish(root / BUILD, [text]):
        return
    there = parse_json_object(BUILD, read_small(root / BUILD))
    if there != build.to_dict():
        mine = build.to_dict()
        differ = [name for name in mine if there.get(name) != mine[name]]
        said = "; ".join(f"{name} {there.get(name)!r}, not {mine[name]!r}" for name in differ)
        raise PlanFileError(
            f"{root} must be a build of the same order and epochs; got one with {said}; "
            f"choose another path"
        )


@dataclass(frozen=True)
class _Built:
    """What a task returns of one chunk file."""

    size: int
    hashes: NDArray[np.uint64]
    kept: bool


def _build_chunks(
    root: Path, build: Build, order: Order, executor: Executor | None, progress: Progress | None
) -> list[_Built]:
    total = sum(chunk.stop - chunk.start for chunk in build.chunks() if not chunk.offsets)
    done = 0
    results: dict[int, _Built] = {}
    if progress is not None:
        progress(0, total)
    own = ThreadPoolExecutor(num_cores()) if executor is None else None
    pool = executor or own
    assert pool is not None  # noqa: S101 (one of the two is there)
    try:
        tasks: Iterator[tuple[int, Chunk]] = enumerate(build.chunks())
        running: dict[Future[_Built], tuple[int, Chunk]] = {}
        while True:
            # a bounded number in flight, so that a plan of many chunks does not fill the queue
            for task in islice(tasks, 4 * num_cores() - len(running)):
                running[pool.submit(build_chunk, str(root), build, order, task[1])] = task
            if not running:
                return [results[number] for number in range(len(results))]
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                number, chunk = running.pop(future)
                results[number] = future.result()
                done += 0 if chunk.offsets else chunk.stop - chunk.start
                if progress is not None:
                    progress(done, total)
    finally:
        if own is not None:
            own.shutdown(cancel_futures=True)


def num_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def build_chunk(root: str, build: Build, order: Order, chunk: Chunk) -> _Built:
    """Write one chunk file, or compare the one that is there; return its size and block hashes."""
    from indexplan.files.xxh64 import xxh64

    path = Path(root) / chunk.name
    hashes: list[int] = []
    size = 0

    def hashed() -> Iterator[memoryview]:
        nonlocal size
        for block in build.content(order, chunk):
            hashes.append(xxh64(block))
            size += len(block)
            yield block

    with explained("a folder that can be made", path.parent):
        path.parent.mkdir(exist_ok=True)
    kept = path.exists()
    if kept:
        _compare(path, hashed())
    else:
        publish(path, hashed())
    return _Built(size, np.array(hashes, "<u8"), kept)


def _compare(path: Path, blocks: Iterable[memoryview]) -> None:
    """Raise `PlanFileError` unless a file that is there already holds exactly these blocks."""
    with explained("readable", path), open_chunk(path) as stream:
        for number, block in enumerate(blocks):
            if stream.read(len(block)) != block:
                raise PlanFileError(
                    f"{path} must hold what its order generates; got other bytes in block "
                    f"{number}; delete the file and run the same build again"
                )
        if stream.read(1):
            raise PlanFileError(
                f"{path} must end with its last index; got more bytes; delete the file and run "
                f"the same build again"
            )


def _finish(root: Path, build: Build, plan: Plan, results: list[_Built]) -> Manifest:
    """Publish the block table, then the manifest; sweep up what killed builders left."""
    table = np.concatenate([result.hashes for result in results])
    blocks = header("<u8", len(table)) + table.tobytes()
    publish(root / BLOCKS, [blocks])
    manifest = Manifest(
        build=build,
        plan=plan.to_dict(),
        chunk_bytes=tuple(result.size for result in results),
        blocks_sha256=hashlib.sha256(blocks).hexdigest(),
        library_version=__version__,
    )
    publish(root / MANIFEST, [canonical_json(manifest.to_dict()).encode()])
    with explained("a whole plan", root):
        for folder in {root, *((root / chunk.name).parent for chunk in build.chunks())}:
            for leftover in folder.glob(f".*{TEMPORARY}"):
                leftover.unlink(missing_ok=True)
    return manifest
