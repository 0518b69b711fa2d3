"""indexplan, reading an epoch's order from the plan directory that it saved."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import indexplan as ip
from benchmarks.contenders.planners import Job, ours


def path_of(job: Job) -> Path:
    return Path(job.folder) / f"{job.n}-{job.world}.plan"


def build(job: Job) -> int:
    path = path_of(job)
    ip.save(ours.plan_of(job), path)
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def prepare(job: Job) -> None:
    if not (path_of(job) / "plan.json").exists():
        build(job)


def stream(job: Job) -> Iterator[Any]:
    """As the first run has it: the directory is built, then read."""
    prepare(job)
    return iter(ip.load(path_of(job)).batches(0, rank=job.rank))


def share(job: Job) -> Any:
    plan = ip.load(path_of(job))
    stop = min(plan.steps(0).stop, max(1, job.limit // job.batch))
    return plan.indices(0, rank=job.rank, stop_step=stop)


saved = ours.saved


def resume(job: Job, state: str) -> Iterator[Any]:
    plan = ip.load(path_of(job)).resume(ip.Cursor.from_json(state))
    return plan.batches(0, rank=job.rank)
