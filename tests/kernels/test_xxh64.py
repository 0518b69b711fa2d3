"""XXH64, against the reference library."""

import numpy as np
import pytest
import xxhash

from indexplan.kernels.xxh64 import xxh64


def test_xxh64_of_every_short_length() -> None:
    """XXH64 of 0 to 200 bytes, at any alignment, is that of the reference library."""
    data = np.random.default_rng(0).bytes(300)
    for length in range(201):
        assert xxhash.xxh64_intdigest(data[:length]) == xxh64(data[:length])
        shifted = memoryview(data)[length % 9 :][:length]
        assert xxhash.xxh64_intdigest(shifted) == xxh64(shifted)


@pytest.mark.parametrize("length", [2**20, 4 * 2**20, 5 * 2**20 + 3])
def test_xxh64_of_megabytes(length: int) -> None:
    """XXH64 of megabytes is that of the reference library, for bytes and arrays alike."""
    data = np.random.default_rng(1).bytes(length)
    expected = xxhash.xxh64_intdigest(data)
    assert expected == xxh64(data)
    assert expected == xxh64(bytearray(data))
    assert expected == xxh64(np.frombuffer(data, np.uint8))


def test_xxh64_of_arrays() -> None:
    """XXH64 of an array is that of its bytes, whatever its dtype and shape."""
    array = np.arange(35, dtype=np.int32).reshape(5, 7)
    assert xxhash.xxh64_intdigest(array.tobytes()) == xxh64(array)
    assert xxhash.xxh64_intdigest(b"") == xxh64(np.empty((0, 3)))
