"""Run a history on a loader: the training loop, the stops, the loader's refusals, and the count."""

from __future__ import annotations

import atexit
import gc
import os
import re
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from tests.runs import row
from tests.runs.histories import EPOCHS, History, Leg

PATIENCE = 120
"""Seconds that a leg may take; one that takes longer hangs, which counts as a refusal."""


@dataclass(frozen=True)
class Place:
    """What a process of a run knows of itself."""

    n: int
    world: int
    rank: int
    batch: int
    workers: int
    folder: str
    """With the dataset in the loader's own format, if it has one."""
    seed: int = 1

    @property
    def world_size(self) -> int:
        """How many ranks there are, as row.py asks for it."""
        return self.world


@dataclass(frozen=True)
class Saved:
    """A checkpoint: what the training loop counts, and a loader's state."""

    epoch: int
    """The pass to go on with."""
    batches: int
    """Of this pass, that each rank has received; in all legs."""
    after_pass: bool
    """Whether it was saved when the loop over a pass had ended."""
    states: tuple[Any, ...] = ()
    """The loader's state on each rank."""

    def state(self, rank: int) -> Any:
        """Return a rank's own state; a rank that was not there takes that of rank 0."""
        return self.states[rank] if rank < len(self.states) else self.states[0]


class Loader(Protocol):
    """What the loop needs of a loader of one rank; made as `Loader(place, saved)`."""

    def batches(self, epoch: int) -> Iterator[Sequence[int]]:
        """Yield the samples' numbers of a pass, or of what is left of it."""

    def state(self) -> Any:
        """Return what goes into the checkpoint."""


Make = Callable[[Place, "Saved | None"], Loader]


class Stateful:
    """A loader that knows `state_dict` and `load_state_dict`; ranks take the state of one."""

    def __init__(
        self,
        loader: Any,
        saved: Saved | None,
        rank: int = 0,
        begin: Callable[[int], object] = lambda _: None,  # told of each pass
    ) -> None:
        self.loader, self.begin = loader, begin
        self.resumed = saved.epoch if saved and saved.after_pass else -1
        if saved:
            loader.load_state_dict(saved.state(rank))

    def batches(self, epoch: int) -> Iterator[Any]:
        """Yield a pass; after a state of a pass that had ended, it may come after an empty one.

        Some loaders go on with the next pass then, others with nothing: both are taken as right.
        """
        self.begin(epoch)
        empty = True
        for batch in self.loader:
            empty = False
            yield batch
        if empty and epoch == self.resumed:
            yield from self.loader

    def state(self) -> Any:
        """Return the loader's own."""
        return self.loader.state_dict()


@dataclass
class Ran:
    """What came of a leg."""

    reads: list[list[int]] = field(default_factory=lambda: [[] for _ in range(EPOCHS)])
    """The samples that were read in each pass."""
    entered: set[int] = field(default_factory=set)
    """The passes that its loop began."""
    uneven: bool = False
    """Whether a rank had a batch in a step in which another had none."""
    seconds: float | None = None
    """From the resume call to the first batch of rank 0."""
    saved: Saved | None = None
    """None if the run is over."""
    refused: str = ""
    """What was raised."""
    leg: Leg | None = None
    began: Saved | None = None
    """What it began with."""


def said(raised: str) -> str:
    """Return a refusal, of which the kind comes first, in one line, with N for its numbers."""
    kind, _, text = raised.partition(": ")
    lines = [line for line in text.splitlines() if line.strip()]
    # an error of a worker process has its own as the last line
    text = lines[-1] if lines and "Caught" in lines[0] else " ".join(lines)
    return re.sub(r"\d+", "N", f"{kind}: {text}"[:300])


def train(
    make: Make,
    places: Sequence[Place],
    leg: Leg,
    saved: Saved | None,
    anywhere: Callable[[bool], bool],
) -> Ran:
    """Run the training loop of the ranks that are in this process, all in step.

    A rank that has no batch left waits for those that have: in training it would hang.
    """
    ran, begun = Ran(), perf_counter()
    loaders = [make(places[0], saved)]
    took = perf_counter() - begun
    loaders += [make(place, saved) for place in places[1:]]
    start = perf_counter() - took  # other ranks make theirs in processes of their own
    batches, done = (saved.batches, 0) if saved else (0, 0)
    for epoch in range(saved.epoch if saved else 0, EPOCHS):
        ran.entered.add(epoch)
        running = [iter(loader.batches(epoch)) for loader in loaders]
        over = [False] * len(running)
        while True:
            some, none = False, False
            for i, iterator in enumerate(running):
                batch = None if over[i] else next(iterator, None)
                if i == 0 and ran.seconds is None and batch is not None:
                    ran.seconds = perf_counter() - start
                over[i] = batch is None
                some, none = some or not over[i], none or over[i]
                if batch is not None:
                    # a loader that counts its passes itself is taken at its word
                    own = getattr(loaders[i], "epoch", epoch)
                    ran.reads[own] += np.asarray(batch).ravel().tolist()
            if not anywhere(some):
                break
            ran.uneven |= anywhere(none)
            batches, done = batches + 1, done + 1
            if done == leg.steps and not leg.whole_pass:
                ran.saved = Saved(epoch, batches, False, tuple(x.state() for x in loaders))
                return ran
        batches = 0
        if leg.whole_pass:
            states = tuple(loader.state() for loader in loaders)
            if epoch + 1 < EPOCHS:
                ran.saved = Saved(epoch + 1, 0, True, states)
            return ran
    return ran


