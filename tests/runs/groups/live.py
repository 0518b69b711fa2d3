"""Groups of a torchft run come and go within an epoch: what is lost, and what is read twice.

What is counted is what the groups have written of the steps that count, and were summed up: nothing
here imports indexplan, but what ours read by, nor torchft, which may be missing.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.histories.stories import Given, Story
from tests.runs.results import Block, tabular
from tests.runs.rivals import Rival
from tests.runs.row import lost_and_twice

if TYPE_CHECKING:
    from tests.runs.groups.group import Groups
    from tests.support.forked import Forks

LOOPS = "tests.runs.groups.loops"
GROUPS = 3
BATCH = 20
"""Samples of a group in a step, when all are there."""
SAMPLES = 3_000
STEPS = SAMPLES // (GROUPS * BATCH)
"""Of an epoch, when all are there."""
HALF = STEPS // 2
"""The step in which a group dies."""


@dataclass(frozen=True)
class Loader(Rival):
    """One loader; everything about it but its code."""

    setup: str
    """How it is set up, in words."""
    cure: str = field(
        default="pip install --no-deps --target FOLDER -r .ci/locked-torchft.txt, and FOLDER on "
        "PYTHONPATH",
        kw_only=True,
    )

    @property
    def loop(self) -> str:
        """Return which function groups run."""
        return f"{LOOPS}.{self.module}"

    def load(self) -> Any:
        """Import its code, and what forks groups."""
        importlib.import_module("tests.runs.groups.group")
        return importlib.import_module(LOOPS)

    def most(self, given: Given) -> int:
        """Return how many histories it is given: one of each kind."""
        return len(KINDS)

    def live(self, story: Story, given: Given) -> None:
        """Read an epoch; ours has to read each sample once."""
        kind = [*KINDS][story.number]
        story.say(KINDS[kind][0])
        with tempfile.TemporaryDirectory() as folder:
            self.tell(story, kind, run(self, kind, Path(folder), opened(given.stack)))

    def tell(self, story: Story, kind: str, counts: dict[str, Any]) -> None:
        """Tell what a run came to; what ours lose is wrong."""
        story.record = {"counts": {kind: counts}}
        if self.ours and (counts["lost"] or counts["twice"]):
            story.fail(f"{counts}")


@cache
def opened(stack: ExitStack) -> Forks:
    """Return a process that forks groups, for all histories."""
    from tests.runs.groups.group import forks_of

    # torchft's lighthouse says a lot; what groups say is in files, and errors are said here
    sys.stderr = os.fdopen(os.dup(2), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    forks = forks_of(LOOPS)
    stack.callback(forks.end)
    return forks


RIVALS = LOADERS = (
    Loader(
        "torchft DistributedSampler",
        "sampler",
        "torchft",
        "In a StatefulDataLoader, as in torchft's train_ddp; nothing is saved.",
    ),
    Loader(
        "torchft DistributedSampler, saved",
        "sampler_saved",
        "torchft",
        "The same, and each group saves its loader's state after each step, and loads it when it "
        "starts again, as a comment of train_ddp advises.",
    ),
    Loader(
        "indexplan LiveLoader",
        "live_loader",
        "indexplan",
        "`LiveLoader(dataset, plan, manager, num_epochs=1)` in train_ddp's loop; nothing is saved.",
        ours=True,
    ),
)
"""In the order of the page."""


def stays(groups: Groups, start: Callable[..., None]) -> None:
    """Let all groups read to the end."""
    for group in range(GROUPS):
        start(group)
    groups.go()


def goes(groups: Groups, start: Callable[..., None]) -> None:
    """Kill a group in the middle of the epoch, in its forward pass."""
    for group in range(GROUPS):
        start(group, dies_in=HALF if group == GROUPS - 1 else None)
    groups.go()
    groups.wait(lambda: not groups.lives(GROUPS - 1))


def comes_back(groups: Groups, start: Callable[..., None]) -> None:
    """Kill a group as before, and start it again at once."""
    goes(groups, start)
    start(GROUPS - 1)


KINDS: dict[str, tuple[str, Callable[..., None]]] = {
    "nothing": ("nothing changes", stays),
    "goes": ("one of three groups dies at half", goes),
    "comes back": ("it dies, and is started again at once", comes_back),
}


def run(loader: Loader, kind: str, folder: Path, forks: Forks) -> dict[str, Any]:
    """Read an epoch by groups that come and go; return what was lost and read twice."""
    from tests.runs.groups.group import Groups

    groups = Groups(forks, folder, min_groups=GROUPS - 1, join_ms=2000)

    def start(group: int, **words: Any) -> None:
        groups.start(group, loader.loop, SAMPLES, **words)

    try:
        KINDS[kind][1](groups, start)
        groups.wait(lambda: not any(groups.lives(group) for group in groups.processes))
        ended = sum(groups.written(group, "done") for group in groups.processes)
        if ended != GROUPS - (kind == "goes"):
            raise RuntimeError(f"{ended} groups ended: {groups.said()}")
    finally:
        groups.end()
    return count(Logs(folder))


class Step(NamedTuple):
    """A step that counts, as the last quorum in which it does has read it."""

    number: int
    world: int
    samples: list[int]


class Logs:
    """What each quorum has read in each step, and which steps count."""

    def __init__(self, folder: Path) -> None:
        self.read: dict[tuple[int, int], dict[int, list[int]]] = defaultdict(dict)
        """By quorum and step, the rows of each rank: of the last try, if it was tried again."""
        self.worlds: dict[tuple[int, int], int] = {}
        self.quorums: dict[int, set[int]] = defaultdict(set)
        """By step, in which quorums it counts: for torchft, perhaps in more than one."""
        self.different = 0
        """How often a rank read something else in a step that was tried again."""
        for log in folder.glob("*.log"):
            for line in log.read_text().split("\n")[:-1]:  # the last may be half a line
                kind, *words = json.loads(line)
                if kind == "counts":
                    quorum, step = words
                    self.quorums[step].add(quorum)
                elif kind == "read":
                    quorum, step, world, rank, rows = words
                    key = quorum, step
                    self.different += rows != self.read[key].get(rank, rows)
                    self.different += world != self.worlds.get(key, world)
                    self.read[key][rank], self.worlds[key] = rows, world

    def of(self, quorum: int, step: int) -> list[int]:
        """Return what a quorum has read in a step, rank by rank."""
        parts = self.read[quorum, step]
        return sum((parts[rank] for rank in sorted(parts)), [])

    def steps(self) -> list[Step]:
        """Return the steps that count."""
        return [
            Step(step, self.worlds.get((max(of), step), 0), self.of(max(of), step))
            for step, of in sorted(self.quorums.items())
        ]


def count(logs: Logs) -> dict[str, Any]:
    """Count the samples of an epoch in the steps that count."""
    steps = logs.steps()
    lost, twice = lost_and_twice([sample for step in steps for sample in step.samples], SAMPLES)
    worlds = Counter(step.world for step in steps)
    return {"lost": lost, "twice": twice, "worlds": dict(sorted(worlds.items()))}


NAME = "live"
TITLE = "Groups that die and come back"
WORDS = (
    f"{GROUPS} groups of a [torchft](../../docs/live.md) run, each a process, read an epoch of "
    f"{SAMPLES:,} samples, {BATCH} each in a step, and one of them is killed in the forward pass "
    f"of step {HALF}. A run ends after {STEPS} steps that count, as many as the epoch has. A "
    "sample is read if its gradient counts. It doesn't if the step fails, in torchft's first step, "
    "or while torchft sends weights to the group; torchft's sampler has then moved past its "
    "samples, and a LiveLoader reads them in a later step. A group that reads all of its part "
    "by torchft's sampler begins it again."
)


def blocks(records: dict[str, Any]) -> list[Block]:
    """Return the blocks of the results."""
    cells = []
    for each in LOADERS:
        if each.name not in records:
            continue
        record = records[each.name]
        counts = (record["counts"][kind] for kind in KINDS)
        outcomes = (outcome(each) for each in counts)
        cells.append((each.name, record["version"], each.setup, *outcomes))
    words = " | ".join(words for words, _ in KINDS.values())
    return tabular(f"loader | version | set up | {words}", cells, "l")


def outcome(counts: dict[str, Any]) -> str:
    """Write what a run lost and read twice."""
    lost, twice = counts["lost"], counts["twice"]
    return f"**{lost} lost, {twice} twice**" if lost or twice else "exact"
