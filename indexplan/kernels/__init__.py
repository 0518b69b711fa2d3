"""The numba kernels of this library, and how they are compiled and cached.

A module is imported when a caller first names it, as `kernels.permutation`: numba takes longer to
import than all else, and `import indexplan` needs none of it.
"""

import contextlib
import gc
import threading
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from indexplan.kernels import (
        balance,
        block_permutation,
        by_source,
        classes,
        compiling,
        documents,
        drawn,
        feistel,
        gather,
        local_permutation,
        mixture,
        packing,
        permutation,
        philox,
        seeding,
        shard_reads,
        shard_shuffle,
        sorting,
        strata,
        thresholds,
        tree,
        weighted,
        weighted_tables,
        xxh64,
    )

# Held by a thread that imports or compiles kernels, or builds a table with them. A fork waits for
# it, once numba is imported: see compiling.py. It is reentrant, so that its holder may fork too.
BUSY = threading.RLock()


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Pause Python's garbage collector: a shuffle compiles in 4.4 CPU seconds instead of 5.5.

    It looks through all of numba's objects 130 times, for 6 MB. Who does this holds BUSY, for which
    forks wait: so no child is left without a collector.
    """
    collects = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if collects:
            gc.enable()


def __getattr__(name: str) -> Any:
    module = f"indexplan.kernels.{name}"
    try:
        with BUSY, uncollected():
            return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:  # such as numba
            raise
    raise AttributeError(f"module 'indexplan.kernels' has no attribute {name!r}")
