"""The row that a mixture repeats: earliest due first, and all the slots where it may begin."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexplan.orders.phases import pattern_of
from tests.support import mixing


def scheduled(shares: Sequence[int]) -> list[int]:
    """Return the sources of a period: at each slot the unit due first of those that may come."""
    num_slots = sum(shares)
    units = [(m * num_slots // s, j, m) for j, s in enumerate(shares) for m in range(s)]
    units.sort()
    soonest: list[tuple[int, int]] = []
    row: list[int] = []
    scale = 10**13  # due times differ by 1 / (share * share) or not at all
    come = 0
    for t in range(num_slots):
        while come < num_slots and units[come][0] <= t:
            _, j, m = units[come]
            heapq.heappush(soonest, ((m + 1) * scale // shares[j], j))
            come += 1
        row.append(heapq.heappop(soonest)[1])
    return row


def checked(shares: Sequence[int]) -> None:
    """Hold a row, and the slots of each source, against the schedule."""
    first, slots, row, _ = pattern_of(tuple(shares))
    expected = np.array(scheduled(shares))
    assert np.array_equal(expected, row)
    assert [0, *np.cumsum(shares)] == first.tolist()
    assert np.array_equal(np.argsort(expected, kind="stable"), slots)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12).filter(any))
def test_turns_are_all_even_rotations(shares: list[int]) -> None:
    """Each start that keeps every prefix within 1 is found, forwards and backwards, no other."""
    _, _, row, turns = pattern_of(tuple(shares))
    assert mixing.even(shares) == row.tolist()
    both = np.concatenate([row, row]), np.concatenate([row[::-1], row[::-1]])
    found = [both[t // len(row)][t % len(row) :][: len(row)].tolist() for t in turns.tolist()]
    expected = mixing.turns(tuple(shares))
    assert (expected[:1] if shares.count(0) == len(shares) - 1 else expected) == found


@given(st.integers(0, 2**32 - 1), st.integers(2, 60), st.floats(0.1, 6))
def test_rows_of_several_tiles(seed: int, k: int, skew: float) -> None:
    """Sorted a tile at a time, units come as one by one; shares from equal to very unequal."""
    weights = np.random.default_rng(seed).random(k) ** skew
    checked(np.maximum(1, (3000 * weights / weights.sum()).astype(int)).tolist())


@pytest.mark.parametrize(
    "shares",
    [
        [2] * 1500 + [1] * 2,  # the first free slot stays far behind
        [2, 3] * 700,
        [3] * 300 + [200] * 10,
        [1] * 3000 + [1096],
        [1, 1, 4094],
        [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024],
        [5000],
    ],
    ids=str,
)
def test_shares_that_are_far_from_random(shares: list[int]) -> None:
    """Many light sources, many that are due at once, and runs of slots without a free one."""
    checked(shares)


@pytest.mark.parametrize(
    ("k", "num_slots", "skew", "digest"),
    [
        (3, 2**16, 1, "77c3b13cdc9abc47"),
        (30, 2**16, 1, "5254e1111359b423"),
        (3000, 2**16, 3, "0c1f958da53e0700"),
        (2**14, 2**16, 1, "aa6686eda7b6d1da"),
        (50, 2**20, 2, "9b9b5f8606f24eeb"),
    ],
)
def test_known_patterns(k: int, num_slots: int, skew: int, digest: str) -> None:
    """Patterns of long periods, as the first kernel had them, which asked a heap slot by slot."""
    weights = [(i * 2654435761 % 2**32) ** skew for i in range(1, k + 1)]
    shares = [1 + (num_slots - k) * weight // sum(weights) for weight in weights]
    shares[0] += num_slots - sum(shares)
    pattern = pattern_of(tuple(shares))
    pattern = pattern._replace(row=pattern.row.astype(np.int32))  # as they were digested
    assert digest == hashlib.sha256(b"".join(map(np.ndarray.tobytes, pattern))).hexdigest()[:16]
