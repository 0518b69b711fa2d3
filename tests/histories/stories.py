"""Histories that are told by their numbers, and what many of them come to. Imports no indexplan."""

from __future__ import annotations

import argparse
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

Counts = Counter[tuple[str, Any]]  # of (group, name)
Record = dict[str, Any]
RIGHT = "nothing lost, nothing twice, nothing wrong"


class WrongError(Exception):
    """What the library promises, beside samples that are read once, is not so."""


@dataclass
class Story:
    """What became of a history: what was counted, in words what happened, and what was wrong."""

    number: int
    counts: Counts = field(default_factory=Counter)
    words: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    record: Record = field(default_factory=dict)
    """What is kept of it: numbers by their names, which are added over histories."""

    def count(self, group: str, name: Any, number: int = 1) -> None:
        """Count something of a group; the group "" has what is shown first."""
        self.counts[group, name] += number

    def say(self, text: str) -> None:
        """Tell what happens."""
        self.words.append(text)

    def fail(self, text: str) -> None:
        """Tell what is wrong."""
        self.wrong.append(text)


class Given(argparse.Namespace):
    """What the command line asks for, and what has to be closed at its end."""

    seconds: float = float("inf")
    histories: int | None = None
    first: int = 0
    steps: int | None = None
    workers: int = 0
    words: bool = False
    fault: bool = False
    only: list[str] | None = None
    keep: bool = False

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.stack = ExitStack()


Live = Callable[[Story, Given], object]
"""Goes through the history of a story's number."""


def tell(live: Live, number: int, given: Given) -> Story:
    """Go through a history; whatever is wrong is in the story, exceptions too."""
    story = Story(number)
    try:
        live(story, given)
    except Exception as error:  # whatever it is, it is a finding
        story.fail(str(error) if isinstance(error, WrongError) else traceback.format_exc().strip())
        story.count("", "histories that raised")
    return story


def add(sums: Record, more: Record) -> None:
    """Add numbers and lists to those of the same names."""
    for name, value in more.items():
        if isinstance(value, dict):
            add(sums.setdefault(name, {}), value)
        else:
            sums[name] = sums[name] + value if name in sums else value


def lines_of(record: Record, *names: str) -> list[str]:
    """Return what was counted in lines, and what was said."""
    counts = [f"{value:,} {name}" for name, value in record.items() if isinstance(value, int)]
    counts += [value for value in record.values() if isinstance(value, str) and value]
    found = [f"{', '.join(names)}: {', '.join(counts)}"] if counts else []
    for name, value in record.items():
        if isinstance(value, dict):
            found += lines_of(value, *names, name)
    return found


def run(kind: str, live: Live, given: Given) -> tuple[int, Record]:
    """Run histories; tell those that are wrong in words, and what was counted.

    Returned is how many were wrong, and the sum of what is kept of all.
    """
    begun, counts, num, num_wrong, record = time.monotonic(), Counts(), 0, 0, Record()
    again = f"again: python -m tests.histories {kind} --histories 1"
    again += f" --workers {given.workers}" * bool(given.workers)
    histories = 100 if given.histories is None else given.histories
    for number in range(given.first, given.first + histories):
        if time.monotonic() - begun > given.seconds:
            break
        story = tell(live, number, given)
        counts.update(story.counts)
        add(record, story.record)
        num, num_wrong = num + 1, num_wrong + bool(story.wrong)
        if story.wrong or given.words:
            verdict = story.wrong or lines_of(story.record) or [RIGHT]
            told = [f"history {number}", *story.words, *verdict, f"{again} --first {number}"]
            say("\n  ".join(told))
    lines = [f"{count:>15,}  {name}" for (of, name), count in counts.items() if not of]
    for group in sorted({of for of, _ in counts} - {""}):
        named = sorted((-count, str(name)) for (of, name), count in counts.items() if of == group)
        lines += [f"{group}:", *(f"{-count:>15,}  {name}" for count, name in named)]
    lines += lines_of(record)
    say("\n".join([*lines, f"{kind}: {num:,} histories in {time.monotonic() - begun:,.0f} s"]))
    if num_wrong:
        say(f"result: WRONG in {num_wrong} of them")
    elif not record:  # else it says itself what was lost
        say("result: all are as they should be")
    return num_wrong, record


def say(text: str) -> None:
    """Print at once, whatever stdout is."""
    print(text, flush=True)  # noqa: T201 (a script's output)
