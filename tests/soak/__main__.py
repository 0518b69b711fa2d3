"""Run random histories, and count every sample: `python -m tests.soak SECONDS`.

A history is a run of one order. It is stopped at a random step, again and again, and goes on with
other ranks, another batch size, schedule, nesting and remainder, computed or from a plan
directory. What lies between two stops is a leg. In the end each sample of each epoch has to have
been read once, or to be accounted for as dropped or padded. Exits with 1 if it is not so, or if
anything raised. Loaders have `python -m tests.histories`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from itertools import count

from tests.soak.history import Counts, Story, tell

TOTALS = (
    "legs",
    "histories",
    "samples lost",
    "samples repeated",
    "legs that raised",
    "steps",
    "samples read",
    "units dropped, as accounted for",
    "units padded, as accounted for",
)


def main(arguments: Sequence[str]) -> int:
    """Run as a script."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("seconds", nargs="?", type=float, default=float("inf"), help="how long")
    parser.add_argument("--legs", type=float, default=float("inf"), help="stop after so many legs")
    parser.add_argument("--first", type=int, default=0, help="the first seed; 0 if left out")
    parser.add_argument("--seed", type=int, help="tell the history of one seed in words")
    given = parser.parse_args(arguments)
    if given.seed is not None:
        story = tell(given.seed)
        say(in_words(story))
        return 1 if story.wrong else 0
    begun, counts, num_wrong = time.perf_counter(), Counts(), 0
    for seed in count(given.first):
        if time.perf_counter() - begun > given.seconds or counts["", "legs"] >= given.legs:
            break
        story = tell(seed)
        counts += story.counts
        num_wrong += bool(story.wrong)
        if story.wrong:
            say(in_words(story))
    say(summary(counts, time.perf_counter() - begun, num_wrong))
    return 1 if num_wrong else 0


def in_words(story: Story) -> str:
    """Return a history, what was wrong with it, and how to run it again."""
    verdict = story.wrong or ["nothing lost, nothing repeated"]
    lines = [f"history {story.seed}", *story.words, *verdict]
    return "\n  ".join([*lines, f"again: python -m tests.soak --seed {story.seed}"])


def summary(counts: Counts, seconds: float, num_wrong: int) -> str:
    """Return what was counted."""
    lines = [f"{counts['', name]:>15,}  {name}" for name in TOTALS]
    for group in sorted({of for of, _ in counts} - {""}):
        lines.append(f"{group}:")
        named = sorted((-number, str(name)) for (of, name), number in counts.items() if of == group)
        lines += [f"{-number:>15,}  {name}" for number, name in named]
    lines.append(f"{seconds:,.0f} s")
    histories = f"all {counts['', 'histories']:,} histories"
    good = f"result: each sample was read once, or accounted for, in {histories}"
    return "\n".join(
        [*lines, f"result: WRONG in {num_wrong} of {histories}" if num_wrong else good]
    )


def say(text: str) -> None:
    """Print at once, whatever stdout is."""
    print(text, flush=True)  # noqa: T201 (a script's output)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
