"""Live through histories of runs that take data out and in: as long as you like.

    python -m tests.left_out [--first 0] [--histories 20000] [--length 12]

A history is named by its number. It ends with the first one in which a plan reads something else
than lists of units say, or counts or finds it otherwise.
"""

from __future__ import annotations

import argparse
import sys

from tests.support.left_out import live


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--histories", type=int, default=20_000)
    parser.add_argument("--length", type=int, default=12)
    given = parser.parse_args()
    for seed in range(given.first, given.first + given.histories):
        try:
            live(seed, given.length)
        except BaseException:
            sys.stdout.write(f"history {seed} of length {given.length}:\n")
            raise
    sys.stdout.write(f"{given.histories} histories are as the lists say\n")


if __name__ == "__main__":
    main()
