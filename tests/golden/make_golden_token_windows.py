"""Write token_windows_v1.json: `python -m tests.golden.make_golden_token_windows`.

The only script that writes it. The answers come from the oracle in tests/support, the design's
words in plain Python, and not from the library. Other answers are another algorithm, with another
name: do not write this file again for less.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np

from tests.support.windows_oracle import Windows

CASES = [  # and the epoch
    (Windows(1, 1, 0), 0),
    (Windows(2, 1), 1),
    (Windows(30, 20), 3),  # one window, which moves
    (Windows(61, 20), 3),
    (Windows(100, 7, 3, False, 5), 2),
    (Windows(1000, 1, 0, True, 2**128 - 1), 2**32 - 1),
    (Windows(5000, 16, 64), 7),
    (Windows(301_966, 100, seed=42), 0),
    (Windows(15 * 10**12, 4096, seed=9), 1),
    (Windows(2**63 - 1, 1, 0), 0),
    (Windows(2**63 - 1, 2**40 + 1, 2**50, True, 3), 5),
    (Windows(2**63 - 1, 2**62, 1, True, 3), 5),
]


def main() -> None:
    """Write the file."""
    cases = []
    for windows, epoch in CASES:
        num = windows.num
        positions = sorted({p for p in (0, 1, 2, num // 3, num - 2, num - 1) if 0 <= p < num})
        case = {
            **windows._asdict(),
            "epoch": epoch,
            "num_units": num,
            "phase": windows.phase(epoch),
            "positions": positions,
            "starts": [windows.start(epoch, position) for position in positions],
        }
        if num <= 10**4:
            row = np.array([windows.start(epoch, position) for position in range(num)], "<i8")
            case["crc32_of_all_as_little_endian_int64"] = zlib.crc32(row.tobytes())
        cases.append(case)
    lines = ",\n".join(json.dumps(case) for case in cases)
    text = f'{{"algorithm": "token-windows-v1", "cases": [\n{lines}\n]}}\n'
    Path(__file__).with_name("token_windows_v1.json").write_text(text)


if __name__ == "__main__":
    main()
