"""Known answers of orders: what each case of a file says that its order reads.

Files are answered by the oracles, tests/support/plain.py: the design's words in plain Python. The
cases stand in the files. Of the library, only fields and fingerprints are taken. Other answers are
another algorithm, with another name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

import indexplan as ip
from tests.golden.lines import CRC, crc32, numbers
from tests.support import plain
from tests.support.units import units_of

KINDS = {
    "length-grouped-v1": ip.LengthGrouped,
    "token-budget-v1": ip.TokenBudget,
    "grouped-v1": ip.Grouped,
    "packed-v1": ip.Packed,
}
Case = dict[str, Any]


class Reads(NamedTuple):
    """What is said of an order and an epoch: by the oracles, or by the library."""

    units: Callable[..., list[list[Any]]]  # all, or those at some positions
    num_units: Callable[[Any, int], int]
    phase: Callable[[Any, int], int]  # the token at which the first window starts


PLAIN = Reads(
    plain.units,
    lambda order, epoch: plain.of(order, epoch)[0],
    lambda order, epoch: plain.windows_of(order).phase(epoch),
)
OURS = Reads(
    units_of,
    lambda order, epoch: order.num_units(epoch),
    lambda order, epoch: order.targets(epoch).start - order.overlap,
)


def _of(case: Case, *names: str) -> Case:
    return {name: case[name] for name in names}


def _summed(case: Case, order: ip.Order, reads: Reads) -> Case:
    return {CRC: crc32(sum(reads.units(order, case["epoch"]), []))} if CRC in case else {}


def local_shuffle(case: Case, reads: Reads) -> Case:
    """Return the answers of local-shuffle-v1."""
    order = ip.LocalShuffle(case["n"], case["window"], case["seed"])
    found = sum(reads.units(order, case["epoch"], case["positions"]), [])
    return {"indices": found, **_summed(case, order, reads)}


def distinct(case: Case, reads: Reads) -> Case:
    """Return the answers of distinct-v1."""
    order = ip.Distinct(**_of(case, "labels", "batch_size", "seed"))
    return {"reads": sum(reads.units(order, case["epoch"]), [])}


def token_windows(case: Case, reads: Reads) -> Case:
    """Return the answers of token-windows-v1."""
    order = ip.TokenWindows(**_of(case, "num_tokens", "length", "overlap", "shift", "seed"))
    starts = sum(reads.units(order, case["epoch"], case["positions"]), [])
    num, phase = (ask(order, case["epoch"]) for ask in (reads.num_units, reads.phase))
    return {"num_units": num, "phase": phase, "starts": starts, **_summed(case, order, reads)}


def document_windows(case: Case, reads: Reads) -> Case:
    """Return the answers of document-windows-v1."""
    order = ip.DocumentWindows(**_of(case, "lengths", "length", "overlap", "block_size", "seed"))
    units = reads.units(order, case["epoch"], case["positions"])
    num = reads.num_units(order, case["epoch"])
    return {"num_units": num, "units": units, **_summed(case, order, reads)}


def shard_shuffle(case: Case, reads: Reads) -> Case:
    """Return the answers of shard-shuffle-v1."""
    names = "sizes", "seed", "lanes", "stripe", "window", "sticky", "grid"
    row = sum(reads.units(ip.ShardShuffle(**_of(case, *names)), case["epoch"]), [])
    return {"first": row[:40], "sha256": hashlib.sha256(np.array(row, "<i8").tobytes()).hexdigest()}


def bins(case: Case, reads: Reads) -> Case:
    """Return the answers of the orders of strata, and of packed-v1."""
    kind: Any = KINDS[case["algorithm"]]
    order = kind(numbers(case["numbers"]), **case["fields"])
    epochs = [
        {**each, **_of_an_epoch(each, reads.units(order, each["epoch"]))} for each in case["epochs"]
    ]
    return {"fingerprint": order.fingerprint[:16], "epochs": epochs}


def _of_an_epoch(case: Case, row: list[list[int]]) -> Case:
    return {
        "num_bins": len(row),
        "bins": [row[position] for position in case["positions"]],
        "crc32_of_samples": crc32([sample for unit in row for sample in unit]),
        "crc32_of_offsets": crc32([0, *accumulate(map(len, row))]),
    }


def without(case: Case, reads: Reads) -> Case:
    """Return the answers of without-v1."""
    order: ip.Order = ip.Shuffle(case["n"], case["seed"])
    for epoch, position, samples in case["groups"]:
        cursor = {"epoch": epoch, "position": position, "order": order.to_dict()}
        since = ip.Cursor.from_dict({**cursor, "sub_epoch": 0, "step": 0, "sub_epochs": 1})
        order = ip.Without(order, samples, since=since)
    return _read(sum(reads.units(order, case["epoch"]), []))


def _read(row: list[int]) -> Case:
    """Return how many samples an epoch reads, the first and the last ones, and a sum of all."""
    return {"num_units": len(row), "first": row[:8], "last": row[-8:], CRC: crc32(row)}


def grown(case: Case, reads: Reads) -> Case:
    """Return the answers of mixtures that sources joined during the run."""
    sources = {str(i): ip.Shuffle(n, seed=seed) for i, (n, seed) in enumerate(case["sources"])}
    order: Any = None
    for place, shares in case["phases"]:
        weights = dict(zip(sources, shares, strict=False))
        if order is None:
            size, first = case["epoch_size"], {name: sources[name] for name in weights}
            order = ip.Mixture(first, weights, epoch_size=size, seed=int(case["seed"]))
            continue
        new = {name: sources[name] for name in weights if name not in order.names}
        order = order.with_phase(place, weights, sources=new or None)
    return _read(sum(reads.units(order, case["epoch"]), []))


ANSWERS: dict[str, Callable[[Case, Reads], Case]] = {  # to a case of each file
    "distinct_v1": distinct,
    "document_windows_v1": document_windows,
    "local_shuffle_v1": local_shuffle,
    "mixture_grown": grown,
    "packed_v1": bins,
    "shard_shuffle_v1": shard_shuffle,
    "strata_v1": bins,
    "token_windows_v1": token_windows,
    "without_v1": without,
}
