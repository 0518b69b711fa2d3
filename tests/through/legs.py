"""A run of jobs through a framework's own trainer and checkpoints: what each step has read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import indexplan as ip
from tests.histories.megatron import stream
from tests.runs.row import Leg, Steps, in_processes

Jobs = list[tuple[int, ...]]
"""Of each job its ranks and steps, and perhaps the job from whose checkpoint it goes on."""


def trained(
    folder: str, train: Callable[[Leg], Steps], jobs: Jobs, samples: int, global_batch: int = 24
) -> Steps:
    """Train jobs one after another, on forks; return the samples of each optimizer step."""
    ip.Plan(ip.Shuffle(9), world_size=1, batch_size=2).batch(0, step=0, rank=0)  # compiled before
    steps: Steps = []
    checkpoint = None
    for number, (world_size, num_steps, *loads) in enumerate(jobs):
        for load in loads:
            checkpoint = Path(folder, f"checkpoint-{load}")
            steps = steps[: sum(job[1] for job in jobs[: load + 1])]
        save = Path(folder, f"checkpoint-{number}")
        given = world_size, num_steps, checkpoint, save, samples, global_batch
        legs = [Leg(rank, *given) for rank in range(world_size)]
        ranks = in_processes(train, legs, Path(folder, f"leg-{number}"))
        assert [num_steps] * world_size == [len(rank) for rank in ranks]
        steps += [sum(parts, []) for parts in zip(*ranks, strict=True)]
        checkpoint = save
    return steps


def check(steps: Steps, sizes: list[int], samples: int) -> None:
    """Compare each step's samples with the next places of the run, in any sequence of ranks."""
    places = stream(ip.Shuffle(samples, seed=1))
    assert sizes == [len(step) for step in steps]
    for step in steps:
        assert sorted(next(places) for _ in step) == sorted(step)


def told_by(ledger: ip.Ledger) -> list[list[list[int]]]:
    """Return what a ledger tells of each step: the samples of each rank."""
    assert ledger.verify().ok, str(ledger.verify())
    ranks = [range(ledger.at(step).plan.world_size or 0) for step in range(ledger.step)]
    return [[ledger.batch(step, rank).tolist() for rank in each] for step, each in enumerate(ranks)]
