"""Known answers of orders, from the oracles in tests/support: the design's words in plain Python.

The cases stand in the files. Nothing comes from the library but the fingerprints of bins. Other
answers are another algorithm, with another name.
"""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import accumulate, islice
from typing import Any

import indexplan as ip
from tests.golden.lines import CRC, crc32, known, lines, numbers
from tests.support import class_oracles, mixing, oracles
from tests.support.lengths import epoch_of
from tests.support.windows_oracle import Documents, Windows

NUM_INDICES = 8  # of each of the 1,000 cases of shuffle-v1
KINDS = {
    "length-grouped-v1": ip.LengthGrouped,
    "token-budget-v1": ip.TokenBudget,
    "grouped-v1": ip.Grouped,
    "packed-v1": ip.Packed,
}
Case = dict[str, Any]


def shuffle_cases() -> str:
    """Return the answers to the 1,000 cases that every language is held to.

    A number from 2**53 on is a decimal string, as a number of JavaScript would round it.
    """
    head = known("shuffle_v1_cases")
    rows = [[*map(int, row[:4])] for row in head.pop("cases")]
    return lines(head, "cases", [[*map(_exact, row), _indices(*row)] for row in rows])


def _indices(n: int, seed: int, epoch: int, start: int) -> list[Any]:
    words = oracles.key_words(seed, oracles.SHUFFLE, epoch, 2 * oracles.rounds_of(n), n)
    positions = islice(range(start, n), NUM_INDICES)
    return [_exact(oracles.forward(n, words, position)) for position in positions]


def _exact(number: int) -> Any:
    return str(number) if number >= 2**53 else number


def local_shuffle(case: Case) -> Case:
    """Return the answers of local-shuffle-v1."""
    spec = [case[name] for name in ("n", "window", "seed", "epoch")]
    found: Case = {"indices": [oracles.local_shuffle_forward(*spec, p) for p in case["positions"]]}
    if CRC in case:
        found[CRC] = crc32([oracles.local_shuffle_forward(*spec, p) for p in range(case["n"])])
    return found


def distinct(case: Case) -> Case:
    """Return the answers of distinct-v1."""
    spec = [case[name] for name in ("labels", "batch_size", "seed", "epoch")]
    return {"reads": class_oracles.distinct(*spec)}


def token_windows(case: Case) -> Case:
    """Return the answers of token-windows-v1."""
    windows, epoch = Windows(*(case[name] for name in Windows._fields)), case["epoch"]
    found: Case = {"num_units": windows.num, "phase": windows.phase(epoch)}
    found["starts"] = [windows.start(epoch, position) for position in case["positions"]]
    if CRC in case:
        found[CRC] = crc32([windows.start(epoch, position) for position in range(windows.num)])
    return found


def document_windows(case: Case) -> Case:
    """Return the answers of document-windows-v1."""
    fields, epoch = Documents(*(case[name] for name in Documents._fields)), case["epoch"]
    found: Case = {"num_units": fields.num}
    found["units"] = [fields.far(epoch, position) for position in case["positions"]]
    if CRC in case:
        found[CRC] = crc32([piece for unit in fields.units(epoch) for piece in unit])
    return found


def bins(case: Case) -> Case:
    """Return the answers of the orders of strata, and of packed-v1."""
    kind: Any = KINDS[case["algorithm"]]
    order = kind(numbers(case["numbers"]), **case["fields"])
    epochs = [
        {**each, **_of_an_epoch(each, epoch_of(order, each["epoch"]))} for each in case["epochs"]
    ]
    return {"fingerprint": order.fingerprint[:16], "epochs": epochs}


def _of_an_epoch(case: Case, row: list[list[int]]) -> Case:
    return {
        "num_bins": len(row),
        "bins": [row[position] for position in case["positions"]],
        "crc32_of_samples": crc32([sample for unit in row for sample in unit]),
        "crc32_of_offsets": crc32([0, *accumulate(map(len, row))]),
    }


def without(case: Case) -> Case:
    """Return the answers of without-v1."""
    n, seed, epoch = case["n"], case["seed"], case["epoch"]
    row = [oracles.shuffle_forward(n, seed, epoch, position) for position in range(n)]
    for since, position, samples in case["groups"]:
        first = 0 if since < epoch else position if since == epoch else len(row)
        row = row[:first] + [each for each in row[first:] if each not in samples]
    return _read(row)


def _read(row: list[int]) -> Case:
    """Return how many samples an epoch reads, the first and the last ones, and a sum of all."""
    return {"num_units": len(row), "first": row[:8], "last": row[-8:], CRC: crc32(row)}


def grown(case: Case) -> Case:
    """Return the answers of mixtures that sources joined during the run."""
    spec = (case["sources"], case["phases"], case["epoch_size"], int(case["seed"]), case["epoch"])
    return _read(mixing.shuffles_of(*spec))


def mixture() -> str:
    """Return the answers of mixture-v1 to the weights, places and units of its file."""
    found = known("mixture_v1")
    found["cases"] = [{**case, **_mixed(case)} for case in found["cases"]]
    return json.dumps(found, separators=(",", ":"))


def _mixed(case: Case) -> Case:
    """Return the answers to phases of weights."""
    phases = [(place, mixing.shares_of(weights)) for place, weights in case["weights"]]
    key = mixing.key_of(case["seed"])
    units = [mixing.unit(phases, key, place) for place in case["places"]]
    within = [mixing.phase_of(each, key, i).within for i, (_, each) in enumerate(phases)]
    return {
        "shares": phases,
        "key": key,
        "sources": [source for source, _ in units],
        "numbers": [number for _, number in units],
        "counts": mixing.counts(phases, key, case["count_at"]),
        "find": [[j, n, mixing.place_of(phases, key, j, n)] for j, n, _ in case["find"]],
        "within": [str(Fraction(each, 2**32)) for each in within],
    }
