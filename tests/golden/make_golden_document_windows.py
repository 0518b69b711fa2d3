"""Write document_windows_v1.json: `python -m tests.golden.make_golden_document_windows`.

The only script that writes it. The answers come from the oracle in tests/support, the design's
words in plain Python, and not from the library. Other answers are another algorithm, with another
name: do not write this file again for less.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np

from tests.support.documents_oracle import Documents

CASES = {  # with the epoch
    "one token": (Documents((1,), 1, 0), 0),
    "one window of all": (Documents((3, 1, 4, 1, 5), 13), 1),
    "single tokens": (Documents((1,) * 50, 7, 2, 8, 2**128 - 1), 2**32 - 1),
    "a giant": (Documents((1, 2, 500, 3, 1, 1), 16, 1, 2, 5), 2),
    "a partial last block": (Documents(tuple(range(1, 42)), 30, 1, 8, 7), 3),
    "blocks of one": (Documents(tuple(range(40, 0, -1)), 25, 0, 1, 7), 3),
    "one block": (Documents(tuple(i * i % 90 + 1 for i in range(200)), 64, 1, 1024, 42), 0),
    "much overlap": (Documents((20, 30, 1, 9, 50), 3, 100, 2, 1), 9),
    "two of the default blocks": (Documents(tuple(i % 13 + 1 for i in range(1100)), 128), 1),
    "past 2**32": (Documents((2**40, 1, 1, 2**33, 5) * 9, 2**38, 1, 4, 5), 6),
    "many blocks": (Documents((1, 2, 3, 4, 5, 6, 7) * 600, 32, 1, 1, 3), 0),
}


def main() -> None:
    """Write the file."""
    cases = []
    for name, (fields, epoch) in CASES.items():
        num = fields.num
        positions = sorted({p for p in (0, 1, 2, num // 3, num - 1) if 0 <= p < num})
        case = {
            "name": name,
            **fields._asdict(),
            "epoch": epoch,
            "num_units": num,
            "positions": positions,
            "units": [fields.far(epoch, position) for position in positions],
        }
        if sum(fields.lengths) <= 10**4:
            pieces = [piece for unit in fields.units(epoch) for piece in unit]
            row = np.array(pieces, "<i8")
            case["crc32_of_all_as_little_endian_int64"] = zlib.crc32(row.tobytes())
        cases.append(case)
    lines = ",\n".join(json.dumps(case) for case in cases)
    text = f'{{"algorithm": "document-windows-v1", "cases": [\n{lines}\n]}}\n'
    Path(__file__).with_name("document_windows_v1.json").write_text(text)


if __name__ == "__main__":
    main()
