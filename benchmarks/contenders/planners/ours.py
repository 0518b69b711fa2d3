"""indexplan, computing its order."""

from collections.abc import Callable, Iterator
from typing import Any

import indexplan as ip
from benchmarks.contenders.planners import Job


def plan_of(job: Job, sub_epochs: int = 1) -> ip.Plan:
    order = ip.Shuffle(job.n, seed=job.seed)
    return ip.Plan(order, world_size=job.world, batch_size=job.batch, sub_epochs=sub_epochs)


def stream(job: Job) -> Iterator[Any]:
    return plan_of(job).batches(0, rank=job.rank)


def share(job: Job) -> Any:
    plan = plan_of(job)
    stop = min(plan.steps(0).stop, max(1, job.limit // job.batch))
    return plan.indices(0, rank=job.rank, stop_step=stop)


def saved(job: Job, step: int) -> str:
    return plan_of(job).cursor(0, step=step).to_json()


def resume(job: Job, state: str) -> Iterator[Any]:
    plan = plan_of(job).resume(ip.Cursor.from_json(state))
    return plan.batches(0, rank=job.rank)


def order(n: int, seed: int) -> Any:
    return ip.Shuffle(n, seed=seed).take(0, 0, n)


def sub_epochs(job: Job) -> Callable[[int], Iterator[Any]]:
    plan = plan_of(job, job.num_sub_epochs)
    return lambda sub_epoch: plan.batches(0, sub_epoch, rank=job.rank)
