"""Write strata_v1.json and packed_v1.json: `python -m tests.golden.make_golden_strata`.

The only script that writes them. The answers come from the oracle in tests/support, the design's
words in plain Python, and not from the library; fingerprints alone are the library's. Other answers
are another algorithm, with another name: do not write these files again for less.
"""

from __future__ import annotations

import json
import zlib
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

import indexplan as ip
from tests.support.lengths import epoch_of

KINDS = {
    "length-grouped-v1": ip.LengthGrouped,
    "token-budget-v1": ip.TokenBudget,
    "grouped-v1": ip.Grouped,
    "packed-v1": ip.Packed,
}
Cases = list[tuple[str, dict[str, int], dict[str, Any], list[int]]]
LAST = 2**32 - 1

# the numbers are (i * factor % modulus + plus) ** power for i in range(n)
STRATA: Cases = [
    ("length-grouped-v1", {"n": 1}, {"batch_size": 8}, [0, LAST]),
    ("length-grouped-v1", {"n": 50, "factor": 37, "modulus": 41}, {"batch_size": 4}, [0, 1]),
    (
        "length-grouped-v1",
        {"n": 3000, "factor": 7919, "modulus": 997, "power": 4},
        {"batch_size": 8, "num_buckets": 16, "seed": 42},
        [0, LAST],
    ),
    (
        "length-grouped-v1",
        {"n": 10000, "factor": 3, "modulus": 7},
        {"batch_size": 32, "num_buckets": 2, "seed": 2**128 - 1},
        [3],
    ),
    ("token-budget-v1", {"n": 50, "factor": 37, "modulus": 41}, {"max_tokens": 100}, [0, 1]),
    (
        "token-budget-v1",
        {"n": 3000, "factor": 7919, "modulus": 997, "power": 2},
        {"max_tokens": 10**6, "max_samples": 60, "multiple_of": 8, "num_buckets": 20, "seed": 7},
        [0, LAST],
    ),
    ("grouped-v1", {"n": 40, "factor": 3, "modulus": 5, "plus": 0}, {"batch_size": 3}, [0, 1]),
    (
        "grouped-v1",
        {"n": 6000, "factor": 1, "modulus": 3, "plus": 0, "power": 9},
        {"batch_size": [[0, 5], [1, 12], [512, 7]], "seed": 5},
        [0, LAST],
    ),
]

PACKED: Cases = [
    ("packed-v1", {"n": 1}, {"max_length": 1}, [0, LAST]),
    ("packed-v1", {"n": 50, "factor": 37, "modulus": 41}, {"max_length": 50}, [0, 1]),
    (
        "packed-v1",  # some 26 samples a bin, of squares
        {"n": 900, "factor": 7919, "modulus": 97, "power": 2},
        {"max_length": 10**5, "seed": 42},
        [0, LAST],
    ),
    (
        "packed-v1",  # three samples a bin: best fit only
        {"n": 900, "factor": 577, "modulus": 1501, "plus": 250},
        {"max_length": 3000, "seed": 1},
        [5],
    ),
    (
        "packed-v1",  # two samples a bin
        {"n": 700, "factor": 31, "modulus": 101, "plus": 30},
        {"max_length": 160, "seed": 2**128 - 1},
        [3],
    ),
    (
        "packed-v1",
        {"n": 900, "factor": 577, "modulus": 499, "power": 3},
        {"max_length": 3 * 10**8, "max_samples": 7, "min_stratum": 12, "seed": 7},
        [0, LAST],
    ),
]


def write(name: str, given_cases: Cases, oracle: str) -> None:
    """Write a file of known answers."""
    cases = []
    for algorithm, given, fields, epochs in given_cases:
        form = {"factor": 1, "modulus": 10, "plus": 1, "power": 1, **given}
        n, factor, modulus = form["n"], form["factor"], form["modulus"]
        numbers = [(i * factor % modulus + form["plus"]) ** form["power"] for i in range(n)]
        kind: Any = KINDS[algorithm]
        order = kind(numbers, **fields)
        case = {"algorithm": algorithm, "numbers": form, "fields": fields}
        case["fingerprint"] = order.fingerprint[:16]
        case["epochs"] = []
        for epoch in epochs:
            row = epoch_of(order, epoch)
            samples = np.array([sample for unit in row for sample in unit], "<i8")
            offsets = np.array([0, *accumulate(map(len, row))], "<i8")
            positions = sorted({0, len(row) // 2, len(row) - 1})
            case["epochs"].append(
                {
                    "epoch": epoch,
                    "num_bins": len(row),
                    "positions": positions,
                    "bins": [row[position] for position in positions],
                    "crc32_of_samples": zlib.crc32(samples.tobytes()),
                    "crc32_of_offsets": zlib.crc32(offsets.tobytes()),
                }
            )
        cases.append(case)
    lines = ",\n".join(json.dumps(case) for case in cases)
    origin = f"the oracle of tests/support/{oracle}; fingerprints are the library's"
    text = f'{{"origin": "{origin}", "cases": [\n{lines}\n]}}\n'
    Path(__file__).with_name(name).write_text(text)


def main() -> None:
    """Write the files."""
    write("strata_v1.json", STRATA, "strata_oracle.py")
    write("packed_v1.json", PACKED, "packed_oracle.py")


if __name__ == "__main__":
    main()
