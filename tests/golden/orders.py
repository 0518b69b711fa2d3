"""Known answers of orders, from the oracles in tests/support: the design's words in plain Python.

Nothing comes from the library but the fingerprints of bins. Other answers are another algorithm,
with another name.
"""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import accumulate
from typing import Any

import indexplan as ip
from tests.golden.lines import FOLDER, crc32, lines
from tests.support import distinct_oracle, mixing, oracles
from tests.support import left_out_oracle as left_out
from tests.support.documents_oracle import Documents
from tests.support.lengths import epoch_of
from tests.support.windows_oracle import Windows

LAST = 2**32 - 1

LOCAL = [  # n, window, seed, epoch
    (1, 1, 0, 0),
    (10, 1, 3, 1),
    (10, 4, 0, 0),
    (10, 4, 42, 7),
    (11, 100, 2**128 - 1, 1),
    (3001, 600, 5, LAST),
    (9000, 4096, 1, 0),
    (10**12, 2**20, 9, 3),
    (2**63 - 1, 3, 9, 3),
    (2**63 - 1, 2**63 - 1, 9, 3),
]

DISTINCT: list[tuple[list[int], int, int, int]] = [  # labels, batch_size, seed, epoch
    ([5], 1, 0, 0),
    (list(range(12)), 5, 1, 0),
    ([7, 1, 7, 3, 1, 7, 4, 5, 6], 3, 1, 0),
    ([i * i % 31 for i in range(90)], 14, 2**128 - 1, LAST),
    ([-(2**63), 2**63 - 1, 0, 0, 2**40, 1], 3, 42, 3),
    ([i // 3 for i in range(60)], 20, 9, 1),
    ([100 * (i // 40) + i // (1 + i // 40) for i in range(120)], 30, 5, 8),
]

WINDOWS = [  # and the epoch
    (Windows(1, 1, 0), 0),
    (Windows(2, 1), 1),
    (Windows(30, 20), 3),  # one window, which moves
    (Windows(61, 20), 3),
    (Windows(100, 7, 3, False, 5), 2),
    (Windows(1000, 1, 0, True, 2**128 - 1), LAST),
    (Windows(5000, 16, 64), 7),
    (Windows(301_966, 100, seed=42), 0),
    (Windows(15 * 10**12, 4096, seed=9), 1),
    (Windows(2**63 - 1, 1, 0), 0),
    (Windows(2**63 - 1, 2**40 + 1, 2**50, True, 3), 5),
    (Windows(2**63 - 1, 2**62, 1, True, 3), 5),
]

DOCUMENTS = {  # with the epoch
    "one token": (Documents((1,), 1, 0), 0),
    "one window of all": (Documents((3, 1, 4, 1, 5), 13), 1),
    "single tokens": (Documents((1,) * 50, 7, 2, 8, 2**128 - 1), LAST),
    "a giant": (Documents((1, 2, 500, 3, 1, 1), 16, 1, 2, 5), 2),
    "a partial last block": (Documents(tuple(range(1, 42)), 30, 1, 8, 7), 3),
    "blocks of one": (Documents(tuple(range(40, 0, -1)), 25, 0, 1, 7), 3),
    "one block": (Documents(tuple(i * i % 90 + 1 for i in range(200)), 64, 1, 1024, 42), 0),
    "much overlap": (Documents((20, 30, 1, 9, 50), 3, 100, 2, 1), 9),
    "two of the default blocks": (Documents(tuple(i % 13 + 1 for i in range(1100)), 128), 1),
    "past 2**32": (Documents((2**40, 1, 1, 2**33, 5) * 9, 2**38, 1, 4, 5), 6),
    "many blocks": (Documents((1, 2, 3, 4, 5, 6, 7) * 600, 32, 1, 1, 3), 0),
}

KINDS = {
    "length-grouped-v1": ip.LengthGrouped,
    "token-budget-v1": ip.TokenBudget,
    "grouped-v1": ip.Grouped,
    "packed-v1": ip.Packed,
}
Cases = list[tuple[str, dict[str, int], dict[str, Any], list[int]]]
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


WITHOUT: list[tuple[int, int, left_out.Groups, list[int]]] = [  # n, seed, groups, epochs
    (10, 3, [(0, 4, [8, 3, 7])], [0, 1]),
    (100, 0, [(0, 0, [99])], [0, LAST]),
    (3001, 5, [(2, 1000, list(range(0, 3001, 3)))], [1, 2, 3]),
    (3001, 5, [(2, 1000, [0, 5, 9]), (2, 2500, [1, 7]), (4, 0, [2, 3000])], [2, 3, 4]),
    (500, 2**128 - 1, [(LAST, 499, list(range(250)))], [LAST - 1, LAST]),
]

Grown = tuple[str, list[tuple[int, int]], list[tuple[int, list[int]]], int, int, list[int]]
GROWN: list[Grown] = [  # sources as (n, seed); phases, each with the sources of its time
    ("one joins", [(100, 0), (50, 1), (30, 2)], [(0, [1, 1]), (70, [2, 1, 1])], 150, 0, [0, 1]),
    ("at the end of an epoch", [(40, 3), (30, 4)], [(0, [1]), (80, [1, 3])], 40, 7, [1, 2, 3]),
    (
        "one after the other",
        [(700, 1), (90, 2), (300, 3), (11, 4)],
        [(0, [3, 1]), (500, [6, 2, 5]), (800, [0, 2, 5]), (1200, [7, 2, 0, 4])],
        790,
        2**128 - 1,
        [0, 1, 2, 50],
    ),
    (
        "after many phases",
        [(64, 1), (65, 1), (66, 1)],
        [*((100 * i, [i + 1, 10 - i]) for i in range(9)), (900, [2**14, 2**14, 2**14 + 1])],
        1000,
        5,
        [0, 1, 70],
    ),
]


def without() -> str:
    """Return the answers of without-v1."""
    cases = []
    for n, seed, groups, epochs in WITHOUT:
        for epoch in epochs:
            row = left_out.without(left_out.shuffled(n, seed, epoch), epoch, groups)
            case = {"n": n, "seed": seed, "groups": groups, "epoch": epoch}
            cases.append({**case, **_read(row)})
    return lines({"algorithm": "without-v1", "order": "shuffle-v1"}, "cases", cases)


def _read(row: list[int]) -> dict[str, Any]:
    """Return how many samples an epoch reads, the first and the last ones, and a sum of all."""
    ends = {"first": row[:8], "last": row[-8:]}
    return {"num_units": len(row), **ends, "crc32_of_all_as_little_endian_int64": crc32(row)}


def local_shuffle() -> str:
    """Return the answers of local-shuffle-v1."""
    cases = []
    for n, window, seed, epoch in LOCAL:
        positions = sorted({p for p in (0, 1, 2, 5, n // 3, n // 2, n - 2, n - 1) if 0 <= p < n})
        spec = (n, window, seed, epoch)
        case: dict[str, Any] = dict(zip(("n", "window", "seed", "epoch"), spec, strict=True))
        case["positions"] = positions
        case["indices"] = [oracles.local_shuffle_forward(*spec, p) for p in positions]
        if n <= 10**4:
            row = [oracles.local_shuffle_forward(*spec, p) for p in range(n)]
            case["crc32_of_all_as_little_endian_int64"] = crc32(row)
        cases.append(case)
    return lines({"algorithm": "local-shuffle-v1"}, "cases", cases)


def distinct() -> str:
    """Return the answers of distinct-v1."""
    cases = []
    for labels, batch_size, seed, epoch in DISTINCT:
        spec = (labels, batch_size, seed, epoch)
        case = dict(zip(("labels", "batch_size", "seed", "epoch"), spec, strict=True))
        cases.append({**case, "reads": distinct_oracle.read(*spec)})
    return lines({"algorithm": "distinct-v1"}, "cases", cases)


def token_windows() -> str:
    """Return the answers of token-windows-v1."""
    cases = []
    for windows, epoch in WINDOWS:
        num = windows.num
        positions = sorted({p for p in (0, 1, 2, num // 3, num - 2, num - 1) if 0 <= p < num})
        case: dict[str, Any] = {**windows._asdict(), "epoch": epoch, "num_units": num}
        case["phase"] = windows.phase(epoch)
        case["positions"] = positions
        case["starts"] = [windows.start(epoch, position) for position in positions]
        if num <= 10**4:
            row = [windows.start(epoch, position) for position in range(num)]
            case["crc32_of_all_as_little_endian_int64"] = crc32(row)
        cases.append(case)
    return lines({"algorithm": "token-windows-v1"}, "cases", cases)


def document_windows() -> str:
    """Return the answers of document-windows-v1."""
    cases = []
    for name, (fields, epoch) in DOCUMENTS.items():
        num = fields.num
        positions = sorted({p for p in (0, 1, 2, num // 3, num - 1) if 0 <= p < num})
        case: dict[str, Any] = {"name": name, **fields._asdict(), "epoch": epoch, "num_units": num}
        case["positions"] = positions
        case["units"] = [fields.far(epoch, position) for position in positions]
        if sum(fields.lengths) <= 10**4:
            pieces = [piece for unit in fields.units(epoch) for piece in unit]
            case["crc32_of_all_as_little_endian_int64"] = crc32(pieces)
        cases.append(case)
    return lines({"algorithm": "document-windows-v1"}, "cases", cases)


def strata() -> str:
    """Return the answers of the orders of strata."""
    return _of_bins(STRATA, "strata_oracle.py")


def packed() -> str:
    """Return the answers of packed-v1."""
    return _of_bins(PACKED, "packed_oracle.py")


def _of_bins(given_cases: Cases, oracle: str) -> str:
    cases = []
    for algorithm, given, fields, epochs in given_cases:
        form = {"factor": 1, "modulus": 10, "plus": 1, "power": 1, **given}
        n, factor, modulus = form["n"], form["factor"], form["modulus"]
        numbers = [(i * factor % modulus + form["plus"]) ** form["power"] for i in range(n)]
        kind: Any = KINDS[algorithm]
        order = kind(numbers, **fields)
        case: dict[str, Any] = {"algorithm": algorithm, "numbers": form, "fields": fields}
        case["fingerprint"] = order.fingerprint[:16]
        case["epochs"] = [_of_an_epoch(epoch, epoch_of(order, epoch)) for epoch in epochs]
        cases.append(case)
    origin = f"the oracle of tests/support/{oracle}; fingerprints are the library's"
    return lines({"origin": origin}, "cases", cases)


def _of_an_epoch(epoch: int, row: list[list[int]]) -> dict[str, Any]:
    positions = sorted({0, len(row) // 2, len(row) - 1})
    return {
        "epoch": epoch,
        "num_bins": len(row),
        "positions": positions,
        "bins": [row[position] for position in positions],
        "crc32_of_samples": crc32([sample for unit in row for sample in unit]),
        "crc32_of_offsets": crc32([0, *accumulate(map(len, row))]),
    }


def mixture() -> str:
    """Return the answers of mixture-v1 to the weights, places and units of its file."""
    known = json.loads((FOLDER / "mixture_v1.json").read_text())
    known["cases"] = [_mixed(case) for case in known["cases"]]
    return json.dumps(known, separators=(",", ":"))


def _mixed(case: dict[str, Any]) -> dict[str, Any]:
    """Return a case of phases of weights, with its answers."""
    phases = [(place, mixing.shares_of(weights)) for place, weights in case["weights"]]
    key = mixing.key_of(case["seed"])
    units = [mixing.unit(phases, key, place) for place in case["places"]]
    within = [mixing.phase_of(each, key, i).within for i, (_, each) in enumerate(phases)]
    return {
        **case,
        "shares": phases,
        "key": key,
        "sources": [source for source, _ in units],
        "numbers": [number for _, number in units],
        "counts": mixing.counts(phases, key, case["count_at"]),
        "find": [[j, n, mixing.place_of(phases, key, j, n)] for j, n, _ in case["find"]],
        "within": [str(Fraction(each, 2**32)) for each in within],
    }


def grown() -> str:
    """Return the answers of mixtures that sources joined during the run."""
    cases = []
    for name, sources, phases, epoch_size, seed, epochs in GROWN:
        for epoch in epochs:
            row = mixing.shuffles_of(sources, phases, epoch_size, seed, epoch)
            case = {"name": name, "sources": sources, "phases": phases, "epoch_size": epoch_size}
            cases.append({**case, "seed": str(seed), "epoch": epoch, **_read(row)})
    return lines({"algorithm": "mixture-v1", "sources": "shuffle-v1"}, "cases", cases)
