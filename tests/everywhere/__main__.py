"""Compare implementations of shuffle-v1.

    python -m tests.everywhere [c] [jax] [js] [--values NUM]

Each with all known answers, and with the package at drawn positions; a million by default.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.everywhere.drawn import Run, drawn
from tests.support.shuffle_cases import CASES

NAMES = ["c", "jax", "js"]


def main() -> None:
    """Print a line for each build and library, and fail if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("of", nargs="*", choices=NAMES, help="all by default")
    parser.add_argument("--values", type=int, default=10**6, metavar="NUM")
    given = parser.parse_args()
    names = given.of or NAMES
    found = [*(in_c(given.values) if "c" in names else [])]
    found += [on_jax(given.values)] if "jax" in names else []
    found += [in_js(given.values)] if "js" in names else []
    sys.exit(any(found))


def in_c(num_values: int) -> list[int]:
    """Compare each build of the C header."""
    from tests.everywhere import c

    known = [Run(n, seed, epoch, start, len(indices)) for n, seed, epoch, start, indices in CASES]
    runs = drawn(num_values)
    differ = []
    with tempfile.TemporaryDirectory() as folder:
        for name, command in zip(c.NAMES, c.BUILDS, strict=True):
            program = c.build(command, c.answers(command), Path(folder, "answers"))
            pairs = zip(c.indices(program, known), CASES, strict=True)
            other = sum(indices.tolist() != case.indices for indices, case in pairs)
            differ.append(report(name, other, len(known), c.differences(program, runs), num_values))
    return differ


def on_jax(num_values: int) -> int:
    """Compare what JAX computes."""
    from tests.everywhere import on_jax

    other = on_jax.known_differences(on_jax.KNOWN)
    differ = on_jax.differences(drawn(num_values, size_stop=2**31, most=10**5))
    return report("JAX", other, len(on_jax.KNOWN), differ, num_values)


def in_js(num_values: int) -> int:
    """Compare what JavaScript computes, where sizes are its whole numbers."""
    from tests.everywhere import in_js

    known = [case for case in CASES if case.n <= 2**53]
    runs = [Run(n, seed, epoch, start, len(to)) for n, seed, epoch, start, to in known]
    other, differ = in_js.differences(runs), in_js.differences(drawn(num_values, 2**53 + 1))
    return report("JavaScript", other, len(known), differ, num_values)


def report(name: str, other: int, num_known: int, differ: int, num_values: int) -> int:
    """Print what came of one, and return how much differs."""
    sys.stdout.write(
        f"{name}: {other} of {num_known} known answers and {differ} of {num_values} values differ\n"
    )
    return other + differ


if __name__ == "__main__":
    main()
