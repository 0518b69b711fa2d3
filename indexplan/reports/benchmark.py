"""bench: how fast a plan answers on this machine, next to torch's sampler and a permutation."""

from __future__ import annotations

import importlib.util
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain, islice, repeat
from time import perf_counter
from typing import Any

import numpy as np

from indexplan.answers import Answer, table
from indexplan.errors import counted, invalid
from indexplan.files import machine
from indexplan.plan.plan import Plan, check_plan, dict_of
from indexplan.version import __version__

SHARE = 2**22  # indices of a rank's share that are drawn: 10 ms of work
ROUNDS = 30  # how often each question is asked; the median is kept
MOST = 10**7  # samples for which others are timed, in 0.5 GB; torch makes a list of ints


@dataclass(frozen=True)
class Timing:
    """One measurement of `bench`.

    Attributes
    ----------
    key, name : str
        Its name, for programs and for people.
    seconds : float or None
        The median time of one answer; None if it was not measured, and `note` says why.
    num_indices : int
        Indices in one answer.
    note : str
        Why there is no time.
    """

    key: str
    name: str
    seconds: float | None
    num_indices: int = 0
    note: str = ""

    @property
    def ns_per_index(self) -> float | None:
        """Nanoseconds per index."""
        if self.seconds is None or not self.num_indices:
            return None
        return self.seconds / self.num_indices * 1e9


