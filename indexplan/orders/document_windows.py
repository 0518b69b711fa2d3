"""Windows of tokens, cut from documents that are shuffled in blocks: document-windows-v1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexplan import kernels
from indexplan.errors import invalid
from indexplan.once import latest, once
from indexplan.orders.base import Int64, Order, Why
from indexplan.orders.columns import BLOCK, Kept
from indexplan.orders.fields import SEED, whole
from indexplan.orders.registry import register
from indexplan.orders.strata import LENGTHS, exact_sum
from indexplan.orders.streams import first_by_reading
from indexplan.orders.token_windows import other_windows
from indexplan.orders.traits import Traits
from indexplan.orders.units import Units, expand, joined
from indexplan.seeds import BINS, DOCUMENTS

TOKENS_STOP = 2**63
AT_ONCE = 2**20  # pieces that are drawn at a time: 24 MB
KEPT_EPOCHS = 2  # a run reads the end of one epoch and the start of the next


class Blocks(NamedTuple):
    """The blocks of an epoch in stream order, and the tokens where each begins and ends."""

    order: Int64
    begins: Int64


@register
@dataclass(frozen=True, eq=False)
class DocumentWindows(Order):
    """Cuts shuffled documents into windows of equally many tokens, as Megatron's `GPTDataset` does.

    For pre-training. In each epoch the documents are shuffled, laid end to end, and cut into
    windows of `length` tokens, which are shuffled too. A unit is a window: a bin of the documents
    that it reads; `spans` gives the tokens of each.

    Parameters
    ----------
    lengths : Column, array_like of int or path
        The tokens of each document, 1 <= tokens <= 2**40; their sum is below 2**63.
    length : int
        Tokens of a window that are targets, 1 <= length < 2**63: the context length of a model that
        predicts each next token.
    overlap : int, default 1
        Tokens before the targets, which the previous window reads too; length + overlap is at most
        the sum of lengths. A model's targets are its inputs shifted by one token, so 1 gives
        `length` inputs and as many targets.
    block_size : int, default 1024
        Neighbouring documents that stay together, 1 <= block_size < 2**63: blocks are shuffled, and
        so are the documents in each. Reading one window costs as much as shuffling its blocks. For
        a full shuffle, pass the number of documents.
    seed : int, default 0
        0 <= seed < 2**128.

    Raises
    ------
    IndexPlanError
        If a number is out of range, or the documents do not fill a single window.

    Notes
    -----
    Every epoch has (sum(lengths) - overlap) // length windows. It lays out every document once and
    whole, so no token is a target twice in an epoch. Fewer than length + overlap tokens are not
    targets. A document may be in several windows, or in none.

    It takes 40 bytes of memory for each block: 8, and 16 for each of the last 2 epochs that were
    read.

    Examples
    --------
    >>> order = DocumentWindows([5, 3, 9, 4], length=10)
    >>> order.num_units(epoch=0)
    2
    >>> order.take(0, 0, 2), order.offsets(0, 0, 2)  # documents 2, 3, 1, and then 0, 2
    (array([0, 2, 2, 1, 3]), array([0, 2, 5]))
    >>> order.spans(0, 0, 2).tolist()  # tokens 5 to 8 of document 2, 0 to 3 of document 3, ...
    [[0, 5], [0, 6], [5, 9], [0, 3], [0, 4]]
    """

    lengths: Kept = field(metadata=LENGTHS)
    length: int = field(metadata=whole(1, TOKENS_STOP, "pass the model's context length"))
    _: KW_ONLY
    overlap: int = field(default=1, metadata=whole(0, TOKENS_STOP, "leave it out for 1"))
    block_size: int = field(default=1024, metadata=whole(1, 2**63, "leave it out for 1024"))
    seed: int = field(default=0, metadata=SEED)

    algorithm = "document-windows-v1"
    traits = Traits(deals_bins=True, reads="any", cuts_samples=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        vars(self)["num_samples"] = len(self.lengths)
        if (most := self._num_tokens) >= TOKENS_STOP:
            raise invalid("the sum of lengths", "below 2**63", most, "count in larger units")
        if self.length + self.overlap > most:
            got = self.length + self.overlap
            cure = "use shorter windows, or more documents"
            raise invalid("length + overlap", f"at most {most}, the sum of lengths", got, cure)

    @once
    def _num_tokens(self) -> int:
        """The exact number of tokens of all documents."""
        with self.lengths.steady(gone=True) as array:
            return exact_sum(array)

    @property
    def _size(self) -> int:
        """Documents in a full block: `block_size`, or all of them if there are fewer."""
        return min(self.block_size, self.num_samples)

    @once
    def _totals(self) -> Int64:
        """The number of tokens in each block; int64 (num_blocks,)."""
        array, size = self.lengths.array, self._size
        together = size * max(BLOCK // size, 1)  # reduceat makes int64 of what it gets
        parts = [array[start : start + together] for start in range(0, len(array), together)]
        totals = [
            np.add.reduceat(part, np.arange(0, len(part), size), dtype=np.int64)
            if len(part) <= BLOCK
            else part.sum(dtype=np.int64)[None]
            for part in parts
        ]
        self.lengths.check_file()
        return np.concatenate(totals)

    @latest(KEPT_EPOCHS)
    def _stream(self, epoch: int) -> tuple[NDArray[np.uint32], Blocks]:
        """Return the key of an epoch's blocks, and where they are in its stream."""
        words = self._block_words(epoch)
        num = len(self._totals)
        order = np.empty(num, np.int64)
        every = np.zeros(1, np.int64), np.full(1, num)
        kernels.permutation.permute_runs(num, words[:-2], *every, order)
        begins = np.append(0, np.cumsum(self._totals[order]))
        return words[-2:], Blocks(order, begins)

    def _block_words(self, epoch: int) -> NDArray[np.uint32]:
        """Return the key words that shuffle an epoch's blocks, and the key of those in blocks."""
        return self._key_words(
            DOCUMENTS, epoch, 2 * kernels.feistel.num_rounds(len(self._totals)) + 2
        )

    @property
    def _words_of_lengths(self) -> NDArray[np.uint32]:
        """The lengths as 32-bit words, one or two for each."""
        return self.lengths.array.view(np.uint32)

    def num_units(self, epoch: int) -> int:
        """Return the number of windows in an epoch."""
        return (self._num_tokens - self.overlap) // self.length

    def ip_apart(self, saved: Mapping[str, Any], epoch: int, position: int) -> Why | None:
        return other_windows(self.ip_form, saved, position)

    def deal(self, epoch: int, starts: Int64, stops: Int64) -> Units:
        numbers = self._shuffled(BINS, epoch, self.num_units(epoch), starts, stops)
        rising = np.argsort(numbers)  # so that each block is opened once
        return joined(self._pieces(epoch, numbers[rising]), cut=True).moved(rising)

    def ip_offsets(self, epoch: int, starts: Int64, stops: Int64) -> Int64:
        return self.deal(epoch, starts, stops).offsets  # not some at a time: blocks are opened once

    def _pieces(self, epoch: int, numbers: Int64) -> Iterator[Units]:
        """Yield what windows read, a few of the windows at a time: bins of parts of documents."""
        key, blocks = self._stream(epoch)
        each = (self.length + self.overlap) * self.num_samples / self._num_tokens + 2
        room = int(min(len(numbers) * each, AT_ONCE)) + 1
        lengths = self._words_of_lengths
        while len(numbers):
            offsets = np.empty(len(numbers) + 1, np.int64)
            documents, spans = np.empty(room, np.int64), np.empty((room, 2), np.int64)
            done = kernels.documents.read_windows(
                numbers,
                self.length,
                self.overlap,
                *blocks,
                self._size,
                self.num_samples,
                lengths,
                key,
                offsets,
                documents,
                spans.reshape(-1),
            )
            end = int(offsets[done])
            yield Units(documents[:end], np.diff(offsets[: done + 1]), spans[:end])
            numbers = numbers[done:]
            room = room if done else 2 * room
        self.lengths.check_file(gone=True)

    def _windows_of(self, epoch: int, indices: Int64) -> tuple[Int64, Int64]:
        """Return the windows [first, stop) of the stream that read each of some documents."""
        key, (_, begins) = self._stream(epoch)
        words = self._words_of_lengths
        by_block = np.argsort(indices, kind="stable")
        before, places = np.empty((2, len(indices)), np.int64)
        kernels.documents.find_documents(
            indices[by_block], self._size, self.num_samples, words, key, before
        )
        blocks = indices[by_block] // self._size
        kernels.permutation.invert(len(self._totals), self._block_words(epoch)[:-2], blocks, places)
        start = np.empty(len(indices), np.int64)
        start[by_block] = begins[places] + before
        stop = start + self.lengths.array[indices]
        self.lengths.check_file(gone=True)
        # window i reads [i * length, i * length + length + overlap)
        first = np.maximum((start - self.overlap) // self.length, 0)
        last = np.minimum((stop - 1) // self.length, self.num_units(epoch) - 1)
        return first, np.maximum(first, last + 1)

    def tally(self, epoch: int, indices: Int64) -> Int64:
        first, stop = self._windows_of(epoch, indices)
        return stop - first

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        first, stop = self._windows_of(epoch, indices)
        asked, often = np.arange(len(indices)), np.empty(0, np.int64)
        if most == 1:  # to search for a document that many windows read is faster than to list them
            long = stop - first > isqrt(self.num_units(epoch))
            often = first_by_reading(self, epoch, indices[long])
            stop = np.where(long, first, stop)
            asked = np.append(asked, np.flatnonzero(long))
        windows = expand(first, stop)
        positions = self._unshuffled(BINS, epoch, self.num_units(epoch), windows)
        counts = np.append(stop - first, np.ones(len(often), np.int64))
        return np.repeat(asked, counts), np.append(positions, often)
