"""What test_startup.py measures: each function runs in a fresh process of its own.

Nothing heavy is imported at the top, since imports are part of what is measured.
"""

import sys
from time import perf_counter

BATCH, WORLD, RANK = 256, 64, 7


def import_numpy() -> dict:
    """Time NumPy's import, which is the floor of ours."""
    start = perf_counter()
    import numpy as np  # noqa: F401

    return {"seconds": perf_counter() - start}


def import_indexplan() -> dict:
    """Time our import, and assert that it is a light one."""
    start = perf_counter()
    import indexplan  # noqa: F401

    seconds = perf_counter() - start
    assert "numba" not in sys.modules
    assert "torch" not in sys.modules
    return {"seconds": seconds}


def first_batch() -> dict:
    """Time everything from the import to the first batch."""
    start = perf_counter()
    import indexplan as ip

    plan = ip.Plan(ip.Shuffle(10**12), world_size=WORLD, batch_size=BATCH)
    batch = plan.batch(0, step=3, rank=RANK)
    seconds = perf_counter() - start
    assert (plan.locate(batch, epoch=0).step == 3).all()
    return {"seconds": seconds}