@contextmanager
def patience(seconds: int) -> Iterator[None]:
    """Raise TimeoutError in what takes longer."""

    def ring(*_: object) -> None:
        raise TimeoutError(f"hung for {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def places(history: History, leg: Leg, folder: str) -> list[Place]:
    """Return the ranks of a leg."""
    rest = leg.world, leg.batch, leg.workers
    return [Place(history.n, rest[0], rank, *rest[1:], folder) for rank in range(leg.world)]


def in_process(make: Make, history: History, leg: Leg, saved: Saved | None, folder: str) -> Ran:
    """Run a leg with all its ranks in this process."""
    try:
        with patience(PATIENCE):
            ran = train(make, places(history, leg, folder), leg, saved, bool)
    except Exception as error:  # whatever it is, it is a refusal
        ran = Ran(refused=said(f"{type(error).__name__}: {error}"))
    if leg.workers:
        gc.collect()  # of workers that an error holds on to
    return ran


def in_processes(make: Make, history: History, leg: Leg, saved: Saved | None, folder: str) -> Ran:
    """Run a leg with a forked process for each rank, in a process group of gloo."""
    import torch  # before the forks, each of which would
    import torch.distributed as dist

    with tempfile.TemporaryDirectory() as root:

        def rank(place: Place) -> Ran:
            """Run a rank as a launcher would start it."""
            atexit._clear()
            tempfile.tempdir = root  # where loaders leave locks
            os.environ["GLOBAL_RANK"] = str(place.rank)

            def anywhere(flag: bool) -> bool:
                number = torch.tensor([int(flag)])
                dist.all_reduce(number)
                return bool(number.item())

            ran = train(make, [place], leg, saved, anywhere)
            dist.barrier()  # nobody cleans up what others still use
            atexit._run_exitfuncs()
            return ran

        try:
            rans = row.in_processes(rank, places(history, leg, folder), Path(root, "leg"), PATIENCE)
        except row.RefusedError as error:
            return Ran(refused=said(str(error)))
    together: Ran = rans[0]
    together.reads = [sum(reads, []) for reads in zip(*(ran.reads for ran in rans), strict=True)]
    if together.saved:
        states = tuple(ran.saved.states[0] for ran in rans if ran.saved)
        together.saved = replace(together.saved, states=states)
    return together


def play(make: Make, history: History, folder: str, *, forked: bool) -> list[Ran]:
    """Run a history to its end or its first refusal; return what came of each leg."""
    rans: list[Ran] = []
    saved: Saved | None = None
    for leg in history.legs:
        ran = (in_processes if forked else in_process)(make, history, leg, saved, folder)
        ran.leg, ran.began = leg, saved
        rans.append(ran)
        saved = ran.saved
        if saved is None:
            break
    return rans


Policy = Callable[[int, Sequence[Leg]], tuple[int, int]]
"""From the samples, and the legs of a pass, to what may be dropped and padded in it."""
Sums = dict[str, Any]
NONE: Sums = {
    **dict.fromkeys(("histories", "refused", "exact", "uneven"), 0),
    **dict.fromkeys(("samples", "lost", "twice", "dropped", "padded"), 0),
    "seconds": [],
    "reasons": {},
    "examples": [],
}
"""What is summed over histories of one kind, when there are none.

`exact` are those that went through, without a sample lost or read twice but by policy; `uneven`
those in which a rank had a batch in a step in which another had none. `samples` were to be read: in
passes that were over before a refusal, each sample once. `twice` are reads past the first of a
sample in a pass, and what a loader's policy `dropped` and `padded` is counted apart from `lost` and
`twice`. `seconds` are those of resumes, `reasons` what was raised, with numbers left out.
"""


def counted(history: History, rans: list[Ran], policy: Policy) -> Sums:
    """Count a history, by what came of its legs."""
    last = rans[-1]
    finished = EPOCHS
    if last.refused:  # it ended before it could read the rest
        finished = last.began.epoch if last.began else 0
        rans = rans[:-1]
    found = {**NONE, "histories": 1, "uneven": int(any(ran.uneven for ran in rans))}
    found["seconds"] = [
        ran.seconds
        for ran in rans
        if ran.began and ran.leg and not ran.leg.workers and ran.seconds is not None
    ]
    for epoch in range(EPOCHS):
        read = sum((ran.reads[epoch] for ran in rans), [])
        missing, again = row.lost_and_twice(read, history.n)
        if epoch >= finished:  # what it had not read is not counted as lost
            missing, found["samples"] = 0, found["samples"] - missing
        found["samples"] += history.n
        legs = [ran.leg for ran in rans if ran.leg and epoch in ran.entered]
        dropped, padded = policy(history.n, legs) if legs else (0, 0)
        dropped, padded = min(dropped, missing), min(padded, again)
        found["dropped"] += dropped
        found["padded"] += padded
        found["lost"] += missing - dropped
        found["twice"] += again - padded
    wrong = found["lost"] or found["twice"]
    if last.refused:
        found["refused"], found["reasons"] = 1, {last.refused: 1}
    elif not wrong:
        found["exact"] = 1
    if wrong:
        found["examples"] = [f"{history}; {found['lost']} lost, {found['twice']} read twice"]
    return found
