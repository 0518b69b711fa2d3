"""Write mixture_v1.json: `python -m tests.golden.make_golden_mixture`.

The only script that writes it. The answers come from the oracle in tests/support, the design's
words in plain Python, and not from the library. Other answers are another algorithm, with another
name: do not write this file again for less.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.support import mixing

SPECS = [  # phases, units of the sources' epochs, epoch_size, seed
    ([(0, [1])], [3], 5, 0),
    ([(0, [7, 2, 1])], [50, 9, 4], 63, 1),
    ([(0, [333, 333, 334])], [10**6, 10**9, 7], 10**9, 2),
    ([(0, [11, 7, 5, 3, 2, 2])], [40, 40, 40, 9, 8, 1], 100, 3),
    ([(0, [3, 1]), (7, [1, 1]), (110, [0, 5])], [20, 30], 50, 4),
    ([(0, [2, 0, 3]), (10**9 + 1, [1, 1, 2]), (10**12, [9, 9, 1])], [10, 10**6, 99], 10**10, 2**99),
]


def main() -> None:
    """Write the file."""
    cases = []
    for phases, sizes, epoch_size, seed in SPECS:
        for epoch in (0, 3, 2**20):
            last = epoch_size - 1
            positions = sorted({p for p in (0, 1, 2, 4, epoch_size // 2, last) if p <= last})
            answers = []
            for position in positions:
                source, number = mixing.unit(phases, seed, epoch * epoch_size + position)
                answers.append([source, *divmod(number, sizes[source])])
            names = ("phases", "sizes", "epoch_size", "seed", "epoch", "positions", "answers")
            values = (phases, sizes, epoch_size, seed, epoch, positions, answers)
            cases.append(dict(zip(names, values, strict=True)))
    lines = ",\n".join(json.dumps(case) for case in cases)
    words = "answers are [source, epoch of the source, position there]"
    text = f'{{"algorithm": "mixture-v1", "words": "{words}", "cases": [\n{lines}\n]}}\n'
    Path(__file__).with_name("mixture_v1.json").write_text(text)


if __name__ == "__main__":
    main()
