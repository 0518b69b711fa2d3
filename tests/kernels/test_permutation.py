"""shuffle-v1 and block-shuffle-v1: known answers, independent oracles, and laws."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from indexplan.kernels import block_permutation, feistel, permutation, philox
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


def frozen(numbers: Any, dtype: Any = np.int64) -> NDArray[Any]:
    """Return a read-only array, as kernels take, and leave."""
    array = np.array(numbers, dtype)
    array.flags.writeable = False
    return array


class Shuffle:
    """shuffle-v1 with the keys of a seed and an epoch."""

    kernels: tuple[Any, Any] = permutation.permute_runs, permutation.invert

    def __init__(self, n: int, seed: int, epoch: int = 0) -> None:
        count = 2 * feistel.num_rounds(n)
        self.n = n
        self.spec: tuple[Any, ...] = (
            n,
            frozen(oracles.key_words(seed, oracles.SHUFFLE, epoch, count, n), np.uint32),
        )

    def runs(self, starts: Any, stops: Any) -> NDArray[np.int64]:
        starts, stops = frozen(starts), frozen(stops)
        out = np.full(int((stops - starts).sum()), -1)
        self.kernels[0](*self.spec, starts, stops, out)
        return out

    def take(self, positions: Any) -> NDArray[np.int64]:
        return self.runs(positions, np.asarray(positions) + 1)

    def locate(self, indices: Any) -> NDArray[np.int64]:
        out = np.full(len(indices), -1)
        self.kernels[1](*self.spec, frozen(indices), out)
        return out


class BlockShuffle(Shuffle):
    """block-shuffle-v1 with the keys of a seed and an epoch."""

    kernels = block_permutation.block_permute_runs, block_permutation.block_invert

    def __init__(self, n: int, block_size: int, window: int, seed: int, epoch: int = 0) -> None:
        count = 2 * feistel.num_rounds(-(-n // block_size))
        words = frozen(oracles.key_words(seed, oracles.BLOCKS, epoch, count, n), np.uint32)
        key = frozen(oracles.key_words(seed, oracles.WINDOWS, epoch, 2, n), np.uint32)
        self.n, self.spec = n, (n, block_size, window, words, key)


def check_golden(shuffle: Shuffle, case: dict[str, Any]) -> None:
    assert case["indices"] == shuffle.take(case["positions"]).tolist()
    assert case["positions"] == shuffle.locate(case["indices"]).tolist()
    if CRC in case:
        assert case[CRC] == crc32(shuffle.runs([0], [case["n"]]))


def check_bijection(shuffle: Shuffle) -> None:
    everything = np.arange(shuffle.n)
    order = shuffle.runs([0], [shuffle.n])
    assert np.array_equal(everything, np.sort(order))
    assert np.array_equal(everything, shuffle.locate(order))


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


def test_shuffle_golden() -> None:
    """shuffle-v1 gives every stored known answer, both ways, and the checksums of whole orders."""
    for case in cases("shuffle_v1"):
        check_golden(Shuffle(case["n"], case["seed"], case["epoch"]), case)


def test_block_shuffle_golden() -> None:
    """block-shuffle-v1 gives every stored known answer, both ways, and the checksums of orders."""
    for case in cases("block_shuffle_v1"):
        spec = (case[name] for name in ("n", "block_size", "window", "seed", "epoch"))
        check_golden(BlockShuffle(*spec), case)


@given(n=nums, seed=seeds, epoch=epochs, data=st.data())
def test_shuffle_matches_oracle(n: int, seed: int, epoch: int, data: st.DataObject) -> None:
    """Any runs of positions have the oracle's indices, and the indices lead back to them."""
    shuffle = Shuffle(n, seed, epoch)
    starts = data.draw(st.lists(st.integers(0, n - 1), max_size=8))
    stops = [data.draw(st.integers(start, min(n, start + 20))) for start in starts]
    positions = [p for start, stop in zip(starts, stops, strict=True) for p in range(start, stop)]
    expected = [oracles.shuffle_forward(n, seed, epoch, position) for position in positions]
    assert expected == shuffle.runs(starts, stops).tolist()
    assert positions == shuffle.locate(expected).tolist()
    assert positions == [oracles.shuffle_inverse(n, seed, epoch, index) for index in expected]


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
            read = Shuffle(n, seed, epoch).runs(starts, stops)
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
    assert expected == Shuffle(n, 7).take(positions).tolist()
    assert positions == Shuffle(n, 7).locate(expected).tolist()


