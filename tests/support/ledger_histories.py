"""Runs of several ranks that keep a ledger, and lists of what they read, to count it by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import indexplan as ip

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

    def check(self, ledger: ip.Ledger, num_samples: int) -> None:
        """Compare every step, rank and sample with what a ledger tells."""
        assert ledger.verify().ok, str(ledger.verify())
        assert ledger.step == len(self.steps)
        for number, step in enumerate(self.steps):
            told = [ledger.batch(number, rank).tolist() for rank in range(len(step))]
            assert told == step
        expected: dict[int, list[tuple[int, int]]] = {}
        for number, step in enumerate(self.steps):
            for rank, batch in enumerate(step):
                for sample in batch:
                    expected.setdefault(sample, []).append((number, rank))
        for sample in range(num_samples):
            assert [read[:2] for read in ledger.reads(sample)] == expected.get(sample, [])
        undone = Counter(sample for step in self.void for batch in step for sample in batch)
        for sample in range(num_samples):
            void = [read for read in ledger.reads(sample, void=True) if read.void]
            assert len(void) >= undone[sample]  # a state that counts again has void steps too
        account = ledger.account()
        assert account.num_steps == len(self.steps)
        slots = sum(len(batch) for step in self.steps for batch in step)
        assert account.num_read + account.num_padded == slots
