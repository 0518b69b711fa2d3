"""A storm: groups of a torchft run are killed and started again, and every sample is counted.

It imports nothing of indexplan. It knows how many samples there are, and what groups have written.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from torchft.coordination import LighthouseServer

ROOT = Path(__file__).parents[2]
SAMPLES = 997
PATIENCE = 240  # seconds without anything new after which a storm is given up


@dataclass
class Counted:
    """What a storm has read, of the steps that count."""

    kills: int
    steps: int
    worlds: Counter[int]
    epochs: int
    lost: int
    twice: int
    void: int  # steps that count twice, in quorums that knew nothing of each other
    different: int  # of these, or within a quorum, that read something else

    def __str__(self) -> str:
        worlds = ", ".join(f"{count} on {world}" for world, count in sorted(self.worlds.items()))
        return (
            f"{self.kills} kills; {self.steps} steps that count ({worlds}), of which {self.void} "
            f"count in two quorums; {self.epochs} whole epochs of {SAMPLES} samples: "
            f"{self.lost} lost, {self.twice} twice; {self.different} steps that differ"
        )

    @property
    def right(self) -> bool:
        """Whether each sample was read once."""
        return self.epochs > 0 and not (self.lost or self.twice or self.different)


class Storm:
    """Three groups, one of which is killed at a time, until there were so many kills."""

    def __init__(self, folder: Path, quorum: str, seed: int, num_groups: int = 3) -> None:
        self.folder, self.quorum, self.random = folder, quorum, Random(seed)  # noqa: S311
        self.server = LighthouseServer(
            bind="127.0.0.1:0",
            min_replicas=1,
            join_timeout_ms=200,
            quorum_tick_ms=20,
            heartbeat_timeout_ms=1500,
        )
        port = self.server.address().rsplit(":", 1)[1]
        self.address = f"http://127.0.0.1:{port}"
        path = [ROOT, ROOT / "adapters", os.environ.get("PYTHONPATH", "")]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "OTEL_SDK_DISABLED": "true",
            "OMP_NUM_THREADS": "1",
        }
        with (folder / "errors").open("w") as errors:
            self.forking = subprocess.Popen(
                [sys.executable, "-m", "tests.live.replica"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
            )
        assert self.forking.stdout is not None
        assert "ready\n" == self.forking.stdout.readline(), (folder / "errors").read_text()
        self.pids: dict[int, int] = {}
        self.generation = Counter[int]()
        for group in range(num_groups):
            self.start(group)

    def start(self, group: int) -> None:
        """Start a group, as new."""
        assert self.forking.stdin is not None
        assert self.forking.stdout is not None
        self.generation[group] += 1
        words = f"start g{group} {self.quorum} {self.address} {self.log(group)} {SAMPLES}"
        self.forking.stdin.write(f"{words}\n")
        self.forking.stdin.flush()
        self.pids[group] = int(self.forking.stdout.readline())

    def log(self, group: int) -> Path:
        """Return where the group that runs now writes to."""
        return self.folder / f"g{group}.{self.generation[group]}.log"

    def counting(self, group: int) -> int:
        """Return how many steps that count the running group has written."""
        log = self.log(group)
        return log.read_text().count('["counts"') if log.exists() else 0

    def wait(self, until: Callable[[], bool]) -> None:
        """Wait for what groups write."""
        end = time.monotonic() + PATIENCE
        while not until():
            if time.monotonic() > end:
                raise TimeoutError((self.folder / "errors").read_text()[-3000:])
            time.sleep(0.05)  # it looks again

    def run(self, kills: int, steps_after: int) -> Counted:
        """Kill so many groups, one after another, each once it has had part in a step."""
        try:
            for group in self.pids:
                self.wait(lambda group=group: self.counting(group) > 1)  # type: ignore[misc]
            for _ in range(kills):
                group = self.random.choice(sorted(self.pids))
                more = self.counting(group) + self.random.randint(0, 6)
                self.wait(lambda: self.counting(group) >= more)  # noqa: B023
                time.sleep(self.random.uniform(0, 0.1))  # anywhere in a step
                os.kill(self.pids[group], signal.SIGKILL)
                other = (group + 1) % len(self.pids)
                more_of_other = self.counting(other) + self.random.choice([0, 0, 1, 5])
                self.wait(lambda: self.counting(other) >= more_of_other)  # noqa: B023
                self.start(group)
                self.wait(lambda: self.counting(group) > 0)  # noqa: B023
            first = self.counting(0) + steps_after
            self.wait(lambda: self.counting(0) >= first)
        finally:
            self.end()
        return count(self.folder, kills)

    def end(self) -> None:
        """Kill everything."""
        for pid in self.pids.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.forking.kill()
        self.forking.communicate()
        self.server.shutdown()


def count(folder: Path, kills: int) -> Counted:
    """Count what was read in the steps that count."""
    read: dict[tuple[int, int], dict[int, list[int]]] = defaultdict(dict)
    worlds: dict[tuple[int, int], int] = {}
    counts: dict[int, set[int]] = defaultdict(set)
    different = void = 0
    for log in folder.glob("*.log"):
        for line in log.read_text().split("\n")[:-1]:  # the last may be half a line
            kind, quorum, step, *rest = json.loads(line)
            if kind == "counts":
                counts[step].add(quorum)
                continue
            world, rank, rows = rest
            before = read[quorum, step].setdefault(rank, rows)
            different += before != rows or worlds.setdefault((quorum, step), world) != world
    stream: list[int] = []
    ran = Counter[int]()
    last = max(counts)
    for step in range(1, last + 1):  # 0 has no data
        assert step in counts, f"no group says that step {step} counts"
        candidates = []
        for quorum in sorted(counts[step]):
            parts, world = read[quorum, step], worlds[quorum, step]
            assert sorted(parts) == list(range(world)), f"ranks of step {step}: {sorted(parts)}"
            candidates.append(sorted(sum(parts.values(), [])))
        void += len(candidates) - 1
        different += any(candidates[0] != each for each in candidates)
        stream += candidates[0]
        ran[worlds[max(counts[step]), step]] += 1
    lost = twice = 0
    epochs = len(stream) // SAMPLES
    for epoch in range(epochs):
        times = Counter(stream[epoch * SAMPLES : (epoch + 1) * SAMPLES])
        lost += SAMPLES - len(times)
        twice += sum(number > 1 for number in times.values())
    return Counted(kills, last, ran, epochs, lost, twice, void, different)
