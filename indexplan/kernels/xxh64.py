"""XXH64, the checksum of the blocks of a plan file.

The names and the steps are those of the specification:
https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from indexplan.kernels.compiling import READ_UINT8, READ_UINT64, helper, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

PRIME_1 = np.uint64(0x9E3779B185EBCA87)
PRIME_2 = np.uint64(0xC2B2AE3D27D4EB4F)
PRIME_3 = np.uint64(0x165667B19E3779F9)
PRIME_4 = np.uint64(0x85EBCA77C2B2AE63)
PRIME_5 = np.uint64(0x27D4EB2F165667C5)


def xxh64(data: Any) -> int:
    """Return the XXH64 of bytes, with seed 0.

    Parameters
    ----------
    data : bytes-like
        Any C-contiguous buffer: bytes, memoryview, a NumPy array of any dtype. Hashed in place,
        without a copy, if it starts at a multiple of 8 bytes.

    Returns
    -------
    int
        0 <= hash < 2**64.

    Examples
    --------
    >>> hex(xxh64(b""))
    '0xef46db3751d8e999'
    """
    octets = np.frombuffer(data, np.uint8) if memoryview(data).nbytes > 0 else np.empty(0, np.uint8)
    whole = len(octets) // 8 * 8
    # little-endian words in the machine's byte order, at an address that numba can read
    words = np.require(octets[:whole].view("<u8"), np.uint64, "A")
    return int(_xxh64(words, octets[whole:]))


@helper
def _rotate(x: np.uint64, bits: int) -> np.uint64:
    rotated: np.uint64 = (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))
    return rotated


@helper
def _round(accumulator: np.uint64, word: np.uint64) -> np.uint64:
    mixed: np.uint64 = _rotate(accumulator + word * PRIME_2, 31) * PRIME_1
    return mixed


@helper
def _merge(accumulator: np.uint64, lane: np.uint64) -> np.uint64:
    merged: np.uint64 = (accumulator ^ _round(np.uint64(0), lane)) * PRIME_1 + PRIME_4
    return merged


@kernel(READ_UINT64, READ_UINT8)
def _xxh64(words: NDArray[np.uint64], tail: NDArray[np.uint8]) -> np.uint64:
    """Hash uint64 (num_bytes // 8,) and the last bytes, uint8 (num_bytes % 8,)."""
    num_words = len(words)
    striped = num_words // 4 * 4
    if striped:  # steps 1 to 3: stripes of four words, one per accumulator
        a1 = PRIME_1 + PRIME_2
        a2 = PRIME_2
        a3 = np.uint64(0)
        a4 = np.uint64(0) - PRIME_1
        for i in range(0, striped, 4):
            a1 = _round(a1, words[i])
            a2 = _round(a2, words[i + 1])
            a3 = _round(a3, words[i + 2])
            a4 = _round(a4, words[i + 3])
        h = _rotate(a1, 1) + _rotate(a2, 7) + _rotate(a3, 12) + _rotate(a4, 18)
        h = _merge(_merge(_merge(_merge(h, a1), a2), a3), a4)
    else:
        h = PRIME_5
    h += np.uint64(num_words) * np.uint64(8) + np.uint64(len(tail))  # step 4
    for i in range(striped, num_words):  # step 5: what is left, by 8, 4 and 1 bytes
        h = _rotate(h ^ _round(np.uint64(0), words[i]), 27) * PRIME_1 + PRIME_4
    done = 0
    if len(tail) >= 4:
        word = np.uint64(0)
        for i in range(4):
            word |= np.uint64(tail[i]) << np.uint64(8 * i)
        h = _rotate(h ^ (word * PRIME_1), 23) * PRIME_2 + PRIME_3
        done = 4
    for i in range(done, len(tail)):
        h = _rotate(h ^ (np.uint64(tail[i]) * PRIME_5), 11) * PRIME_1
    h = (h ^ (h >> np.uint64(33))) * PRIME_2  # step 6: avalanche
    h = (h ^ (h >> np.uint64(29))) * PRIME_3
    final: np.uint64 = h ^ (h >> np.uint64(32))
    return final
