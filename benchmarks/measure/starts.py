"""What test_startup.py measures: each function runs in a fresh process of its own.

Nothing heavy is imported at the top, since imports are part of what is measured.
"""

import sys
from time import perf_counter

from benchmarks.measure.memory import measured

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


def grow_plan() -> dict:
    """Measure a plan's first batch and all its questions, after a small plan loaded the kernels."""
    import indexplan as ip

    def questions(n: int) -> ip.Plan:
        plan = ip.Plan(ip.Shuffle(n), world_size=WORLD, batch_size=BATCH)
        last = plan.steps(0).stop - 1
        for step in (0, last // 2, last):
            batch = plan.batch(0, step=step, rank=RANK)
            assert (plan.locate(batch, epoch=0).step == step).all()
        stop = min(100, last)
        assert len(list(plan.batches(0, rank=RANK, stop_step=stop))) == stop
        assert plan.account(epoch=0).num_read == n
        return plan

    questions(10**5)
    _, result = measured(lambda: questions(10**12))
    return result


def grow_sampler() -> dict:
    """Measure a sampler's first thousand batches, as lists, after a first small one."""
    from itertools import islice

    import indexplan as ip
    from indexplan_torch import PlanBatchSampler

    def stream(n: int, num_batches: int) -> list:
        plan = ip.Plan(ip.Shuffle(n), world_size=WORLD, batch_size=BATCH)
        sampler = PlanBatchSampler(plan, rank=RANK, world_size=WORLD)
        return [batch[0] for batch in islice(sampler, num_batches)]

    stream(10**6, 10)
    firsts, result = measured(lambda: stream(10**12, 1000))
    plan = ip.Plan(ip.Shuffle(10**12), world_size=WORLD, batch_size=BATCH)
    share = plan.batches(0, rank=RANK, stop_step=len(firsts))
    assert [int(batch[0]) for batch in share] == [int(first) for first in firsts]
    return result
