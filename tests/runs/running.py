"""Run a history on a loader: the training loop, the stops in it, and the loader's refusals."""

from __future__ import annotations

import atexit
import gc
import multiprocessing
import os
import re
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import numpy as np

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

    def __init__(self, loader: Any, saved: Saved | None, rank: int = 0) -> None:
        self.loader = loader
        self.resumed = saved.epoch if saved and saved.after_pass else -1
        if saved:
            loader.load_state_dict(saved.state(rank))

    def batches(self, epoch: int) -> Iterator[Any]:
        """Yield a pass; after a state of a pass that had ended, it may come after an empty one.

        Some loaders go on with the next pass then, others with nothing: both are taken as right.
        """
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

    reads: np.ndarray
    """How often each sample was read; shape (EPOCHS, n)."""
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


@dataclass
class Outcome:
    """What came of a history."""

    reads: np.ndarray
    legs: list[list[Leg]] = field(default_factory=list)
    """The legs that were in each pass."""
    uneven: bool = False
    seconds: list[float] = field(default_factory=list)
    refused: str = ""
    finished: int = 0
    """Passes that were over before a refusal."""


def said(error: BaseException) -> str:
    """Return a refusal in one line, with N for its numbers."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    # an error of a worker process has its own as the last line
    text = lines[-1] if lines and "Caught" in lines[0] else " ".join(lines)
    return re.sub(r"\d+", "N", f"{type(error).__name__}: {text}"[:300])


def train(
    loaders: Sequence[Loader],
    history: History,
    leg: Leg,
    saved: Saved | None,
    anywhere: Callable[[bool], bool],
) -> Ran:
    """Run the training loop of the ranks that are in this process, all in step.

    A rank that has no batch left waits for those that have: in training it would hang.
    """
    ran = Ran(np.zeros((EPOCHS, history.n), np.int64))
    batches, done = (saved.batches, 0) if saved else (0, 0)
    start = perf_counter()
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
                    ran.reads[own] += np.bincount(np.asarray(batch).ravel(), minlength=history.n)
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


def made(make: Make, place: Place, saved: Saved | None) -> tuple[Loader, float]:
    """Return a rank's loader, with the seconds that it took to make it and load its state."""
    start = perf_counter()
    return make(place, saved), perf_counter() - start


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
            pairs = [made(make, place, saved) for place in places(history, leg, folder)]
            ran = train([loader for loader, _ in pairs], history, leg, saved, bool)
            ran.seconds = None if ran.seconds is None else pairs[0][1] + ran.seconds
    except Exception as error:  # whatever it is, it is a refusal
        ran = Ran(np.zeros((EPOCHS, history.n), np.int64), refused=said(error))
    if leg.workers:
        gc.collect()  # of workers that an error holds on to
    return ran


def _rank(
    make: Make, history: History, leg: Leg, saved: Saved | None, place: Place, store: str, to: Any
) -> None:
    """Run a rank in a process of its own, as a launcher would start it, and send what came."""
    import torch
    import torch.distributed as dist

    atexit._clear()
    tempfile.tempdir = str(Path(store).parent)  # where loaders leave locks
    here = {"RANK": place.rank, "LOCAL_RANK": place.rank, "GLOBAL_RANK": place.rank}
    all_ranks = {"WORLD_SIZE": place.world, "LOCAL_WORLD_SIZE": place.world}
    os.environ.update({key: str(value) for key, value in {**here, **all_ranks}.items()})
    anywhere: Callable[[bool], bool] = bool
    if place.world > 1:
        where = {"rank": place.rank, "world_size": place.world}
        dist.init_process_group("gloo", init_method=f"file://{store}", **where)

        def anywhere(flag: bool) -> bool:
            number = torch.tensor([int(flag)])
            dist.all_reduce(number)
            return bool(number.item())

    try:
        loader, seconds = made(make, place, saved)
        ran = train([loader], history, leg, saved, anywhere)
        ran.seconds = None if ran.seconds is None else seconds + ran.seconds
    except Exception as error:
        ran = Ran(np.zeros((EPOCHS, history.n), np.int64), refused=said(error))
    to.send(ran)
    if place.world > 1 and not ran.refused:
        dist.barrier()  # nobody cleans up what others still use
    atexit._run_exitfuncs()


def in_processes(make: Make, history: History, leg: Leg, saved: Saved | None, folder: str) -> Ran:
    """Run a leg with a forked process for each rank, in a process group of gloo."""
    fork = multiprocessing.get_context("fork")
    ends: list[Connection] = []
    ranks = []
    with tempfile.TemporaryDirectory() as store:
        for place in places(history, leg, folder):
            end, to = fork.Pipe(duplex=False)
            file = str(Path(store) / "store")
            rank = fork.Process(target=_rank, args=(make, history, leg, saved, place, file, to))
            rank.start()
            to.close()
            ends.append(end)
            ranks.append(rank)
        rans = _received(ends)
        for rank in ranks:
            rank.join(0 if any(ran.refused for ran in rans) else PATIENCE)
            if rank.is_alive():
                rank.kill()
                rank.join()
    refused = [ran.refused for ran in rans if ran.refused]
    if refused:
        return Ran(np.zeros((EPOCHS, history.n), np.int64), refused=refused[0])
    together = rans[0]
    for ran in rans[1:]:
        together.reads += ran.reads
    if together.saved:
        states = tuple(ran.saved.states[0] for ran in rans if ran.saved)
        base = together.saved
        together.saved = Saved(base.epoch, base.batches, base.after_pass, states)
    return together


def _received(ends: list[Connection]) -> list[Ran]:
    """Return what all ranks sent; as soon as one refuses, only that, as others wait for it."""
    rans: dict[int, Ran] = {}
    deadline = perf_counter() + PATIENCE
    while len(rans) < len(ends):
        waiting = [end for i, end in enumerate(ends) if i not in rans]
        ready = wait(waiting, max(0.0, deadline - perf_counter()))
        if not ready:
            return [Ran(np.zeros(0), refused=f"TimeoutError: hung for {PATIENCE} s")]
        for end in ready:
            try:
                ran = end.recv()
            except EOFError:
                ran = Ran(np.zeros(0), refused="EOFError: the process died")
            if ran.refused:
                return [ran]
            rans[next(i for i, each in enumerate(ends) if each is end)] = ran
    return [rans[i] for i in range(len(ends))]


def play(make: Make, history: History, folder: str, *, forked: bool) -> Outcome:
    """Run a history from its start to its end or its first refusal."""
    outcome = Outcome(np.zeros((EPOCHS, history.n), np.int64), [[] for _ in range(EPOCHS)])
    saved: Saved | None = None
    for leg in history.legs:
        ran = (in_processes if forked else in_process)(make, history, leg, saved, folder)
        if ran.refused:
            outcome.refused = ran.refused
            outcome.finished = saved.epoch if saved else 0
            return outcome
        outcome.reads += ran.reads
        outcome.uneven |= ran.uneven
        for epoch in ran.entered:
            outcome.legs[epoch].append(leg)
        if saved is not None and not leg.workers and ran.seconds is not None:
            outcome.seconds.append(ran.seconds)
        saved = ran.saved
        if saved is None:
            break
    outcome.finished = EPOCHS
    return outcome
