"""Count what histories lost and read twice, and how much of it a loader's own policy explains."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tests.runs.histories import KINDS, History, history
from tests.runs.loaders import NAMES, Entry
from tests.runs.running import Outcome, play

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

    def add(self, history: History, outcome: Outcome, entry: Entry) -> None:
        """Count a history."""
        self.histories += 1
        self.seconds += outcome.seconds
        self.uneven += outcome.uneven
        lost = twice = 0
        for epoch, reads in enumerate(outcome.reads):
            again = int(np.maximum(reads - 1, 0).sum())
            if epoch < outcome.finished:
                missing = int((reads == 0).sum())
                self.samples += history.n
            else:  # it was refused before it could read them
                missing = 0
                self.samples += int((reads > 0).sum())
            legs = outcome.legs[epoch]
            dropped, padded = entry.policy(history.n, legs) if legs else (0, 0)
            dropped, padded = min(dropped, missing), min(padded, again)
            self.dropped, self.padded = self.dropped + dropped, self.padded + padded
            lost, twice = lost + missing - dropped, twice + again - padded
        self.lost, self.twice = self.lost + lost, self.twice + twice
        if outcome.refused:
            self.refused += 1
            self.reasons[outcome.refused] += 1
        elif not lost and not twice:
            self.exact += 1
        if (lost or twice) and len(self.examples) < EXAMPLES:
            self.examples.append(f"{history}; {lost} lost, {twice} read twice")

    def to_dict(self) -> dict[str, Any]:
        """Return the sums as JSON types."""
        return {**vars(self), "reasons": dict(self.reasons)}


def torture(entry: Entry, loader: ModuleType, histories: Iterable[History]) -> dict[str, Tally]:
    """Deal histories to a loader; return the counts of each kind."""
    tallies = {kind: Tally() for kind in KINDS}
    with tempfile.TemporaryDirectory() as root:
        for each in histories:
            folder = Path(root) / str(each.n)
            if not folder.exists():
                folder.mkdir()
                getattr(loader, "write", lambda *_: None)(str(folder), each.n)
            outcome = play(loader.Loader, each, str(folder), forked=entry.forked)
            tallies[each.kind].add(each, outcome, entry)
    return tallies


def share(name: str, job: int, jobs: int, plain: int, with_workers: int) -> dict[str, Any]:
    """Return the counts of one loader, of every `jobs`-th history from `job` on."""
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # more workers than cores, and deprecated calls of loaders
    logging.disable(logging.WARNING)
    entry = NAMES[name]
    result: dict[str, Any] = entry.standing()
    if result["missing"]:
        return result
    for key, count in {"plain": plain, "with_workers": with_workers}.items():
        numbers = range(job, count, jobs)
        dealt = (history(number, with_workers=key == "with_workers") for number in numbers)
        tallies = torture(entry, entry.load(), dealt)
        result[key] = {kind: tally.to_dict() for kind, tally in tallies.items()}
    return result


def merged(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the sum of records, each of which has counts by kind, of some of the histories."""
    result: dict[str, Any] = {**parts[0]}
    for key in ("plain", "with_workers"):
        if key in result:
            result[key] = {kind: summed([p[key][kind] for p in parts]) for kind in result[key]}
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
