"""bench: how fast a plan answers on this machine, next to torch's sampler and a permutation."""

from __future__ import annotations

import importlib.util
import statistics
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from time import perf_counter
from typing import Any

import numpy as np

from indexplan.answers import Answer, table
from indexplan.errors import counted, invalid
from indexplan.files import machine
from indexplan.plan.plan import Plan, check_plan
from indexplan.version import __version__

SHARE = 2**22  # indices of a rank's share that are drawn: 10 ms of work
ROUNDS = 30  # how often each question is asked; the median is kept
SMALL = 10**6  # samples from which the time of others for more is extrapolated
LIMIT = 10.0  # seconds that they may be expected to take
TORCH_BYTES, NUMPY_BYTES = 48, 8  # for each sample: torch makes a tensor and a list of ints


@dataclass(frozen=True)
class Row:
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
    >>> row = Row("share", "a share", seconds=0.002, num_indices=1000)
    >>> ip.types.Bench(plan, num_cores=2, rows=(row,)).rows[0].ns_per_index
    2000.0
    """

    plan: Plan
    num_cores: int
    rows: tuple[Row, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers as JSON types."""
        rows = [{**asdict(row), "ns_per_index": row.ns_per_index} for row in self.rows]
        known = {"plan": self.plan.to_dict(), "version": __version__, "num_cores": self.num_cores}
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
    of a permutation by NumPy. They are measured if they fit in memory and are expected to take less
    than 10 seconds; else their rows say what they would need.

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
    whole = "one rank's share" if stop == steps.stop else None
    part = whole or f"{counted(stop - steps.start, 'step')} of one rank"
    steps_of = {"start_step": steps.start, "stop_step": stop}
    num, shuffle = plan.order.num_samples, plan.order.algorithm != "sequential-v1"
    share = partial(plan.indices, **where, rank=0, **steps_of)
    permuted = np.random.default_rng(0).permutation
    rows = (
        _median("first_batch", "the first batch of an epoch", _first_batches(plan)),
        _median("share", part, share, 5),
        _median(
            "resume",
            "resume in the middle, and its batch",
            lambda: plan.resume(cursor).batch(**where, step=middle, rank=0),
        ),
        _rival(
            "torch",
            "torch DistributedSampler, first batch",
            partial(_torch, plan.world_size or 1, size, shuffle),
            num,
            TORCH_BYTES,
        ),
        _rival(
            "numpy",
            "numpy.random permutation, first batch",
            lambda many: permuted(many)[:: plan.world_size][:size],
            num,
            NUMPY_BYTES,
        ),
    )
    return Bench(plan, machine.num_cores(), rows)


def _first_batches(plan: Plan) -> Callable[[], Any]:
    """Return a function that draws a first batch, each time of a new plan and another epoch."""
    begin = plan.start
    epochs = range(begin.epoch + 1, begin.epoch + 2 + ROUNDS)
    fresh = [(plan.replace(), epoch, 0, 0) for epoch in epochs if plan.steps(epoch, 0).stop]
    # under "carry", a step may take many epochs, so that only the first of them has one
    step = plan.steps(begin.epoch, begin.sub_epoch).start
    questions: Iterator[tuple[Plan, int, int, int]] = iter(fresh)
    first = (plan, begin.epoch, begin.sub_epoch, step)

    def ask() -> Any:
        each, epoch, sub_epoch, step = next(questions, first)
        return each.batch(epoch, sub_epoch, step=step, rank=0)

    return ask


def _torch(world_size: int, batch_size: int, shuffle: bool, num_samples: int) -> list[int]:
    """Return the first batch of torch's sampler."""
    module = importlib.import_module("torch.utils.data.distributed")  # if it is there
    sampler = module.DistributedSampler(range(num_samples), world_size, 0, shuffle=shuffle)
    return list(islice(iter(sampler), batch_size))


def _rival(key: str, name: str, first_batch: Callable[[int], Any], num: int, num_bytes: int) -> Row:
    """Time a first batch of another library, unless it would take too long or too much memory."""
    if key == "torch" and importlib.util.find_spec("torch") is None:
        return Row(key, name, None, note="torch is not installed")
    free = machine.free_bytes()
    if num * num_bytes > (10**9 if free is None else free):
        return Row(key, name, None, note=f"not run: needs about {num * num_bytes / 1e9:,.1f} GB")
    first_batch(1000)  # imports what it needs
    small = _median(key, name, lambda: first_batch(min(num, SMALL)), 3)
    assert small.seconds is not None  # noqa: S101 (it was measured)
    if num <= SMALL:
        return small
    estimate = small.seconds * num / SMALL
    if estimate > LIMIT:
        words = f"not run: about {_time(estimate)}, by extrapolation from 1e6 samples"
        return Row(key, name, None, note=words)
    return _median(key, name, lambda: first_batch(num), 1)


def _median(key: str, name: str, ask: Callable[[], Any], rounds: int = ROUNDS) -> Row:
    """Return the median time of some calls, after one that may compile."""
    times: list[float] = []
    answer: Any = ask() if rounds > 1 else ()
    for _ in range(rounds):
        start = perf_counter()
        answer = ask()
        times.append(perf_counter() - start)
    return Row(key, name, statistics.median(times), len(answer))


def _time(seconds: float) -> str:
    """Write seconds in a suitable unit."""
    if seconds >= 1:
        return f"{seconds:,.2f} s"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} us"