@dataclass(frozen=True)
class Bench(Answer):
    """What `bench` measured; printed, it is a table.

    Examples
    --------
    >>> import indexplan as ip
    >>> plan = ip.Plan(ip.Shuffle(1000), world_size=1, batch_size=8)
    >>> row = Timing("share", "a share", seconds=0.002, num_indices=1000)
    >>> ip.types.Bench(plan, num_cores=2, rows=(row,)).rows[0].ns_per_index
    2000.0
    """

    plan: Plan
    num_cores: int
    rows: tuple[Timing, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as JSON types."""
        rows = [{**asdict(row), "ns_per_index": row.ns_per_index} for row in self.rows]
        known = {"plan": dict_of(self.plan), "version": __version__, "num_cores": self.num_cores}
        return {**known, "rows": rows}

    def __str__(self) -> str:
        """Return what was measured where, and a table of the rows."""
        size = counted(self.plan.order.num_samples, "sample")
        ranks = counted(self.plan.world_size or 1, "rank")
        rows = [("", "time", "per index")]
        for row in self.rows:
            if row.seconds is not None and (each := row.ns_per_index) is not None:
                per_index = f"{each:,.{2 * (each < 100)}f} ns"
                rows.append((row.name, _time(row.seconds), per_index))
        lines = [f"{size}, {ranks}; {counted(self.num_cores, 'core')}", "", *table(rows)]
        lines += [f"{row.name}: {row.note}" for row in self.rows if row.note]
        return "\n".join(line.rstrip() for line in lines)


def bench(plan: Plan) -> Bench:
    """Measure how long a plan's answers take on this machine, in a few seconds.

    Next to them stand the first batches of torch's DistributedSampler, if torch is installed, and
    of a permutation by NumPy. These take longer the more samples there are, so they are measured up
    to 1e7 samples; of more, their rows say how long that took, and for how many.

    Parameters
    ----------
    plan : Plan
        A plan of any size; if its world_size is not set, it is taken as 1. Rank 0 is measured.

    Returns
    -------
    Bench
        Rows for the first batch of an epoch, the share of one rank, a resume, torch and NumPy.

    Raises
    ------
    IndexPlanError
        If the plan's first sub-epoch has no step.

    Examples
    --------
    >>> import indexplan as ip
    >>> report = bench(ip.Plan(ip.Shuffle(1000), world_size=4, batch_size=8))
    >>> all(row.seconds is None or row.seconds > 0 for row in report.rows)
    True
    """
    check_plan("plan", plan)
    plan = plan if plan.world_size is not None else plan.replace(world_size=1).resume(plan.start)
    where = {"epoch": plan.start.epoch, "sub_epoch": plan.start.sub_epoch}
    steps = plan.steps(**where)
    if not steps:
        cure = "bench more samples, fewer ranks or a smaller batch"
        raise invalid("the number of steps to measure", "at least 1", 0, cure)
    size = max(1, len(plan.batch(**where, step=steps.start, rank=0)))
    stop = min(steps.stop, steps.start + max(1, SHARE // size))
    middle = (steps.start + steps.stop) // 2
    cursor = plan.cursor(**where, step=middle)
    part = f"{counted(stop - steps.start, 'step')} of one rank"
    steps_of = {"start_step": steps.start, "stop_step": stop}
    shuffle = plan.order.algorithm != "sequential-v1"
    torch = partial(_torch, plan.world_size or 1, size, shuffle)
    permuted = np.random.default_rng(0).permutation
    rows = (
        _median("first_batch", "the first batch of an epoch", _first_batches(plan)),
        _median(
            "share",
            "one rank's share" if stop == steps.stop else part,
            lambda: plan.indices(**where, rank=0, **steps_of),
            5,
        ),
        _median(
            "resume",
            "resume in the middle, and its batch",
            lambda: plan.resume(cursor).batch(**where, step=middle, rank=0),
        ),
        _rival("torch", "torch DistributedSampler, first batch", torch, plan.order.num_samples),
        _rival(
            "numpy",
            "numpy.random permutation, first batch",
            lambda many: permuted(many)[:: plan.world_size][:size],
            plan.order.num_samples,
        ),
    )
    return Bench(plan, machine.num_cores(), rows)


def _first_batches(plan: Plan) -> Callable[[], Any]:
    """Return a function that draws a first batch, each time of a new plan and another epoch."""
    begin = plan.start
    epochs = range(begin.epoch + 1, begin.epoch + 2 + ROUNDS)
    fresh = ((plan.replace(), epoch, 0, 0) for epoch in epochs if plan.steps(epoch, 0).stop)
    # under "carry", a step may take many epochs, so that only the first of them has one
    step = plan.steps(begin.epoch, begin.sub_epoch).start
    questions = chain([*fresh], repeat((plan, begin.epoch, begin.sub_epoch, step)))

    def ask() -> Any:
        each, epoch, sub_epoch, step = next(questions)
        return each.batch(epoch, sub_epoch, step=step, rank=0)

    return ask


def _torch(world_size: int, batch_size: int, shuffle: bool, num_samples: int) -> list[int]:
    """Return the first batch of torch's sampler."""
    module = importlib.import_module("torch.utils.data.distributed")  # if it is there
    sampler = module.DistributedSampler(range(num_samples), world_size, 0, shuffle=shuffle)
    return list(islice(iter(sampler), batch_size))


def _rival(key: str, name: str, first_batch: Callable[[int], Any], num: int) -> Timing:
    """Time a first batch of another library, of at most so many samples as memory holds."""
    if key == "torch" and importlib.util.find_spec("torch") is None:
        return Timing(key, name, None, note="torch is not installed")
    row = _median(key, name, lambda: first_batch(min(num, MOST)), 3)
    if num <= MOST:
        return row
    note = f"not run, as it takes {_time(row.seconds or 0)} for {MOST:,} samples already"
    return Timing(key, name, None, note=note)


def _median(key: str, name: str, ask: Callable[[], Any], rounds: int = ROUNDS) -> Timing:
    """Return the median time of some calls, after one that may compile."""
    times: list[float] = []
    answer: Any = ask()
    for _ in range(rounds):
        start = perf_counter()
        answer = ask()
        times.append(perf_counter() - start)
    return Timing(key, name, statistics.median(times), len(answer))


def _time(seconds: float) -> str:
    """Write seconds in a suitable unit."""
    if seconds >= 1:
        return f"{seconds:,.2f} s"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"
