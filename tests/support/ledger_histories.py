"""Runs of several ranks that keep a ledger, and lists of what they read, to count it by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import indexplan as ip
from tests.ledger import listing

Step = list[list[int]]  # the samples of each rank


@dataclass(frozen=True)
class Leg:
    """A part of a run: it loads a state by name, and then reads so many steps or saves a state."""

    ranks: int
    load: str | None
    actions: tuple[int | str, ...]


def act(loader: Any, actions: tuple[int | str, ...]) -> Iterator[tuple[str | None, Any]]:
    """Read a loader of one rank, pass after pass; yield (None, batch) and (name, state)."""
    batches = endless(loader)
    for action in actions:
        if isinstance(action, str):
            yield action, loader.state_dict()
            continue
        for _ in range(action):
            yield None, next(batches)
    batches.close()  # the loop breaks


def endless(loader: Any) -> Any:
    """Yield the batches of one pass after another."""
    while True:
        yield from loader


@dataclass
class Listed:
    """The steps that count, and those that are void, as lists of the samples of each rank."""

    steps: list[Step] = field(default_factory=list)
    void: list[Step] = field(default_factory=list)
    saved: dict[str, list[Step]] = field(default_factory=dict)

    def add(self, leg: Leg, told: list[list[Any]]) -> None:
        """Add what the ranks of a leg tell: their batches, and None where they saved a state."""
        before = self.saved[leg.load] if leg.load else self.steps
        same = 0
        while same < min(len(before), len(self.steps)) and before[same] == self.steps[same]:
            same += 1
        self.void += self.steps[same:]
        self.steps = [*before]
        names = iter([each for each in leg.actions if isinstance(each, str)])
        for batches in zip(*told, strict=True):
            if batches[0] is None:
                self.saved[next(names)] = [*self.steps]
            else:
                self.steps.append([list(batch) for batch in batches])

    def check(self, ledger: ip.Ledger) -> None:
        """Compare all that a ledger tells with what was read; its lines have the same steps."""
        assert ledger.verify().ok, str(ledger.verify())
        live, void = listing.listed(ledger.path)
        assert self.steps == [step.batches for step in live]
        undone = counted([step.batches for step in void])  # and those of a state that counts again
        assert not counted(self.void) - undone
        listing.check(ledger, (live, void))


def counted(steps: list[Step]) -> Counter[int]:
    """Return how often steps have each sample."""
    return Counter(sample for step in steps for batch in step for sample in batch)
