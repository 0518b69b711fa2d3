"""token-windows-v1 and document-windows-v1 in plain Python, from docs/specification.md."""

from __future__ import annotations

from typing import NamedTuple

from tests.support.oracles import drawn_words, forward, key_words, rounds_of

BINS, PHASES, DOCUMENTS = 14, 16, 17  # purposes of key words

Piece = tuple[int, int, int]  # a document, and the tokens [start, stop) of it


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


class Documents(NamedTuple):
    """The fields of a DocumentWindows."""

    lengths: tuple[int, ...]
    length: int
    overlap: int = 1
    block_size: int = 1024
    seed: int = 0

    @property
    def num(self) -> int:
        """How many windows an epoch has."""
        return (sum(self.lengths) - self.overlap) // self.length

    def row(self, epoch: int) -> list[int]:
        """Return the documents in the order in which the stream has them."""
        n, num_blocks = len(self.lengths), -(-len(self.lengths) // self.block_size)
        rounds = rounds_of(num_blocks)
        *words, low, high = key_words(self.seed, DOCUMENTS, epoch, 2 * rounds + 2, n)
        row = []
        for place in range(num_blocks):
            block = forward(num_blocks, words, place)
            first = block * self.block_size
            m = min(self.block_size, n - first)
            own = drawn_words(m, block % 2**32, block >> 32, 0, [low, high])
            row += [first + forward(m, own, j) for j in range(m)]
        return row

    def number(self, epoch: int, position: int) -> int:
        """Return which window of the stream is dealt at a position."""
        words = key_words(self.seed, BINS, epoch, 2 * rounds_of(self.num), len(self.lengths))
        return forward(self.num, words, position)

    def window(self, row: list[int], number: int) -> list[Piece]:
        """Return what a window of a stream reads, whose documents follow each other in a row."""
        start = number * self.length
        stop, begin, pieces = start + self.length + self.overlap, 0, []
        for each in row:
            end = begin + self.lengths[each]
            if begin < stop and start < end:
                pieces.append((each, max(start, begin) - begin, min(stop, end) - begin))
            begin = end
        return pieces

    def units(self, epoch: int) -> list[list[Piece]]:
        """Return what each unit of an epoch reads."""
        row = self.row(epoch)
        return [self.window(row, self.number(epoch, p)) for p in range(self.num)]
