"""What cold.py measures: each function runs in a fresh process of its own.

Nothing heavy is imported at the top, since imports are part of what is measured.
"""

import sys
from time import perf_counter

from benchmarks.measure.memory import measured

BATCH, WORLD, RANK = 256, 64, 7


def import_numpy() -> dict:
    """Time NumPy's import, which is the floor of ours."""
    start = perf_counter()
    import numpy as np

    return {"seconds": perf_counter() - start, "version": np.__version__}


def import_indexplan() -> dict:
    """Time our import, and assert that it is a light one."""
    start = perf_counter()
    import indexplan

    seconds = perf_counter() - start
    assert "numba" not in sys.modules
    assert "torch" not in sys.modules
    return {"seconds": seconds, "version": indexplan.__version__}


def first_batch(n: int) -> dict:
    """Time everything from the import to the first batch."""
    start = perf_counter()
    import indexplan as ip

    plan = ip.Plan(ip.Shuffle(n), world_size=WORLD, batch_size=BATCH)
    batch = plan.batch(0, step=3, rank=RANK)
    return {"seconds": perf_counter() - start, "batch": batch.tolist()}


def first_calls(n: int) -> dict:
    """Time numba's import, and the first call of each kernel, which compiles or loads it."""
    import indexplan as ip

    shuffle = ip.Shuffle(n)
    blocks = ip.BlockShuffle(n, block_size=1024, window=4)
    calls = {
        "import numba": lambda: __import__("numba"),
        "Shuffle.take": lambda: shuffle.take(0, 0, BATCH),
        "Shuffle.locate": lambda: shuffle.locate(0, [5]),
        "BlockShuffle.take": lambda: blocks.take(0, 0, BATCH),
        "BlockShuffle.locate": lambda: blocks.locate(0, [5]),
    }
    result = {}
    for name, call in calls.items():
        start = perf_counter()
        call()
        result[name] = perf_counter() - start
    return result


def grow_plan(n: int) -> dict:
    """Measure the first batch of a plan, after a small plan has loaded numba and the kernels."""
    import numpy as np

    import indexplan as ip

    def questions(plan: ip.Plan) -> object:
        last = plan.steps(0).stop - 1
        for step in (0, last // 2, last):
            batch = plan.batch(0, step=step, rank=RANK)
            assert (plan.locate(batch, epoch=0).step == step).all()
        stop = min(100, last)
        assert len(list(plan.batches(0, rank=RANK, stop_step=stop))) == stop
        return plan.account(epoch=0)

    def first() -> tuple:
        plan = ip.Plan(ip.Shuffle(n), world_size=WORLD, batch_size=BATCH)
        return plan, plan.batch(0, step=3, rank=RANK)

    small = ip.Plan(ip.Shuffle(1000), world_size=2, batch_size=10)
    small.batch(0, step=1, rank=1)
    (plan, batch), result = measured(first)
    small.locate([3], epoch=0)
    account, more = measured(lambda: questions(plan))
    np.testing.assert_array_equal(plan.locate(batch, epoch=0).slot, np.arange(len(batch)))
    assert account.num_read == n
    return {**result, "all_questions": more}


def grow_sampler(n: int) -> dict:
    """Measure a sampler's first thousand batches, as lists, after a first small one."""
    from itertools import islice

    import indexplan as ip
    from indexplan_torch import PlanBatchSampler

    def stream(n: int, num_batches: int) -> list:
        plan = ip.Plan(ip.Shuffle(n), world_size=WORLD, batch_size=BATCH)
        sampler = PlanBatchSampler(plan, rank=RANK, world_size=WORLD)
        return [batch[0] for batch in islice(sampler, num_batches)]

    stream(10**6, 10)
    firsts, result = measured(lambda: stream(n, 1000))
    plan = ip.Plan(ip.Shuffle(n), world_size=WORLD, batch_size=BATCH)
    share = plan.batches(0, rank=RANK, stop_step=len(firsts))
    assert [int(batch[0]) for batch in share] == [int(first) for first in firsts]
    return result
