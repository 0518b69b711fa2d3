"""Histories that are told by their numbers, and what many of them come to. Imports no indexplan."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Counts = Counter[tuple[str, Any]]  # of (group, name)


@dataclass
class Story:
    """What became of a history: what was counted, in words what happened, and what was wrong."""

    seed: int
    counts: Counts = field(default_factory=Counter)
    words: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def count(self, group: str, name: Any, number: int = 1) -> None:
        """Count something of a group."""
        self.counts[group, name] += number


def options(of: str, doc: str | None) -> argparse.ArgumentParser:
    """Return what every command that runs histories is told."""
    parser = argparse.ArgumentParser(prog=f"python -m {of}", description=doc)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin none after them")
    parser.add_argument("--histories", type=int, default=10**9, help="at most so many")
    parser.add_argument("--first", type=int, default=0, help="the number of the first; default: 0")
    parser.add_argument("--words", action="store_true", help="tell every history in words")
    return parser


def run(
    given: argparse.Namespace, tell: Callable[[int], Story], totals: Sequence[str], again: str
) -> int:
    """Run histories; tell those that are wrong in words, and what was counted; 1 if any was wrong.

    `totals` are the names of the group "", in the order in which they are shown.
    """
    begun, counts, num_wrong = time.monotonic(), Counts(), 0
    for seed in range(given.first, given.first + given.histories):
        if time.monotonic() - begun > given.seconds:
            break
        story = tell(seed)
        story.count("", "histories")
        counts += story.counts
        num_wrong += bool(story.wrong)
        if story.wrong or given.words:
            verdict = story.wrong or ["nothing lost, nothing twice, nothing wrong"]
            once = f"again: python -m {again} --histories 1 --first {seed}"
            say("\n  ".join([f"history {seed}", *story.words, *verdict, once]))
    lines = [f"{counts['', name]:>15,}  {name}" for name in ("histories", *totals)]
    for group in sorted({of for of, _ in counts} - {""}):
        named = sorted((-number, str(name)) for (of, name), number in counts.items() if of == group)
        lines += [f"{group}:", *(f"{-number:>15,}  {name}" for number, name in named)]
    histories = f"{counts['', 'histories']:,} histories"
    good = f"result: each sample was read once, or accounted for, in all {histories}"
    say("\n".join([*lines, f"{time.monotonic() - begun:,.0f} s"]))
    say(f"result: WRONG in {num_wrong} of {histories}" if num_wrong else good)
    return 1 if num_wrong else 0


def say(text: str) -> None:
    """Print at once, whatever stdout is."""
    print(text, flush=True)  # noqa: T201 (a script's output)
