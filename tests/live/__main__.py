"""Runs whose world changes: `python -m tests.live --steps 1000000`, or `--kills 50`.

The first simulates quorums, and compares each step of each run with lists. The second kills groups
of real torchft runs, with the sync quorum and with the async one, and counts what was read; it
needs torchft==0.2.0. Exits with 1 where a sample was lost or read twice, or anything else differs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import indexplan as ip
from tests.live.quorums import MOST_GROUPS, Quorums

A_RUN = 200  # steps of each simulated run, so that 5,000 are of 25 plans


def main(arguments: Sequence[str]) -> int:
    """Run as a script."""
    parser = argparse.ArgumentParser(prog="python -m tests.live", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--steps", type=int, help="committed steps, simulated")
    what.add_argument("--kills", type=int, help="groups to kill under each quorum of torchft")
    parser.add_argument("--seed", type=int, default=0, help="of the first run; 0 if left out")
    given = parser.parse_args(arguments)
    if given.kills is not None:
        return max([storm(given.kills, quorum, given.seed) for quorum in ("sync", "async")])
    return simulate(given.steps, given.seed)


def storm(kills: int, quorum: str, seed: int) -> int:
    """Kill so many groups of a torchft run; print what was counted."""
    from tests.live.storm import Storm

    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        counted = Storm(Path(folder), quorum, seed).run(kills, steps_after=50)
    say(f"{quorum} quorum: {counted}; {time.perf_counter() - start:.0f} s")
    return not counted.right


def simulate(num_steps: int, seed: int) -> int:
    """Simulate runs of drawn plans until so many steps are committed; print what happened.

    Every fourth has spares, about every other several ranks a group.
    """
    counts, start = Counter[str](), time.perf_counter()
    while counts["commits"] < num_steps:
        quorums = drawn(seed, counts)
        try:
            quorums.run(min(A_RUN, num_steps - counts["commits"]))
        except AssertionError as error:
            say(f"seed {seed}, {quorums.plan!r}, step {quorums.step}: {error}")
            return 1
        counts["plans"] += 1
        seed += 1
    told = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    say(f"{told}; each as lists say; {time.perf_counter() - start:.0f} s")
    return 0


def drawn(seed: int, counts: Counter[str]) -> Quorums:
    """Draw a plan with at least three steps an epoch, and the groups that read it."""
    random = Random(seed)  # noqa: S311 (which is repeatable)
    inner, sync, spares = random.choice([1, 1, 2, 3]), random.random() < 0.5, seed % 4 == 0
    size = random.randint(2 * MOST_GROUPS * inner, 60)
    order = ip.Shuffle(random.randint(3 * size, 500), seed=seed)
    remainder = random.choice(["spread", "spread", "drop", "pad", "carry"])
    plan = ip.Plan(order, global_batch_size=size, remainder=remainder)  # type: ignore[arg-type]
    return Quorums(plan, random, inner, sync, spares, counts)


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
