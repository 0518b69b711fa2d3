"""Builds and runs that are killed in the middle, by SIGKILL, at a moment that the seed chooses."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np

import indexplan as ip
from tests.kill_at_calls import watch
from tests.soak.carrying import Saved
from tests.soak.drawing import Part
from tests.soak.reading import Int64, Read, WrongError, flat
from tests.support.builders import ended, fork

MOMENTS = (
    "before the next step",
    "after a step",
    "in the middle of a checkpoint",
    "before a checkpoint got its name",
)


def die() -> None:
    """Be killed, as by a machine that takes its processes back."""
    os.kill(os.getpid(), signal.SIGKILL)


def build(plan: ip.Plan, directory: Path, epochs: range, call: int) -> bool:
    """Build in a child that is killed before one of its calls; return whether it came so far.

    What is left has to be the right plan, or a build that a reader refuses.
    """
    calls = iter(range(call))

    def note(*_: str) -> None:
        if next(calls, None) is None:
            die()

    def save() -> None:
        watch(note, directory)
        ip.save(plan, directory, epochs=epochs)

    code = ended(fork(save))
    if code not in (0, -signal.SIGKILL):
        raise WrongError(f"a builder that was not killed exited with {code}")
    try:
        found = ip.load(directory)
    except ip.PlanFileError:
        if code == 0:
            raise
    else:
        if found != plan:
            raise WrongError(f"a killed build left another plan: {found}")
    return code != 0


class Doom(NamedTuple):
    """When a run saves, and when it is killed: at a moment of its step number `last`."""

    every: int
    last: int
    moment: str

    def __str__(self) -> str:
        return f"a run that saves every {self.every} steps, killed {self.moment} ({self.last})"


def doom(random: Random, parts: list[Part]) -> Doom:
    """Draw when a run of some parts is killed."""
    num_steps = sum(part.stop - part.start for part in parts)
    return Doom(random.randint(1, 4), random.randint(0, num_steps), random.choice(MOMENTS))


def run(
    plan: ip.Plan, parts: list[Part], fate: Doom, folder: Path
) -> tuple[list[Part], list[Read], Saved | None]:
    """Run a leg in a child that saves every few steps, and is killed; go on from what it saved.

    Returns
    -------
    parts, reads
        What was finished when the last whole checkpoint was saved. What the child did after it is
        lost with its model, and so has to be read again.
    saved
        What is in that checkpoint; None if there is none.
    """
    every, last, moment = fate
    log, checkpoint = folder / "log.bin", folder / "checkpoint.json"
    for file in (log, checkpoint):
        file.unlink(missing_ok=True)

    def train() -> None:
        done = 0
        with log.open("wb", buffering=0) as out:
            for part, step in steps_of(parts):
                if done == last and moment == MOMENTS[0]:
                    die()
                where = {"epoch": part.epoch, "sub_epoch": part.sub_epoch, "step": step}
                read = flat(plan.batch(**where, rank=r) for r in range(plan.world_size or 0))
                out.write(np.array([len(read), *read], np.int64).tobytes())
                done += 1
                if done == last and moment == MOMENTS[1]:
                    die()
                if done % every and done != last:
                    continue
                cursor = plan.cursor(part.epoch, part.sub_epoch, step=step + 1)
                text = json.dumps({"done": done, "cursor": cursor.to_json()})
                hidden = checkpoint.with_suffix(".tmp")
                if done == last and moment == MOMENTS[2]:
                    hidden.write_text(text[: len(text) // 2])
                    die()
                hidden.write_text(text)
                if done == last and moment == MOMENTS[3]:
                    die()
                hidden.rename(checkpoint)
                if done == last:
                    die()
        die()

    code = ended(fork(train))
    if code != -signal.SIGKILL:
        raise WrongError(f"a run that was to be killed exited with {code}")
    if not checkpoint.exists():
        return [], [], None
    state = json.loads(checkpoint.read_text())
    steps = list(read_log(log))[: state["done"]]
    finished, reads = split(parts, steps)
    return finished, reads, Saved("cursor", ip.Cursor.from_json(state["cursor"]))


def steps_of(parts: list[Part]) -> Iterator[tuple[Part, int]]:
    """Yield every step of some parts."""
    for part in parts:
        for step in range(part.start, part.stop):
            yield part, step


def read_log(log: Path) -> Iterator[Int64]:
    """Yield what each step read that a killed run wrote down."""
    numbers = np.fromfile(log, np.int64)
    at = 0
    while at < len(numbers):
        stop = at + 1 + int(numbers[at])
        yield numbers[at + 1 : stop]
        at = stop


def split(parts: list[Part], steps: list[Int64]) -> tuple[list[Part], list[Read]]:
    """Return the parts that some steps are of, and what they read."""
    finished, reads = [], []
    for part in parts:
        count = min(part.stop - part.start, len(steps))
        mine, steps = steps[:count], steps[count:]
        finished.append(part._replace(stop=part.start + count))
        reads.append(Read(flat(mine[:-1]), flat(mine[-1:])))
        if not steps:
            break
    return finished, reads
