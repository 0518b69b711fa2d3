"""Bins by length and by group: the oracle, the laws of their contents, bounds, known answers."""

from __future__ import annotations

import json
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.orders.strata import _edges, _sorted
from tests.orders.test_protocol import units
from tests.support import strata_oracle
from tests.support.lengths import (
    binned,
    epoch_of,
    length_grouped,
    strata_of,
    token_budgets,
)

FOLDER = Path(__file__).parents[1] / "golden"
KNOWN = [
    case
    for name in ("strata_v1.json", "packed_v1.json")
    for case in json.loads((FOLDER / name).read_text())["cases"]
]
KINDS: dict[str, Any] = {
    "length-grouped-v1": ip.LengthGrouped,
    "token-budget-v1": ip.TokenBudget,
    "grouped-v1": ip.Grouped,
    "packed-v1": ip.Packed,
}
EPOCHS = st.sampled_from([0, 1, 2, 7, 2**31, 2**32 - 1])


@given(binned(), EPOCHS)
def test_bins_are_the_oracles(order: Any, epoch: int) -> None:
    """Every bin of an epoch is the oracle's, taken whole, in cuts and one by one."""
    row = epoch_of(order, epoch)
    assert row == units(order, epoch)
    num = len(row)
    assert num == order.num_units(epoch)
    ends = sorted({0, num, num // 3, num // 2})
    flat = [sample for unit in row for sample in unit]
    assert flat == order.take(epoch, ends[:-1], ends[1:]).tolist()
    backwards = list(range(num))[::-1]
    assert [s for at in backwards for s in row[at]] == order.take(epoch, backwards).tolist()


@given(
    st.lists(st.tuples(st.integers(1, 60) | st.integers(1, 2**40), st.integers(1, 40)), min_size=1),
    st.integers(1, 12),
)
def test_edges_are_the_oracles(counts: list[tuple[int, int]], num_buckets: int) -> None:
    """Buckets should end where the design says, of lengths that many samples have."""
    row = [length for length, count in counts for _ in range(count)]
    _, keys, places = _sorted(max(row) - np.array(row), max(row) - min(row))
    assert strata_oracle.edges(row, num_buckets) == _edges(keys, places, num_buckets)


@pytest.mark.parametrize("kind", ["lengths", "budget", "groups", "packed"])
def test_other_seeds_and_epochs_mix_anew(kind: str) -> None:
    """L9: few pairs of samples share a bin again, and few bins are dealt where they were."""
    row = [1 + i % 5 for i in range(400)]

    def order(seed: int) -> ip.Order:
        if kind == "lengths":
            return ip.LengthGrouped(row, 4, num_buckets=5, seed=seed)
        if kind == "budget":
            return ip.TokenBudget(row, 20, num_buckets=5, seed=seed)
        if kind == "packed":
            return ip.Packed(row, 12, seed=seed)
        return ip.Grouped(row, 4, seed=seed)

    def pairs(bins: list[list[int]]) -> set[tuple[int, int]]:
        return {(a, b) for unit in bins for a in unit for b in unit if a < b}

    first = units(order(1), 0)
    for other in (units(order(1), 1), units(order(2), 0)):
        both = len(pairs(first) & pairs(other)) / len(pairs(first))
        assert both < 0.2
        kept = [set(one) & set(two) for one, two in zip(first, other, strict=False)]
        assert sum(map(bool, kept)) < len(kept) / 2
        held = [[row[sample] for sample in unit] for unit in first]
        # bins, and not only their samples, are shuffled
        assert held != [[row[sample] for sample in unit] for unit in other]


@given(st.one_of(length_grouped(), token_budgets()), EPOCHS)
def test_buckets_are_intervals_of_the_sorted_row(order: Any, epoch: int) -> None:
    """Samples of bins that share a bucket lie between the next buckets' in length."""
    row = order.lengths.array.tolist()
    strata = [samples for samples, _ in strata_of(order)]
    of = {sample: c for c, samples in enumerate(strata) for sample in samples}
    for unit in units(order, epoch):
        assert 1 == len({of[sample] for sample in unit})
    for longer, shorter in pairwise(strata):
        assert min(row[sample] for sample in longer) >= max(row[sample] for sample in shorter)
    assert len(strata) <= order.num_buckets


def padding(order: Any) -> float:
    """Return how much of a padded epoch is padding."""
    row, bins = order.lengths.array, units(order, 0)
    return 1 - row.sum() / sum(int(row[unit].max()) * len(unit) for unit in bins)


def test_padding_is_little_and_the_same_in_any_unit() -> None:
    """Lengths in tokens and in millionths of them give like bins, better than equal counts do."""
    rng = np.random.default_rng(0)
    row = rng.lognormal(5, 1, 8000).astype(np.int64) + 1
    tokens = padding(ip.LengthGrouped(row, 8, num_buckets=16))
    finer = row * 10**6 + rng.integers(10**6, size=8000)  # nearly all of them different
    millionths = padding(ip.LengthGrouped(finer, 8, num_buckets=16))
    counts = padding(Even(row, 8, num_buckets=16))
    assert abs(tokens - millionths) < 0.01
    assert 1.5 * tokens < counts


class Even(ip.LengthGrouped):
    """Buckets of equal counts, to compare with."""

    algorithm = "test-even-v1"

    def _cut(self, keys: Any, places: Any) -> tuple[list[int], list[int]]:
        each = self.num_samples // self.num_buckets
        return list(range(0, self.num_samples + 1, each)), [self.batch_size] * self.num_buckets


def order_of(case: dict[str, Any]) -> ip.Order:
    """Return the order of a known answer."""
    made: ip.Order = KINDS[case["algorithm"]](numbers_of(case["numbers"]), **case["fields"])
    return made


def numbers_of(form: dict[str, int]) -> list[int]:
    """Return the numbers of a known answer: i * factor % modulus + 1, to a power."""
    row = [(i * form["factor"] % form["modulus"] + form["plus"]) for i in range(form["n"])]
    return [number ** form["power"] for number in row]


@pytest.mark.parametrize("case", KNOWN, ids=lambda case: case["algorithm"])
def test_known_answers(case: dict[str, Any]) -> None:
    """Bits that never change."""
    order: Any = order_of(case)
    for known in case["epochs"]:
        epoch, num = known["epoch"], known["num_bins"]
        assert num == order.num_units(epoch)
        for position, samples in zip(known["positions"], known["bins"], strict=True):
            assert samples == order.take(epoch, position).tolist()
            assert [position] * len(samples) == order.locate(epoch, samples).tolist()
        row = order.take(epoch, 0, num).astype("<i8")
        ends = order.offsets(epoch, 0, num).astype("<i8")
        assert known["crc32_of_samples"] == zlib.crc32(row.tobytes())
        assert known["crc32_of_offsets"] == zlib.crc32(ends.tobytes())
    assert case["fingerprint"] == order.fingerprint[:16]
