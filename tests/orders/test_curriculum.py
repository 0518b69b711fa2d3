"""Curricula: easy samples first, none lost and none repeated early when bins open and close."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.testing import check_order

FRACTIONS = st.sampled_from([0.1, 0.25, 0.3, 0.5, 0.7, 1, 1.0])


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=40),
    st.lists(FRACTIONS, min_size=1, max_size=3),
    st.integers(1, 8),
    st.integers(1, 40),
)
def test_a_stage_reads_its_bins_equally(
    difficulty: list[int], parts: list[float], bins: int, length: int
) -> None:
    """Only the easiest bins that hold the part are read, in full passes, whatever came before."""
    n, bins = len(difficulty), min(bins, len(difficulty))
    stages = [(length * i, part) for i, part in enumerate(parts)]
    order = ip.curriculum(difficulty, stages, num_bins=bins, epoch_size=length, seed=3)
    ranked = sorted(range(n), key=lambda sample: (difficulty[sample], sample))
    rank = {sample: place for place, sample in enumerate(ranked)}
    bin_of = [next(i for i in range(bins) if rank[s] < n * (i + 1) // bins) for s in range(n)]
    assert bin_of == order.group_of(range(n)).tolist()
    assert tuple(f"bin {i}" for i in range(bins)) == order.group_names
    passes = {i: [0] * n for i in range(bins)}
    for epoch, part in enumerate(parts):
        opened = ceil(Fraction(str(part)) * bins)
        row = order.take(epoch, 0, length).tolist()
        counts = Counter(bin_of[sample] for sample in row)
        held = n * opened // bins
        assert held > n * Fraction(str(part)) - 1
        for i in range(opened):
            size = n * (i + 1) // bins - n * i // bins
            assert abs(counts[i] - Fraction(length * size, held)) < 1
        assert set(counts) <= set(range(opened))
        for sample in row:
            mine = passes[bin_of[sample]]
            members = [mine[s] for s in range(n) if bin_of[s] == bin_of[sample]]
            assert mine[sample] == min(members)
            mine[sample] += 1


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1)
    | st.lists(st.integers(-2, 2), min_size=1)
    | st.lists(st.integers(0, 2**32 - 1), min_size=1).map(lambda each: np.array(each, np.uint32))
    | st.lists(st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0]), min_size=1)
)
def test_equals_stay_in_turn(difficulty: Any) -> None:
    """Whatever the numbers are: as a stable sort leaves them."""
    order = ip.curriculum(difficulty, [(0, 1)], num_bins=1, epoch_size=1)
    kept = order.indices
    assert isinstance(kept, ip.Column)
    assert np.argsort(np.asarray(difficulty), kind="stable").tolist() == kept.array.tolist()


def test_known_answers() -> None:
    """Bits that never change."""
    order = ip.curriculum([5, 1, 4, 1, 3, 9, 2, 6], [(0, 0.5), (8, 1)], num_bins=4, seed=7)
    assert [[1, 6, 4, 3, 3, 6, 4, 1], [5, 4, 3, 2, 1, 7, 6, 0]] == [
        order.take(epoch, 0, 8).tolist() for epoch in range(2)
    ]
    assert "9563c0edf470c28b" == order.fingerprint[:16]
    seeds = [source.to_dict()["seed"] for _, source in order.order.sources]
    keys = [(6, 1 + i, 8) for i in range(4)]
    words = [np.random.SeedSequence(7, spawn_key=key).generate_state(4) for key in keys]
    assert seeds == [sum(int(word) << 32 * i for i, word in enumerate(row)) for row in words]


def test_parts_are_of_bins() -> None:
    """A third of three bins is one, which may hold a sample less than a third of all."""
    order = ip.curriculum(range(10), [(0, 1 / 3)], num_bins=3, epoch_size=30)
    assert {0, 1, 2} == set(order.take(0, 0, 30).tolist())


def test_bins_are_weighed_by_their_sizes() -> None:
    """Of any number of samples, an epoch of all stages reads each once; 100 bins by default."""
    order = ip.curriculum(np.arange(70_001)[::-1], [(0, 0.005), (100, 0.02)])
    mixture = order.order
    assert isinstance(mixture, ip.Mixture)
    assert ((0, (1, *[0] * 99)), (100, (1, 1, *[0] * 98))) == mixture.weights
    assert 70_001 - 700 <= order.take(0, 0, 100).min()
    whole = ip.curriculum(np.arange(70_001), [(0, 1)]).order
    assert isinstance(whole, ip.Mixture)
    assert ((700,) * 99 + (701,), "once") == (whole.shares, whole.traits.reads)
    small = ip.curriculum(range(10), [(0, 1)]).order
    assert isinstance(small, ip.Mixture)
    assert 10 == len(small.names)
    assert "once" == small.traits.reads


@pytest.mark.parametrize("epoch_size", [None, 7])
def test_the_kit(epoch_size: int | None) -> None:
    """Everything that plans, files and resuming rely on."""
    order = ip.curriculum(
        [0.5, -1.0, 2.0] * 7, [(0, 0.3), (9, 0.7), (30, 1)], num_bins=5, epoch_size=epoch_size
    )
    assert check_order(order, fresh_process=False).ok


def test_later_stages_may_change_at_a_resume() -> None:
    """What was read stays, whichever stages come after the cursor."""
    difficulty = list(range(30))

    def plan(*later: tuple[int, float]) -> ip.Plan:
        order = ip.curriculum(difficulty, [(0, 0.3), *later], num_bins=10)
        return ip.Plan(order, batch_size=5, world_size=2)

    cursor = plan((60, 1)).cursor(1, step=1)  # 40 samples are read
    rest = plan((40, 0.5)).resume(cursor)
    assert rest.batch(1, step=1, rank=0).tolist() != plan((60, 1)).batch(1, step=1, rank=0).tolist()
    with pytest.raises(ip.IndexPlanError, match="since which the weights are others"):
        plan((39, 0.5)).resume(cursor)
