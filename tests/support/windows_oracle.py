"""token-windows-v1 in plain Python integers, from its words in docs/specification.md."""

from __future__ import annotations

from typing import NamedTuple

from tests.support.oracles import forward, key_words, rounds_of

BINS, PHASES = 14, 16  # purposes of key words


class Windows(NamedTuple):
    """The fields of a TokenWindows."""

    num_tokens: int
    length: int
    overlap: int = 1
    shift: bool = True
    seed: int = 0

    @property
    def num(self) -> int:
        """How many windows an epoch has."""
        fit = 0
        if self.num_tokens >= self.overlap + self.length:
            fit = (self.num_tokens - self.overlap) // self.length
        return fit - 1 if self.shift and fit > 1 else fit

    def phase(self, epoch: int) -> int:
        """Return the token at which the first window starts."""
        if not self.shift:
            return 0
        low, high = key_words(self.seed, PHASES, epoch, 2, self.num_tokens)
        last = self.num_tokens - self.overlap - self.length * self.num  # where it still fits
        return (low + high * 2**32) % (last + 1)

    def start(self, epoch: int, position: int) -> int:
        """Return the first token of the window at a position."""
        words = key_words(self.seed, BINS, epoch, 2 * rounds_of(self.num), self.num_tokens)
        return self.phase(epoch) + self.length * forward(self.num, words, position)
