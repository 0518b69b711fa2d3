"""Write local_shuffle_v1.json: `python -m tests.golden.make_golden_local_shuffle`.

The only script that writes it. The answers come from the oracle in tests/support, the design's
words in plain Python, and not from the library. Other answers are another algorithm, with another
name: do not write this file again for less.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np

from tests.support import oracles

SPECS = [  # n, window, seed, epoch
    (1, 1, 0, 0),
    (10, 1, 3, 1),
    (10, 4, 0, 0),
    (10, 4, 42, 7),
    (11, 100, 2**128 - 1, 1),
    (3001, 600, 5, 2**32 - 1),
    (9000, 4096, 1, 0),
    (10**12, 2**20, 9, 3),
    (2**63 - 1, 3, 9, 3),
    (2**63 - 1, 2**63 - 1, 9, 3),
]


def main() -> None:
    """Write the file."""
    cases = []
    for n, window, seed, epoch in SPECS:
        positions = sorted({p for p in (0, 1, 2, 5, n // 3, n // 2, n - 2, n - 1) if 0 <= p < n})
        spec = (n, window, seed, epoch)
        case = {
            **dict(zip(("n", "window", "seed", "epoch"), spec, strict=True)),
            "positions": positions,
            "indices": [oracles.local_shuffle_forward(*spec, p) for p in positions],
        }
        if n <= 10**4:
            row = [oracles.local_shuffle_forward(*spec, p) for p in range(n)]
            case["crc32_of_all_as_little_endian_int64"] = zlib.crc32(np.array(row, "<i8").tobytes())
        cases.append(case)
    lines = ",\n".join(json.dumps(case) for case in cases)
    text = f'{{"algorithm": "local-shuffle-v1", "cases": [\n{lines}\n]}}\n'
    Path(__file__).with_name("local_shuffle_v1.json").write_text(text)


if __name__ == "__main__":
    main()
