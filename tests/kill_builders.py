"""Kill builders at random moments, and compare what is left: `python -m tests.kill_builders 1000`.

Up to three builders at a time, of a whole plan or of a part, work on one directory, and die by
SIGKILL: after a random share of the time that a build takes, or as soon as one is seen in a chosen
state, such as "has written part of a chunk". In one directory of three, builders get no hard links
from Linux, so files get their names by renaming. A dead builder leaves its temporary file behind,
which tells where it was hit. After each kill a reader opens the directory. In the end the build is
run undisturbed, and every byte is compared with an undisturbed build's. Exits with 1 at the first
difference.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.support.builders import (
    KINDS,
    Kind,
    answer,
    check_finished,
    digests,
    ended,
    fork,
    looked_at,
    warm,
)
from tests.support.refused_calls import refuse

FILES = ("plan.json", "a chunk", "hashes")
STAGES = ("opened", "written in part", "written, not yet named", "named, still at it")
BUILDERS = 3


class WrongError(Exception):
    """A builder failed that was not killed, a reader got something else, or bytes differ."""


@dataclass
class Tally:
    """What was hit, and what was seen afterwards."""

    hit: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    at_work: int = 0
    without_links: int = 0  # kills of builders whose files get their names by renaming
    finished: int = 0  # builders that ended by themselves, all is well
    directories: int = 0

    @property
    def kills(self) -> int:
        """Builders killed."""
        return self.hit.total()


class Crew:
    """The builders of one directory."""

    def __init__(
        self, kind: Kind, root: Path, expected: Path, tally: Tally, random: Random
    ) -> None:
        self.kind, self.root, self.tally, self.random = kind, root, tally, random
        self.links = random.random() < 2 / 3
        files = [file for file in expected.rglob("*") if file.is_file()]
        self.sizes = {file.name: file.stat().st_size for file in files}
        self.num_files = len(files)
        self.stages: dict[int, mmap.mmap] = {}  # of each builder: 0 starts, 1 saves, 2 has saved

    def start(self) -> None:
        """Start one more builder."""
        stage = mmap.mmap(-1, 1)
        part = self.random.choice([None, None, (1, 2), (2, 2)])

        def build() -> None:
            if not self.links:
                refuse("link", errno.EPERM)
            stage[0] = 1
            self.kind.save(self.root, part=part)
            stage[0] = 2

        self.stages[fork(build)] = stage

    def kill(self, pid: int) -> None:
        """Kill a builder, and note where it was."""
        os.kill(pid, signal.SIGKILL)  # not waited for yet, so the number is still its own
        code = ended(pid)
        stage = self.stages.pop(pid)[0]
        if code != -signal.SIGKILL:
            self._well(code)
            return
        self.tally.at_work += stage == 1
        self.tally.without_links += not self.links
        self.tally.hit[self._state(pid, stage)] += 1

    def reap(self, *, wait: bool = False) -> None:
        """Look after builders that have ended by themselves, or wait for all to do so."""
        for pid in list(self.stages):
            ready, status = os.waitpid(pid, 0 if wait else os.WNOHANG)
            if ready:
                del self.stages[pid]
                self._well(os.waitstatus_to_exitcode(status))

    def _well(self, code: int) -> None:
        if code != 0:
            raise WrongError(f"a builder that was not killed exited with {code}")
        self.tally.finished += 1

    def writing(self, pid: int) -> Iterator[tuple[str, str]]:
        """Yield which files a builder is at, or died at, and how far: of FILES, of STAGES."""
        for folder in (self.root, *self.root.glob("epoch-*")):
            for temporary in folder.glob(f".*-{pid}-*.tmp"):
                name = temporary.name.split(".indexplan-")[0][1:]
                try:
                    found = temporary.stat()
                except FileNotFoundError:
                    continue
                size = found.st_size
                whole = size == self.sizes[name]
                stage = 3 if found.st_nlink > 1 else 0 if size == 0 else 2 if whole else 1
                file = "hashes" if ".xxh64" in name else "a chunk" if "chunk" in name else name
                yield file, STAGES[stage]

    def _state(self, pid: int, stage: int) -> str:
        if left := list(self.writing(pid)):
            return ": ".join(max(left, key=lambda at: STAGES.index(at[1])))
        if stage != 1:
            return "before the build" if stage == 0 else "after the build"
        if self.whole:
            return "all files are there: compares, sweeps up"
        if (self.root / "plan.json").exists():
            return "between files: generates or compares"
        return "before plan.json"

    @property
    def whole(self) -> bool:
        """Whether all files are there."""
        names = (name for name in self.root.rglob("*") if not name.name.startswith("."))
        return sum(name.is_file() for name in names) == self.num_files

    def seen(self, file: str, stage: str, seconds: float) -> int | None:
        """Return the first builder that is seen at a file's stage; None if some time is over."""
        stop = time.perf_counter() + seconds
        while time.perf_counter() < stop:
            for pid in self.stages:
                if (file, stage) in self.writing(pid):
                    return pid
        return None


