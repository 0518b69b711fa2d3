"""The permutation shuffle-v1, both ways. It is frozen: other indices are another version."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from indexplan.kernels.compiling import (
    INT64,
    READ_INT64,
    READ_TABLE,
    READ_UINT32,
    WRITE_INT64,
    helper,
    kernel,
)
from indexplan.kernels.feistel import LANES, MOST_WORDS, cipher_of, count_up, permute, rounds_of
from indexplan.kernels.philox import U64, ZERO
from indexplan.kernels.seeding import POOL, pool_of, words_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from indexplan.kernels.feistel import Cipher

    Int64s: TypeAlias = NDArray[np.int64]
    UInt32s: TypeAlias = NDArray[np.uint32]
    UInt64s: TypeAlias = NDArray[np.uint64]


@helper
def _permute(
    left: UInt64s,
    right: UInt64s,
    cipher: Cipher,
    starts: Int64s,
    stops: Int64s,
    out: Int64s,
) -> int:
    """Write the images of runs of positions, as many lanes at a time as there are; return how many.

    `left` and `right` have LANES numbers each, which are overwritten.
    """
    lane = done = count = 0
    for k in range(len(starts)):
        position = starts[k]
        while position < stops[k]:
            count = min(stops[k] - position, LANES - lane)
            count_up(left[lane:], count, U64(position))
            position += count
            lane += count
            if lane == LANES:
                permute(left, right, lane, cipher, count == lane, False, out[done:])
                done += lane
                lane = 0
    permute(left, right, lane, cipher, count == lane, False, out[done:])
    return done + lane


@kernel(INT64, READ_UINT32, READ_INT64, READ_INT64, WRITE_INT64)
def permute_runs(n: int, words: UInt32s, starts: Int64s, stops: Int64s, out: Int64s) -> None:
    """Write the indices of runs of positions, one run after another, by shuffle-v1.

    Parameters
    ----------
    n : int
        Number of samples, 1 <= n < 2**63.
    words : uint32 (2 * num_rounds(n),)
        The key words of the epoch.
    starts, stops : int64 (num_runs,)
        Run k is the positions [starts[k], stops[k]), within [0, n); a run may be empty.
    out : int64 (sum(stops - starts),)
        Gets the indices.
    """
    cipher = cipher_of(U64(n), words.astype(U64))
    _permute(np.empty(LANES, U64), np.empty(LANES, U64), cipher, starts, stops, out)


@kernel(
    READ_INT64,
    READ_TABLE,
    INT64,
    READ_INT64,
    READ_INT64,
    READ_INT64,
    READ_INT64,
    READ_INT64,
    READ_INT64,
    WRITE_INT64,
)
def permute_epochs(
    sizes: Int64s,
    seeds: UInt32s,
    purpose: int,
    parts: Int64s,
    epochs: Int64s,
    cuts: Int64s,
    starts: Int64s,
    stops: Int64s,
    begins: Int64s,
    out: Int64s,
) -> None:
    """Write the indices of runs of positions of several epochs of several shuffles.

    Parameters
    ----------
    sizes : int64 (k,)
        Number of samples of each shuffle, 1 <= n < 2**63; 0 if nothing is to be written for it.
    seeds : uint32 (k, 4)
        The seed of each, its lowest word first.
    purpose : int
        What the key words are for.
    parts : int64 (k + 1,)
        Shuffle j reads the epochs [parts[j], parts[j + 1]) of `epochs`.
    epochs : int64 (num_epochs,)
        0 <= epoch < 2**32.
    cuts : int64 (num_epochs + 1,)
        Epoch i reads the runs [cuts[i], cuts[i + 1]).
    starts, stops
        As for `permute_runs`.
    begins : int64 (k,)
        Where in `out` the indices of each shuffle begin; its runs follow one another.
    out : int64
        Gets the indices.
    """
    pool, mixed = np.empty(POOL, U64), np.empty(POOL, U64)
    left, right = np.empty(LANES, U64), np.empty(LANES, U64)
    for j in range(len(sizes)):
        if sizes[j] == 0 or parts[j] == parts[j + 1]:
            continue
        factor = pool_of(seeds[j], purpose, pool)
        cipher = cipher_of(U64(sizes[j]), np.empty(2 * rounds_of(sizes[j]), U64))
        done = begins[j]
        for i in range(parts[j], parts[j + 1]):
            words_of(pool, factor, U64(epochs[i]), U64(sizes[j]), ZERO, mixed, cipher[4])
            a, b = cuts[i], cuts[i + 1]
            done += _permute(left, right, cipher, starts[a:b], stops[a:b], out[done:])


@kernel(INT64, READ_UINT32, READ_INT64, WRITE_INT64)
def invert(n: int, words: UInt32s, indices: Int64s, out: Int64s) -> None:
    """Write the positions of indices, by shuffle-v1.

    Parameters
    ----------
    n, words
        As for `permute_runs`.
    indices : int64 (num,)
        Indices in [0, n).
    out : int64 (num,)
        Gets the positions.
    """
    cipher = cipher_of(U64(n), words.astype(U64))
    left, right = np.empty(LANES, U64), np.empty(LANES, U64)
    for done in range(0, len(indices), LANES):
        part = indices[done : done + LANES]
        for i in range(len(part)):
            left[i] = U64(part[i])
        permute(left, right, len(part), cipher, False, True, out[done:])


@kernel(INT64, READ_UINT32, INT64, INT64, READ_INT64, READ_INT64, READ_INT64, INT64, WRITE_INT64)
def permute_strata(
    size: int,
    seed: UInt32s,
    purpose: int,
    epoch: int,
    starts: Int64s,
    counts: Int64s,
    strata: Int64s,
    inverse: int,
    numbers: Int64s,
) -> None:
    """Overwrite numbers with their images in strata, each shuffled by a shuffle-v1 of its own.

    Parameters
    ----------
    size, seed, purpose, epoch
        What key words are hashed from; the seed has four words, the lowest first.
    starts, counts : int64 (num_strata,)
        Where each stratum starts, which its key words depend on too, and how many it shuffles.
    strata : int64 (num,)
        The stratum of each number; neighbours in one share its key words.
    inverse : int
        1 for the positions of indices, else 0.
    numbers : int64 (num,)
        Each from 0 to its stratum's count, exclusively.
    """
    pool, mixed = np.empty(POOL, U64), np.empty(POOL, U64)
    left, right, words = np.empty(LANES, U64), np.empty(LANES, U64), np.empty(MOST_WORDS, U64)
    factor, stop = pool_of(seed, purpose, pool), 0
    while stop < len(strata):
        start, k = stop, strata[stop]
        while stop < len(strata) and strata[stop] == k and stop - start < LANES:
            left[stop - start] = U64(numbers[stop])
            stop += 1
        if counts[k] > 1:  # else the number is 0, as in most large strata of `Distinct`
            cipher = cipher_of(U64(counts[k]), words[: 2 * rounds_of(counts[k])])
            words_of(pool, factor, U64(epoch), U64(size), U64(starts[k]), mixed, cipher[4])
            permute(left, right, stop - start, cipher, False, inverse == 1, numbers[start:])
