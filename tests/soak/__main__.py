"""Run random histories, and count every sample: `python -m tests.soak SECONDS`.

A history is a run of one order. It is stopped at a random step, again and again, and goes on with
other ranks, another batch size, schedule, nesting and remainder, computed or from a plan
directory, read from the plan or by the loaders of trainers; at times it is killed. What lies
between two stops is a leg. In the end each sample of each epoch has to have been read once, or to
be accounted for as dropped or padded. Exits with 1 if it is not so, or if anything raised.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.soak.history import Counts, Story, tell
from tests.soak.jobs import soak
from tests.soak.summary import summary

MOST_TOLD = 5  # failures that are printed in words


def main(arguments: Sequence[str]) -> int:
    """Run as a script."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("seconds", nargs="?", type=float, help="how long")
    parser.add_argument("--legs", type=int, help="stop after so many legs")
    parser.add_argument("--jobs", type=int, default=2, help="processes; 2 if left out")
    parser.add_argument("--first", type=int, default=0, help="the first seed; 0 if left out")
    parser.add_argument("--seed", type=int, help="tell the history of one seed in words")
    parser.add_argument("--output", type=Path, help="a file for the summary")
    given = parser.parse_args(arguments)
    if given.seed is not None:
        return tell_one(given.seed)
    if given.seconds is None and given.legs is None:
        parser.error("say how long: SECONDS, --legs, or both")
    start, begun = time.perf_counter(), datetime.now(UTC)
    counts, told, shown = Counts(), 0, 0.0
    for news in soak(given.first, given.jobs, seconds=given.seconds, legs=given.legs):
        counts += news.counts
        for story in news.wrong:
            told += 1
            if told <= MOST_TOLD:
                say(in_words(story))
        if time.perf_counter() - shown > (1 if sys.stderr.isatty() else 60):
            shown = time.perf_counter()
            progress(counts, shown - start)
    if sys.stderr.isatty():
        sys.stderr.write("\n")
    length = [f"{given.seconds:g}"] if given.seconds is not None else []
    length += [f"--legs {given.legs}"] if given.legs is not None else []
    options = [*length, f"--jobs {given.jobs}", f"--first {given.first}"]
    command = f"python -m tests.soak {' '.join(options)}"
    seconds = time.perf_counter() - start
    late = given.seconds is not None and seconds >= given.seconds
    if not late and (given.legs is None or counts["", "legs"] < given.legs):
        command += "  # ended early, by Ctrl-C or as all jobs died"
    text = summary(counts, seconds, begun, command, told)
    say(text)
    if given.output is not None:
        given.output.write_text(f"{text}\n")
    return 1 if told else 0


def tell_one(seed: int) -> int:
    """Run one history, and print it."""
    story = tell(seed)
    say(in_words(story))
    return 1 if story.wrong else 0


def in_words(story: Story) -> str:
    """Return a history, what was wrong with it, and how to run it again."""
    verdict = story.wrong or ["nothing lost, nothing repeated"]
    lines = [f"history {story.seed}", *story.words, *verdict]
    return "\n  ".join([*lines, f"again: python -m tests.soak --seed {story.seed}"])


def progress(counts: Counts, seconds: float) -> None:
    """Show how far it is: over and over in a terminal, else now and then."""
    legs, lost, repeated = (
        counts["", name] for name in ("legs", "samples lost", "samples repeated")
    )
    line = (
        f"{seconds:6.0f} s  {legs:,} legs  {counts['', 'histories']:,} histories  "
        f"{lost} lost  {repeated} repeated  {legs / seconds:.0f} legs/s"
    )
    sys.stderr.write(f"\r{line}" if sys.stderr.isatty() else f"{line}\n")
    sys.stderr.flush()


def say(text: str) -> None:
    """Print at once, whatever stdout is."""
    print(text, flush=True)  # noqa: T201 (a script's output)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
