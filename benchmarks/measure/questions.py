"""What the rivals are asked, one line each, and which part of it is timed.

A question has two parts: `begin(rival, job)` sets up, and returns the function that is timed;
`check(output, job)` asserts, after timing, that the output is plausible. (tests/benchmarks test on
small sizes that resumes and shares are right in every index.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.contenders.planners import FULL_SHARE, RIVALS, Job

Timed = Callable[[], Any]
# Rivals that answer index by index take minutes for a whole share; their rate shows on this many.
FEW = 2**18


def begin_first_batch(rival: Any, job: Job) -> Timed:
    """Sampler objects are made in the timed part, as each epoch or run makes or re-iterates them.

    The iterator is returned too, so that what it holds is alive when memory is read.
    """

    def first() -> Any:
        batches = rival.stream(job)
        return next(batches), batches

    return first


def begin_share(rival: Any, job: Job) -> Timed:
    """Have the file there already, if the rival has one: `build` is a question of its own."""
    rival.prepare(job)
    return lambda: rival.share(job)


def begin_resume(rival: Any, job: Job) -> Timed:
    """Have the file there, from before the stop; the state is what the checkpoint holds.

    What is timed is a new process's work: all objects are made anew.
    """
    rival.prepare(job)
    state = rival.saved(job, job.steps() // 2)

    def first() -> Any:
        batches = rival.resume(job, state)
        return next(batches), batches

    return first


def begin_sub_epoch(rival: Any, job: Job) -> Timed:
    """Have a sampler that is inside its first sub-epoch; each call goes on to the next."""
    begin = rival.sub_epochs(job)
    next(begin(0))
    following = iter(range(1, job.num_sub_epochs))
    return lambda: (next(begin(next(following))), None)


def begin_build(rival: Any, job: Job) -> Timed:
    return lambda: rival.build(job)


def check_batch(output: Any, job: Job) -> None:
    batch = np.asarray(output[0])
    # A remainder may be spread, so that no step is full: half of it, where two steps share it.
    least = min(job.batch // 2, max(1, job.n // job.world // job.num_sub_epochs))
    assert least <= len(batch) <= job.batch, len(batch)
    assert len(set(batch.tolist())) == len(batch)
    assert 0 <= batch.min() <= batch.max() < job.n


def check_share(output: Any, job: Job) -> None:
    """Allow for a remainder that is dropped or padded, of a global batch at most."""
    share = np.asarray(output)
    whole = min(job.limit, job.n // job.world)
    assert whole - job.batch - whole // 50 <= len(share) <= whole + 1, (len(share), whole)
    assert len(np.unique(share)) == len(share)
    assert 0 <= share.min() <= share.max() < job.n


def check_build(output: Any, job: Job) -> None:
    assert output >= 4 * job.n


def can(function: str) -> tuple[str, ...]:
    """Return the names of the rivals that have a function."""
    only = {"sub_epochs": ("indexplan", "EfficientViT-style sub-epochs")}
    only["build"] = tuple(rival.name for rival in RIVALS if rival.bytes_per_index)
    whole = [rival.name for rival in RIVALS if rival.module != "efficientvit_style"]
    return only.get(function, tuple(whole))


@dataclass(frozen=True)
class Question:
    """What is asked, of which sizes; the page of planning says it in words."""

    key: str
    begin: Callable[[Any, Job], Timed]
    check: Callable[[Any, Job], None]
    rivals: tuple[str, ...]
    sizes: tuple[int, ...] = (10**6, 10**7, 10**8, 10**9, 10**10, 10**12)
    worlds: tuple[int, ...] = (64,)
    seconds: int = 120
    """The time limit."""
    limit: int = FULL_SHARE
    warm: Job = field(default=Job(60_000, world=2, rank=1, limit=2**12))
    """A small job of the same kind, done first: imports, compilation and caches are then there."""
    again: int = 0
    """How often more the timed part is run if it is short; the median is taken."""
    follows: str = ""
    """A question that does the same and less: who stopped there is not tried again."""

    def jobs(self, *, quick: bool) -> list[Job]:
        """Return what is asked of each rival, the cheapest first."""
        sizes = (10**6,) if quick else self.sizes
        worlds = self.worlds[:2][-1:] if quick else self.worlds
        return [
            Job(n, world=world, rank=min(7, world - 1), limit=self.limit)
            for n in sizes
            for world in worlds
        ]


TO_1E8 = (10**6, 10**7, 10**8)

QUESTIONS = (
    Question("first_batch", begin_first_batch, check_batch, can("stream")),
    Question("share", begin_share, check_share, can("share"), follows="first_batch"),
    Question(
        "worlds",
        begin_share,
        check_share,
        can("share"),
        sizes=(10**7,),
        worlds=(4096, 512, 64, 8, 1),
        seconds=30,
        limit=2**62,
    ),
    Question("resume", begin_resume, check_batch, can("resume"), follows="first_batch"),
    Question("build", begin_build, check_build, can("build"), sizes=TO_1E8),
    Question("sub_epochs", begin_sub_epoch, check_batch, can("sub_epochs"), sizes=TO_1E8, again=8),
)

KEYS = {question.key: question for question in QUESTIONS}
