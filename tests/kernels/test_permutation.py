"""shuffle-v1 and block-shuffle-v1: known answers, independent oracles, and laws."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.kernels import feistel, permutation, philox
from tests.golden.lines import CRC, cases, crc32
from tests.support import oracles

AWKWARD = [*range(1, 71), 4095, 4096, 4097, 65537, 262145, 1048575, 1048577]
LARGE = [10**9, 2**32, 10**12, 2**40 + 12345, 2**62, 2**62 + 1, 2**63 - 1]

nums = st.one_of(
    st.integers(1, 300),
    st.integers(1, 2**63 - 1),
    st.integers(0, 62).flatmap(lambda bits: st.integers(max(1, 2**bits - 2), 2**bits + 2)),
    st.sampled_from(AWKWARD + LARGE),
)
seeds = st.one_of(st.integers(0, 3), st.integers(0, 2**128 - 1))
epochs = st.one_of(st.integers(0, 3), st.integers(0, 2**32 - 1))


@numba.njit
def compiled_philox(
    c0: philox.U64, c1: philox.U64, c2: philox.U64, c3: philox.U64, k0: philox.U64, k1: philox.U64
) -> philox.Four:
    return philox.philox(c0, c1, c2, c3, k0, k1)


@pytest.mark.parametrize("case", cases("philox4x32_10"), ids=lambda case: str(case["key"]))
def test_philox_vectors(case: dict[str, Any]) -> None:
    """Philox4x32-10 gives Random123's known answers, compiled and in the oracle."""
    numbers = [np.uint64(each) for each in (*case["counter"], *case["key"])]
    assert case["words"] == list(compiled_philox(*numbers))
    assert case["words"] == oracles.philox(case["counter"], case["key"])


def check_golden(order: ip.Order, case: dict[str, Any]) -> None:
    """Compare a known answer, both ways, and the checksum of a whole order."""
    assert case["indices"] == order.take(case["epoch"], case["positions"]).tolist()
    assert case["positions"] == order.locate(case["epoch"], case["indices"]).tolist()
    if CRC in case:
        assert case[CRC] == crc32(order.take(case["epoch"], 0, case["n"]))


def test_shuffle_golden() -> None:
    """shuffle-v1 gives every stored known answer."""
    for case in cases("shuffle_v1"):
        check_golden(ip.Shuffle(case["n"], case["seed"]), case)


def test_block_shuffle_golden() -> None:
    """block-shuffle-v1 gives every stored known answer."""
    for case in cases("block_shuffle_v1"):
        spec = (case[name] for name in ("n", "block_size", "window", "seed"))
        check_golden(ip.BlockShuffle(*spec), case)


@given(n=nums, seed=seeds, epoch=epochs, data=st.data())
def test_shuffle_matches_oracle(n: int, seed: int, epoch: int, data: st.DataObject) -> None:
    """Any runs of positions have the oracle's indices, and the indices lead back to them."""
    order = ip.Shuffle(n, seed)
    starts = data.draw(st.lists(st.integers(0, n - 1), max_size=8))
    stops = [data.draw(st.integers(start, min(n, start + 20))) for start in starts]
    positions = [p for start, stop in zip(starts, stops, strict=True) for p in range(start, stop)]
    expected = [oracles.shuffle_forward(n, seed, epoch, position) for position in positions]
    assert expected == order.take(epoch, starts, stops).tolist()
    assert positions == order.locate(epoch, expected).tolist()


@given(
    st.lists(
        st.tuples(
            nums, seeds, st.lists(epochs, max_size=5, unique=True).map(sorted), st.booleans()
        ),
        min_size=1,
        max_size=4,
    ),
    st.data(),
)
def test_many_epochs_at_once(
    shuffles: list[tuple[int, int, list[int], bool]], data: st.DataObject
) -> None:
    """Several shuffles are read epoch by epoch, key words as NumPy hashes them; or left out."""
    runs, expected, begins, parts = [], [np.empty(0, np.int64)], [], [0]
    for n, seed, some, drawn in shuffles:
        begins.append(sum(map(len, expected)))
        for epoch in some:
            found = data.draw(
                st.lists(st.tuples(st.integers(0, n), st.integers(0, 600)), max_size=3)
            )
            starts = np.array([start for start, _ in found], np.int64)
            stops = np.array([min(n, start + num) for start, num in found], np.int64)
            runs.append((starts, stops))
            read = ip.Shuffle(n, seed).take(epoch, starts, stops)
            expected.append(read if drawn else np.full(len(read), -1))
        parts.append(parts[-1] + len(some))
    out = np.full(sum(map(len, expected)), -1)
    permutation.permute_epochs(
        np.array([n if drawn else 0 for n, *_, drawn in shuffles], np.int64),
        np.array(
            [[seed >> 32 * i & 2**32 - 1 for i in range(4)] for _, seed, *_ in shuffles], "<u4"
        ),
        oracles.SHUFFLE,
        np.array(parts, np.int64),
        np.array([epoch for _, _, some, _ in shuffles for epoch in some], np.int64),
        np.cumsum([0, *(len(starts) for starts, _ in runs)]),
        *(np.concatenate([out[:0], *(run[end] for run in runs)]) for end in (0, 1)),
        np.array(begins, np.int64),
        out,
    )
    assert np.array_equal(np.concatenate(expected), out)


