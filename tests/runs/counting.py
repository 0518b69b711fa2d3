"""Count what histories lost and read twice, and how much of it a loader's own policy explains."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.runs.histories import EPOCHS, KINDS, History, history
from tests.runs.loaders import NAMES, Entry
from tests.runs.running import Make, Ran, play

EXAMPLES = 3
"""Histories that are kept as examples of what went wrong."""


@dataclass
class Tally:
    """Sums over histories of one kind."""

    histories: int = 0
    refused: int = 0
    exact: int = 0
    """Histories that went through, without a sample lost or read twice but by policy."""
    uneven: int = 0
    """Histories in which a rank had a batch in a step in which another had none."""
    samples: int = 0
    """That were to be read: in passes that were over before a refusal, each sample once."""
    lost: int = 0
    twice: int = 0
    """Reads past the first of a sample in a pass."""
    dropped: int = 0
    """Samples not read, by the loader's policy."""
    padded: int = 0
    """Reads past the first, by the loader's policy."""
    seconds: list[float] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    """What was raised, with numbers left out, and how often."""
    examples: list[str] = field(default_factory=list)

    def add(self, history: History, rans: list[Ran], entry: Entry) -> None:
        """Count a history, by what came of its legs."""
        last = rans[-1]
        finished = EPOCHS
        if last.refused:  # it ended before it could read the rest
            finished = last.began.epoch if last.began else 0
            rans = rans[:-1]
        self.histories += 1
        self.uneven += any(ran.uneven for ran in rans)
        self.seconds += [
            ran.seconds
            for ran in rans
            if ran.began and ran.leg and not ran.leg.workers and ran.seconds is not None
        ]
        lost = twice = 0
        for epoch in range(EPOCHS):
            reads = sum((ran.reads[epoch] for ran in rans), np.zeros(history.n, np.int64))
            again = int(np.maximum(reads - 1, 0).sum())
            missing = int((reads == 0).sum()) if epoch < finished else 0
            self.samples += history.n if epoch < finished else int((reads > 0).sum())
            legs = [ran.leg for ran in rans if ran.leg and epoch in ran.entered]
            dropped, padded = entry.policy(history.n, legs) if legs else (0, 0)
            dropped, padded = min(dropped, missing), min(padded, again)
            self.dropped, self.padded = self.dropped + dropped, self.padded + padded
            lost, twice = lost + missing - dropped, twice + again - padded
        self.lost, self.twice = self.lost + lost, self.twice + twice
        if last.refused:
            self.refused += 1
            self.reasons[last.refused] += 1
        elif not lost and not twice:
            self.exact += 1
        if (lost or twice) and len(self.examples) < EXAMPLES:
            self.examples.append(f"{history}; {lost} lost, {twice} read twice")

    def to_dict(self) -> dict[str, Any]:
        """Return the sums as JSON types."""
        return {**vars(self), "reasons": dict(self.reasons)}


def torture(entry: Entry, make: Make, histories: Iterable[History]) -> dict[str, Tally]:
    """Deal histories to a loader; return the counts of each kind."""
    tallies = {kind: Tally() for kind in KINDS}
    with tempfile.TemporaryDirectory() as root:
        for each in histories:
            folder = Path(root) / str(each.n)
            if not folder.exists():
                folder.mkdir()
                getattr(make, "write", lambda *_: None)(str(folder), each.n)
            rans = play(make, each, str(folder), forked=entry.forked)
            tallies[each.kind].add(each, rans, entry)
    return tallies


def of_loader(name: str, plain: int, with_workers: int) -> dict[str, Any]:
    """Return the counts of one loader, of so many histories."""
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # more workers than cores, and deprecated calls of loaders
    logging.disable(logging.WARNING)
    entry = NAMES[name]
    result: dict[str, Any] = entry.standing()
    if result["missing"]:
        return result
    for key, count in {"plain": plain, "with_workers": with_workers}.items():
        dealt = (history(number, with_workers=key == "with_workers") for number in range(count))
        tallies = torture(entry, entry.load(), dealt)
        result[key] = {kind: tally.to_dict() for kind, tally in tallies.items()}
    return result


def summed(tallies: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the sum of counts: numbers are added, lists are joined."""
    result: dict[str, Any] = {}
    for name, value in tallies[0].items():
        values = [tally[name] for tally in tallies]
        if name == "reasons":
            result[name] = dict(sum((Counter(each) for each in values), Counter()))
        else:
            result[name] = sum(values, [] if isinstance(value, list) else 0)
    return result
