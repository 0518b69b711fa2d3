"""1,000 known answers of shuffle-v1, for every language in which it is written.

From the oracles in tests/support, as all known answers. A number from 2**53 on is a decimal string,
as a number of JavaScript would round it.
"""

from __future__ import annotations

import hashlib
from itertools import islice, product
from typing import Any

from tests.golden.lines import lines
from tests.support import oracles

NUM_CASES = 1000
NUM_INDICES = 8
SIZES = [
    *(*range(1, 18), 35, 63, 64, 65, 100, 4095, 4096, 4097, 65536, 65537),
    *(2**20 - 1, 2**20, 2**20 + 1, 10**9, 2**31 - 1, 2**31, 2**31 + 1),
    *(2**32 - 1, 2**32, 2**32 + 1, 10**12, 2**53 - 1, 2**53, 2**53 + 1),
    *(2**61 + 1, 2**62 - 1, 2**62, 2**62 + 1, 2**63 - 2, 2**63 - 1),
]
SEEDS = [0, 1, 2**32, 2**64 - 1, 2**128 - 1]
EPOCHS = [0, 1, 2**32 - 1]
NOTE = (
    "a case is [n, seed, epoch, start, the indices at the positions from start on]: 8 of them, or "
    "all where n is smaller; numbers from 2**53 on are decimal strings"
)


def shuffle_v1() -> str:
    """Return the cases: awkward sizes with awkward seeds and epochs, and then drawn ones."""
    rows = [
        (n, SEEDS[(at + i) % len(SEEDS)], EPOCHS[i], _start(n, at, i))
        for (at, n), i in product(enumerate(SIZES), range(len(EPOCHS)))
    ]
    rows += [_drawn(i) for i in range(NUM_CASES - len(rows))]
    head = {"algorithm": "shuffle-v1", "note": NOTE}
    return lines(head, "cases", [[*map(_exact, row), _indices(*row)] for row in rows])


def _start(n: int, at: int, i: int) -> int:
    """Return where a row of an awkward size starts: at the start, the end, or in the middle."""
    last = max(n - NUM_INDICES, 0)
    return (0, last, last // 2)[(at + i) % 3]


def _drawn(i: int) -> tuple[int, int, int, int]:
    """Return row i of the drawn ones, from a hash, as generators may change."""
    text = hashlib.shake_256(f"shuffle-v1 case {i}".encode()).digest(64)
    bits, *numbers = (int.from_bytes(text[k : k + 16], "little") for k in range(0, 64, 16))
    n = 2 ** (bits % 63) + numbers[0] % 2 ** (bits % 63)
    seed = numbers[1] >> (0, 64, 96, 126)[i % 4]
    return n, seed, numbers[2] % 2**32, (numbers[2] >> 32) % max(n - NUM_INDICES + 1, 1)


def _indices(n: int, seed: int, epoch: int, start: int) -> list[int | str]:
    positions = islice(range(start, n), NUM_INDICES)
    words = oracles.key_words(seed, oracles.SHUFFLE, epoch, 2 * oracles.rounds_of(n), n)
    return [_exact(oracles.forward(n, words, position)) for position in positions]


def _exact(number: int) -> Any:
    return str(number) if number >= 2**53 else number
