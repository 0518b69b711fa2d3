"""Which samples were seen, a bit for each: the kernel that marks them, and what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from indexplan.kernels.compiling import INT64, READ_INT64, WRITE_INT64, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from indexplan.orders.base import Int64

SLAB = 2**16  # numbers that are widened at a time: half a MiB, which stays in the cache


class Seen:
    """The samples that an epoch reads: how many reads there were, and which went wrong.

    One thread at a time may mark. Takes num_samples / 8 bytes.
    """

    def __init__(self, num_samples: int) -> None:
        self.num_samples = num_samples
        self.words = np.zeros(-(-num_samples // 64), np.int64)
        if rest := num_samples % 64:
            self.words[-1] = -1 << rest  # past the last sample nothing is missing
        self.num_read = self.num_repeated = self.num_outside = 0
        self.first_repeated, self.first_outside = num_samples, 0

    def mark(self, indices: NDArray[np.integer]) -> None:
        """Mark samples; int64 or uint32, flat."""
        for start in range(0, len(indices), SLAB):
            part = indices[start : start + SLAB].astype(np.int64)
            repeated, first, outside, example = _mark(self.num_samples, part, self.words)
            self.num_read += len(part)
            self.num_repeated += repeated
            self.first_repeated = min(self.first_repeated, first)
            if outside:
                self.first_outside = min(example, self.first_outside or example)
            self.num_outside += outside

    def problems(self, epoch: int) -> list[str]:
        """Say which samples are missing, repeated, or none of the dataset's; nothing if none."""
        said = []
        distinct = self.num_read - self.num_repeated - self.num_outside
        if missing := self.num_samples - distinct:
            word = int(np.argmax(self.words != -1))
            bits = ~int(self.words[word])
            first = 64 * word + (bits & -bits).bit_length() - 1
            said.append(f"{missing} samples are never read, the first of them {first}")
        if self.num_repeated:
            said.append(
                f"{self.num_repeated} reads are of a sample that was read before, the first such "
                f"sample {self.first_repeated}"
            )
        if self.num_outside:
            said.append(
                f"{self.num_outside} indices are not from 0 to {self.num_samples - 1}, such as "
                f"{self.first_outside}"
            )
        return [f"epoch {epoch}: {words}" for words in said]


@kernel(INT64, READ_INT64, WRITE_INT64)
def _mark(n: int, indices: Int64, words: Int64) -> tuple[int, int, int, int]:
    """Set the bits of indices in [0, n); return what was wrong.

    That is how many were set before, the least of these (n if none), how many are outside [0, n),
    and the least of these (0 if none).
    """
    repeated = outside = example = 0
    first = n
    for index in indices:
        if index < 0 or index >= n:
            example = index if outside == 0 else min(example, index)
            outside += 1
            continue
        bit = np.int64(1) << (index & 63)
        word = words[index >> 6]
        if word & bit:
            repeated += 1
            first = min(first, index)
        words[index >> 6] = word | bit
    return repeated, first, outside, example
