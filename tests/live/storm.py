"""A storm: groups of a torchft run are killed and started again, and every sample is counted.

It imports nothing of indexplan. It knows how many samples there are, and what groups have written.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.runs.groups.groups import Groups, forks_of
from tests.runs.groups.logs import Logs

LOOPS = "tests.live.replica"
SAMPLES = 997


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


class Storm(Groups):
    """Three groups, one of which is killed at a time, until there were so many kills."""

    def __init__(self, folder: Path, quorum: str, seed: int, num_groups: int = 3) -> None:
        super().__init__(forks_of(LOOPS), folder)
        self.sync, self.random = quorum == "sync", Random(seed)  # noqa: S311
        for group in range(num_groups):
            self.start_again(group)

    def start_again(self, group: int) -> None:
        """Start a group, as new."""
        loop = "through_loader" if self.sync or group == 0 else "by_hand"
        self.start(group, f"{LOOPS}.{loop}", SAMPLES, sync=self.sync)

    def counting(self, group: int) -> int:
        """Return how many steps that count the running group has written."""
        return self.written(group, "counts")

    def run(self, kills: int, steps_after: int) -> Counted:
        """Kill so many groups, one after another, each once it has had part in a step."""
        try:
            self.go()
            for group in self.processes:
                self.wait(lambda group=group: self.counting(group) > 1)  # type: ignore[misc]
            for _ in range(kills):
                group = self.random.choice(sorted(self.processes))
                more = self.counting(group) + self.random.randint(0, 6)
                self.wait(lambda: self.counting(group) >= more)  # noqa: B023
                time.sleep(self.random.uniform(0, 0.1))  # anywhere in a step
                self.processes[group].kill()
                other = (group + 1) % len(self.processes)
                more_of_other = self.counting(other) + self.random.choice([0, 0, 1, 5])
                self.wait(lambda: self.counting(other) >= more_of_other)  # noqa: B023
                self.start_again(group)
                self.wait(lambda: self.counting(group) > 0)  # noqa: B023
            first = self.counting(0) + steps_after
            self.wait(lambda: self.counting(0) >= first)
        finally:
            self.end()
            self.forks.end()
        return count(self.folder, kills)


def count(folder: Path, kills: int) -> Counted:
    """Count what was read in the steps that count."""
    logs = Logs(folder)
    different, void = logs.different, 0
    stream: list[int] = []
    ran = Counter[int]()
    for step in range(1, logs.last + 1):  # 0 has no data
        quorums = sorted(logs.quorums[step])
        assert quorums, f"no group says that step {step} counts"
        candidates = []
        for quorum in quorums:
            parts, world = logs.read[quorum, step], logs.worlds[quorum, step]
            assert sorted(parts) == list(range(world)), f"ranks of step {step}: {sorted(parts)}"
            candidates.append(sorted(sum(parts.values(), [])))
        void += len(candidates) - 1
        different += any(candidates[0] != each for each in candidates)
        stream += candidates[0]
        ran[logs.worlds[quorums[-1], step]] += 1
    lost = twice = 0
    epochs = len(stream) // SAMPLES
    for epoch in range(epochs):
        times = Counter(stream[epoch * SAMPLES : (epoch + 1) * SAMPLES])
        lost += SAMPLES - len(times)
        twice += sum(number > 1 for number in times.values())
    return Counted(kills, logs.last, ran, epochs, lost, twice, void, different)
