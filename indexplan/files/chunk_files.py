"""Writing the chunk files of a build, by tasks that any executor runs."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import replace
from itertools import islice

from indexplan import kernels
from indexplan.errors import PlanFileError
from indexplan.files.format import INDICES, PLAN, Build, Chunk, Written, hashes_file
from indexplan.files.running import run
from indexplan.orders.base import Order
from indexplan.stores.agree import put
from indexplan.stores.open import store_of
from indexplan.stores.store import Store

Progress = Callable[[int, int], None]


def write_chunks(
    store: Store,
    build: Build,
    order: Order,
    numbers: range,
    executor: Executor | None,
    progress: Progress | None,
) -> list[Written]:
    """Write some chunk files of a build and their hashes, or compare those that are there."""

    def chunks() -> Iterator[Chunk]:
        return islice(build.chunks(), numbers.start, numbers.stop)

    total = sum(chunk.stop - chunk.start for chunk in chunks() if chunk.kind == INDICES)
    done = 0
    written: list[Written] = []

    def take(chunk: Chunk, result: Written) -> None:
        nonlocal done
        written.append(result)
        done += chunk.stop - chunk.start if chunk.kind == INDICES else 0
        if progress is not None:
            progress(done, total)

    if progress is not None:
        progress(0, total)
    # workers may have another working directory, and need to know little of the build
    root = store.path if executor is None else store.absolute()
    light = replace(build, plan={}, epochs=(), num_units=(), dataset=None)
    run(executor, write_chunk, (root, light, build.sha256, order), chunks(), take)
    return written


def write_chunk(root: str, build: Build, digest: str, order: Order, chunk: Chunk) -> Written:
    """Write one chunk file and then its hashes, or compare those that are there.

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
    return Written(size, kept)
