"""The numba kernels of this library, and how they are compiled and cached.

A module is imported when a caller first names it, as `kernels.permutation`: numba takes longer to
import than all else, and `import indexplan` needs none of it.
"""

import os
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
        local_permutation,
        mixture,
        packing,
        permutation,
        philox,
        seeding,
        seen,
        shard_reads,
        shards,
        sorting,
        strata,
        tables,
        thresholds,
        tree,
        weighted,
        weighted_tables,
        xxh64,
    )

# Held by a thread that imports or compiles kernels, or builds a table with them. A fork waits for
# it: a child has only the thread that forked, and would wait forever for what another had begun.
# It is reentrant, so the thread that holds it may fork too. Its own methods are registered, since
# Python drops what a hook raises: so it is never half taken after Ctrl-C. Where a fork waits for
# the first import of numba, Python tells on stderr of the hooks that came too late for it; no harm.
BUSY = threading.RLock()
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=BUSY.acquire, after_in_parent=BUSY.release, after_in_child=BUSY.release
    )


def __getattr__(name: str) -> Any:
    module = f"indexplan.kernels.{name}"
    try:
        with BUSY:
            return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:  # such as numba
            raise
    raise AttributeError(f"module 'indexplan.kernels' has no attribute {name!r}")
