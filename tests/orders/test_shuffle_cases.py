"""shuffle-v1 gives the 1,000 answers that every language is held to."""

from __future__ import annotations

import indexplan as ip
from tests.golden.cases import NUM_CASES, NUM_INDICES
from tests.support.shuffle_cases import CASES


def test_known_answers() -> None:
    """Each case, both ways."""
    for n, seed, epoch, start, indices in CASES:
        order = ip.Shuffle(n, seed)
        assert indices == order.take(epoch, start, start + len(indices)).tolist()
        assert [*range(start, start + len(indices))] == order.locate(epoch, indices).tolist()


def test_what_the_cases_span() -> None:
    """All sizes of numbers, in bits; every bit of a seed and of an epoch; starts and ends."""
    assert NUM_CASES == len(CASES)
    assert {*range(1, 64)} == {case.n.bit_length() for case in CASES}
    for bits, numbers in ((128, [case.seed for case in CASES]), (32, [c.epoch for c in CASES])):
        for bit in range(bits):
            assert {0, 1} == {number >> bit & 1 for number in numbers}
    assert all(len(case.indices) == min(case.n, NUM_INDICES) for case in CASES)
    assert {True, False} == {case.start + len(case.indices) == case.n for case in CASES}
    assert {True, False} == {case.start == 0 for case in CASES}
