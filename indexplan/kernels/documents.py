"""Windows of a stream of documents in blocks. Frozen: other bits are another version.

The stream consists of blocks of neighbouring documents, one after another; the documents of each
block are shuffled. Only where the blocks begin is kept in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from indexplan.kernels.compiling import INT64, READ_INT64, READ_UINT32, WRITE_INT64, helper, kernel
from indexplan.kernels.feistel import LANES, MOST_WORDS, count_up, drawn_cipher, permute
from indexplan.kernels.philox import HALF, LOW, U64, ZERO
from indexplan.kernels.strata import last_up_to

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s: TypeAlias = NDArray[np.int64]
    UInt32s: TypeAlias = NDArray[np.uint32]


@helper
def _open_block(
    block: int, size: int, n: int, lengths: UInt32s, key: UInt32s, members: Int64s, ends: Int64s
) -> int:
    """Write a block's documents as the stream has them, and where each ends; return their count."""
    left, right, words = np.empty(LANES, U64), np.empty(LANES, U64), np.empty(MOST_WORDS, U64)
    first, each = block * size, len(lengths) // n
    num = min(size, n - first)
    cipher = drawn_cipher(U64(num), U64(block) & LOW, U64(block) >> HALF, ZERO, key, words)
    for done in range(0, num, LANES):
        lanes = min(LANES, num - done)
        count_up(left, lanes, U64(done))
        permute(left, right, lanes, cipher, True, False, members[done:])
    ends[0] = 0
    for j in range(num):
        document = first + members[j]
        members[j] = document
        length = np.int64(lengths[each * document])
        if each == 2:
            length += np.int64(lengths[each * document + 1]) << 32
        ends[j + 1] = ends[j] + length
    return num


@kernel(
    READ_INT64,
    INT64,
    INT64,
    READ_INT64,
    READ_INT64,
    INT64,
    INT64,
    READ_UINT32,
    READ_UINT32,
    WRITE_INT64,
    WRITE_INT64,
    WRITE_INT64,
)
def read_windows(
    numbers: Int64s,
    length: int,
    overlap: int,
    blocks: Int64s,
    begins: Int64s,
    size: int,
    n: int,
    lengths: UInt32s,
    key: UInt32s,
    offsets: Int64s,
    documents: Int64s,
    spans: Int64s,
) -> int:
    """Write the pieces of documents that some windows read; return how many windows had room.

    Parameters
    ----------
    numbers : int64 (num,)
        The windows: number i reads length + overlap tokens of the stream, from i * length on.
        Fastest if they rise, as each block is then opened once.
    length, overlap : int
        In tokens.
    blocks, begins : int64 (num_blocks,) and (num_blocks + 1,)
        The blocks in the order of the stream; at which token each begins, and the last ends.
    size, n : int
        Documents in a block, and in total; the last block has what is left.
    lengths : uint32 (n,) or (2 * n,)
        The tokens of each document, at least 1, in one word or in two, the lower one first.
    key : uint32 (2,)
        The Philox key that yields the key words of every block.
    offsets : int64 (num + 1,)
        Gets where the pieces of each window begin, and where the last ones end.
    documents, spans : int64 (room,) and (2 * room,)
        Get each piece's document, and the first of its tokens there and the one past the last.
    """
    members, ends = np.empty(size, np.int64), np.empty(size + 1, np.int64)
    opened, num, room = -1, 0, 0
    offsets[0] = 0
    for k in range(len(numbers)):
        token = numbers[k] * length
        stop = token + length + overlap
        place = last_up_to(begins, token)
        while token < stop and place < len(blocks):
            if place != opened:
                num = _open_block(blocks[place], size, n, lengths, key, members, ends)
                opened = place
            begin = begins[place]
            j = last_up_to(ends[: num + 1], token - begin)
            while j < num and token < stop:
                if room == len(documents):
                    return k
                documents[room] = members[j]
                last = min(stop, begin + ends[j + 1])
                spans[2 * room] = token - begin - ends[j]
                spans[2 * room + 1] = last - begin - ends[j]
                room += 1
                token = last
                j += 1
            place += 1
        offsets[k + 1] = room
    return len(numbers)


@kernel(READ_INT64, INT64, INT64, READ_UINT32, READ_UINT32, WRITE_INT64)
def find_documents(
    sought: Int64s, size: int, n: int, lengths: UInt32s, key: UInt32s, out: Int64s
) -> None:
    """Write at which token of its block each of some documents begins.

    Parameters
    ----------
    sought : int64 (num,)
        The documents; fastest if those of a block are neighbours.
    size, n, lengths, key
        As for `read_windows`.
    out : int64 (num,)
        Gets the number of tokens before each in its block.
    """
    members, ends = np.empty(size, np.int64), np.empty(size + 1, np.int64)
    begins = np.empty(size, np.int64)
    opened = -1
    for k in range(len(sought)):
        block = sought[k] // size
        if block != opened:
            num = _open_block(block, size, n, lengths, key, members, ends)
            opened = block
            for j in range(num):
                begins[members[j] - block * size] = ends[j]
        out[k] = begins[sought[k] - block * size]
