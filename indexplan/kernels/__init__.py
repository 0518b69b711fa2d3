"""The numba kernels of this library, and how they are compiled and cached.

A module is imported when a caller first names it, as `kernels.permutation`: numba takes longer to
import than all else, and `import indexplan` needs none of it.
"""

import threading
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


def __getattr__(name: str) -> Any:
    module = f"indexplan.kernels.{name}"
    try:
        with BUSY:
            return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:  # such as numba
            raise
    raise AttributeError(f"module 'indexplan.kernels' has no attribute {name!r}")