@pytest.mark.parametrize("n", LARGE)
def test_many_lanes_match_oracle(n: int) -> None:
    """A run that is longer than a block of lanes has the oracle's indices at every place."""
    shuffle = Shuffle(n, 5)
    start = n // 3
    order = shuffle.runs([start], [start + 3001])
    words = oracles.key_words(5, oracles.SHUFFLE, 0, 16, n)
    assert [oracles.forward(n, words, start + i) for i in range(3001)] == order.tolist()
    assert np.array_equal(np.arange(start, start + 3001), shuffle.locate(order))


@pytest.mark.parametrize("n", AWKWARD)
def test_shuffle_is_a_bijection(n: int) -> None:
    """Every index occurs once, and the inverse leads back from each."""
    check_bijection(Shuffle(n, 3, 1))


def test_all_small_permutations_occur() -> None:
    """Over 600 seeds, all 24 orders of 4 samples occur, odd ones too."""
    seen = {tuple(Shuffle(4, seed).runs([0], [4]).tolist()) for seed in range(600)}
    assert math.factorial(4) == len(seen)


@pytest.mark.parametrize("shuffle", [Shuffle(100_003, 1), BlockShuffle(100_003, 97, 5, 1)])
@pytest.mark.parametrize("length", [1, 3, 16, 255, 256, 257, 511, 512, 513, 1023, 5000])
def test_runs_cut_anywhere_agree(shuffle: Shuffle, length: int) -> None:
    """The same positions have the same indices, however they are cut into runs."""
    order = shuffle.runs([0], [shuffle.n])
    starts = np.arange(0, shuffle.n, length)
    stops = np.minimum(starts + length, shuffle.n)
    assert np.array_equal(order, shuffle.runs(starts, stops))
    backwards = [order[start:stop] for start, stop in zip(starts[::-1], stops[::-1], strict=True)]
    assert np.array_equal(np.concatenate(backwards), shuffle.runs(starts[::-1], stops[::-1]))


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
    shuffle = BlockShuffle(*spec)
    blocks = oracles.Blocks(*spec)
    edges = {0, n, blocks.start_of(blocks.short_slot), blocks.start_of(blocks.short_slot + 1)}
    near = st.sampled_from(sorted(edges)).flatmap(
        lambda edge: st.integers(max(0, edge - 3), min(n - 1, edge + 3))
    )
    starts = data.draw(st.lists(st.one_of(near, st.integers(0, n - 1)), max_size=5))
    stops = [data.draw(st.integers(start, min(n, start + 12))) for start in starts]
    positions = [p for start, stop in zip(starts, stops, strict=True) for p in range(start, stop)]
    expected = [oracles.block_shuffle_forward(*spec, position) for position in positions]
    assert expected == shuffle.runs(starts, stops).tolist()
    assert positions == shuffle.locate(expected).tolist()
    assert positions == [oracles.block_shuffle_inverse(*spec, index) for index in expected]


@pytest.mark.parametrize("n", [*range(1, 40), 1000, 65537])
def test_block_shuffle_is_a_bijection(n: int) -> None:
    """Every index occurs once, whatever the block size and the window."""
    for block_size in {1, 2, 3, 7, 64, n, n + 1}:
        for window in (1, 2, 5, 256, 257, 2**62):
            check_bijection(BlockShuffle(n, block_size, window, 9))
