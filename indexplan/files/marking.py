"""Count which samples an epoch reads, with one bit for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from indexplan import kernels
from indexplan.errors import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

SLAB = 2**16  # numbers converted to int64 at a time: half a MiB, which stays in the cache


class Seen:
    """The samples that an epoch reads: how many reads there were, and which were wrong.

    Only one thread at a time may mark. It takes num_samples / 8 bytes.
    """

    def __init__(self, num_samples: int) -> None:
        self.num_samples = num_samples
        self.words = np.zeros(-(-num_samples // 64), np.int64)
        if rest := num_samples % 64:
            self.words[-1] = -1 << rest  # bits past the last sample count as seen
        self.num_read = self.num_repeated = self.num_outside = 0
        self.first_repeated, self.first_outside = num_samples, 0

    def mark(self, indices: NDArray[np.integer]) -> None:
        """Mark samples as read; int64 or uint32, one dimension."""
        for start in range(0, len(indices), SLAB):
            part = indices[start : start + SLAB].astype(np.int64)
            repeated, first, outside, example = kernels.seen.mark(
                self.num_samples, part, self.words
            )
            self.num_read += len(part)
            self.num_repeated += repeated
            self.first_repeated = min(self.first_repeated, first)
            if outside:
                self.first_outside = min(example, self.first_outside or example)
            self.num_outside += outside

    def problems(self, epoch: int) -> list[str]:
        """Return messages about samples that are missing, repeated or out of range."""
        said = []
        distinct = self.num_read - self.num_repeated - self.num_outside
        if missing := self.num_samples - distinct:
            word = int(np.argmax(self.words != -1))
            bits = ~int(self.words[word])
            first = 64 * word + (bits & -bits).bit_length() - 1
            are = "is" if missing == 1 else "are"
            said.append(f"{counted(missing, 'sample')} {are} never read, first {first}")
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