@pytest.mark.parametrize("size", [7, 2**32 - 1, 2**32, 2**62])
def test_strata_at_once(size: int) -> None:
    """Each stratum has key words of its own, also where it starts past 32 bits; and back."""
    starts = np.array([0, 1, 5, 2**32, 2**60])
    counts, strata = (
        np.array([300, 1, 5000, 7, 2**40]),
        np.repeat([4, 0, 1, 2, 3], [2, 900, 1, 9, 7]),
    )
    numbers = np.arange(len(strata)) * 977 % counts[strata]
    words = [
        oracles.key_words(3, 20, 17, 2 * feistel.num_rounds(n), size + (start << 64))
        for n, start in zip(counts.tolist(), starts.tolist(), strict=True)
    ]
    key, images = np.array([3, 0, 0, 0], np.uint32), numbers.copy()
    permutation.permute_strata(size, key, 20, 17, starts, counts, strata, 0, images)
    pairs = zip(strata.tolist(), numbers.tolist(), strict=True)
    assert images.tolist() == [oracles.forward(int(counts[k]), words[k], i) for k, i in pairs]
    permutation.permute_strata(size, key, 20, 17, starts, counts, strata, 1, images)
    assert np.array_equal(numbers, images)


@pytest.mark.parametrize("n", LARGE)
def test_division_at_its_edges(n: int) -> None:
    """Positions beside multiples of b, where a division by multiplying could slip, are right."""
    _, b = oracles.sides_of(n)
    rows = [0, 1, 2, n // b // 3, n // b - 1, n // b]
    positions = [row * b + step for row in rows for step in (-1, 0, 1)]
    positions = [position for position in positions if 0 <= position < n] + [n - 1]
    expected = [oracles.shuffle_forward(n, 7, 0, position) for position in positions]
    order = ip.Shuffle(n, 7)
    assert expected == order.take(0, positions).tolist()
    assert positions == order.locate(0, expected).tolist()


@pytest.mark.parametrize("n", LARGE)
def test_many_lanes_match_oracle(n: int) -> None:
    """A run that is longer than a block of lanes has the oracle's indices at every place."""
    order, start = ip.Shuffle(n, 5), n // 3
    read = order.take(0, start, start + 3001)
    words = oracles.key_words(5, oracles.SHUFFLE, 0, 16, n)
    assert [oracles.forward(n, words, start + i) for i in range(3001)] == read.tolist()
    assert np.array_equal(np.arange(start, start + 3001), order.locate(0, read))


@pytest.mark.parametrize("n", AWKWARD)
def test_shuffle_is_a_bijection(n: int) -> None:
    """Every index occurs once, and the inverse leads back from each."""
    order, every = ip.Shuffle(n, 3), np.arange(n)
    read = order.take(1, 0, n)
    assert np.array_equal(every, np.sort(read))
    assert np.array_equal(every, order.locate(1, read))


def test_all_small_permutations_occur() -> None:
    """Over 600 seeds, all 24 orders of 4 samples occur, odd ones too."""
    seen = {tuple(ip.Shuffle(4, seed).take(0, 0, 4).tolist()) for seed in range(600)}
    assert math.factorial(4) == len(seen)


@pytest.mark.parametrize("order", [ip.Shuffle(100_003, 1), ip.BlockShuffle(100_003, 97, 5, 1)])
@pytest.mark.parametrize("length", [1, 3, 16, 255, 256, 257, 511, 512, 513, 1023, 5000])
def test_runs_cut_anywhere_agree(order: ip.Order, length: int) -> None:
    """The same positions have the same indices, however they are cut into runs."""
    read = order.take(0, 0, 100_003)
    starts = np.arange(0, 100_003, length)
    stops = np.minimum(starts + length, 100_003)
    assert np.array_equal(read, order.take(0, starts, stops))
    backwards = [read[start:stop] for start, stop in zip(starts[::-1], stops[::-1], strict=True)]
    assert np.array_equal(np.concatenate(backwards), order.take(0, starts[::-1], stops[::-1]))


@given(
    n=nums,
    block_size=st.one_of(st.integers(1, 100), st.integers(1, 2**63 - 1)),
    window=st.one_of(st.integers(1, 10), st.integers(250, 260), st.integers(1, 2**63 - 1)),
    seed=seeds,
    epoch=epochs,
    data=st.data(),
)
def test_block_shuffle_matches_oracle(
    n: int, block_size: int, window: int, seed: int, epoch: int, data: st.DataObject
) -> None:
    """Any runs of positions have the oracle's indices, and the indices lead back to them."""
    spec = (n, block_size, window, seed, epoch)
    order = ip.BlockShuffle(n, block_size, window, seed)
    blocks = oracles.Blocks(*spec)
    starts = data.draw(st.lists(st.integers(0, n - 1), max_size=5))
    stops = [data.draw(st.integers(start, min(n, start + 12))) for start in starts]
    around = (0, blocks.start_of(blocks.short_slot), blocks.start_of(blocks.short_slot + 1), n)
    starts += [max(0, edge - 3) for edge in around]
    stops += [min(n, edge + 3) for edge in around]
    positions = [p for start, stop in zip(starts, stops, strict=True) for p in range(start, stop)]
    expected = [oracles.block_shuffle_forward(*spec, position) for position in positions]
    assert expected == order.take(epoch, starts, stops).tolist()
    assert positions == order.locate(epoch, expected).tolist()