def undisturbed(kind: Kind, root: Path, expected: dict[str, str]) -> None:
    """Finish a build, in a child, and compare."""
    if ended(fork(lambda: check_finished(kind, root, expected))) != 0:
        raise WrongError(f"{root} is not what an undisturbed build writes")


def look(kind: Kind, root: Path) -> str:
    """Open a directory, in a child; return what it got."""
    got = answer(lambda: looked_at(kind, root))
    if got is None:
        raise WrongError(f"{root} is neither half-built nor the right plan")
    return got


def disturb(crew: Crew, kills: int, seconds: float) -> None:
    """Kill builders of one directory, until it is finished or there were enough kills."""
    random, stop = crew.random, crew.tally.kills + kills
    while crew.tally.kills < stop:
        while len(crew.stages) < random.randint(1, BUILDERS):
            crew.start()
        victim, delay = random.choice(list(crew.stages)), random.uniform(0, seconds)
        if random.random() < 0.5:
            time.sleep(delay)
        else:
            file = random.choice([*FILES, "a chunk", "a chunk"])
            victim = crew.seen(file, random.choice(STAGES), delay) or victim
        victims = [victim]
        if random.random() < 0.6:  # all at once, as when a machine is shut down
            victims = list(crew.stages)
        for victim in victims:
            crew.kill(victim)
        crew.tally.seen[look(crew.kind, crew.root)] += 1
        crew.reap()
        if crew.whole and random.random() < 0.7:
            break
    if random.random() < 0.7:
        for victim in list(crew.stages):
            crew.kill(victim)
    crew.reap(wait=True)


def run(folder: Path, kills: int, seed: int) -> Tally:
    """Kill builders this many times; raise `WrongError` at the first difference."""
    random, tally = Random(seed), Tally()  # noqa: S311 (to choose moments)
    expected, seconds = {}, {}
    for name, kind in KINDS.items():
        start = time.perf_counter()
        if ended(fork(lambda: kind.save(folder / name))) != 0:  # noqa: B023 (waited for)
            raise WrongError(f"{name} cannot be built")
        seconds[name] = time.perf_counter() - start
        expected[name] = digests(folder / name)
    while tally.kills < kills:
        name = random.choice(["large", "large", "many", "bins"])
        root = folder / f"{tally.directories}.plan"
        tally.directories += 1
        crew = Crew(KINDS[name], root, folder / name, tally, random)
        try:
            disturb(crew, random.randint(1, 12), seconds[name])
        finally:
            for pid in list(crew.stages):
                crew.kill(pid)
        undisturbed(KINDS[name], root, expected[name])
        shutil.rmtree(root)
    return tally


def main(arguments: Sequence[str]) -> int:
    """Run as a script: KILLS [SEED]."""
    kills, seed = int(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 0
    warm()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        try:
            tally = run(Path(folder), kills, seed)
        except WrongError as error:
            print(f"WRONG, with seed {seed}: {error}")  # noqa: T201 (a script's output)
            return 1
    lines = [
        f"{tally.kills} kills of up to {BUILDERS} builders at once, in {tally.directories} "
        f"directories, {time.perf_counter() - start:.0f} s, seed {seed}",
        f"{tally.without_links} of the killed were in a folder without links",
        f"{tally.at_work} of the killed were inside save; where they were hit:",
        *(f"{count:7} {state}" for state, count in tally.hit.most_common()),
        "what a reader got after a kill:",
        *(f"{count:7} {answer}" for answer, count in tally.seen.most_common()),
        f"{tally.finished} builders ended by themselves, all well",
        "result: every directory ended in the bytes of an undisturbed build, nothing left over",
    ]
    print("\n".join(lines))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
