"""Long histories of ledgers: as many as you like.

    python -m tests.ledger [--first 0] [--runs 1000] [--mutations 10000] [--segments 0] [--kills 0]

A run is named by its number. It ends with the first one whose ledger answers otherwise than a list
of all batches, or the first change of a file that nobody sees. Segments are those of longer runs,
whose numbers are held against a walk that reads nothing. Kills are of a process that keeps a
ledger, at any instant.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.ledger import kills
from tests.ledger.changing import a_ledger, is_seen, mutated
from tests.ledger.runs import live
from tests.ledger.segments import simulate


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--mutations", type=int, default=10_000)
    parser.add_argument("--segments", type=int, default=0)
    parser.add_argument("--kills", type=int, default=0)
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        for seed in range(given.first, given.first + given.runs):
            try:
                live(seed, 8, Path(folder))
            except BaseException:
                sys.stdout.write(f"run {seed}:\n")
                raise
        sys.stdout.write(f"{given.runs} ledgers answer as the lists do\n")
        ledger = a_ledger(Path(folder))
        whole, checkpoint = ledger.path.read_bytes(), ledger.hash
        drawn = random.Random(given.first)  # noqa: S311 (draws a test)
        changed = Path(folder) / "changed.ledger"
        for number in range(given.mutations):
            changed.write_bytes(mutated(drawn, whole))
            if not is_seen(changed, whole, checkpoint):
                sys.exit(f"change {number} is not seen: {changed.read_bytes()!r}")
        sys.stdout.write(f"{given.mutations} changes of a file are seen\n")
        written, count, runs = simulate(given.segments, given.first, Path(folder))
        said = f"{written} segments of {runs} runs are as the walk says, {count} count at the end"
        sys.stdout.write(f"{said}\n")
        if given.kills:
            steps, void = kills.run(Path(folder, "kills"), given.kills, given.first)
            said = f"{given.kills} kills: {steps} steps count, {void} are void"
            sys.stdout.write(f"{said}, each checkpoint fits\n")


if __name__ == "__main__":
    main()
