"""What the groups of a torchft run have written: nothing here imports indexplan, nor torchft."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple


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
