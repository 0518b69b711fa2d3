"""What the kernels compute, in plain Python integers, one number at a time.

Written from the definitions in docs/specification.md, not the kernels: too simple to be wrong.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

SHUFFLE, BLOCKS, WINDOWS = 0, 1, 2  # purposes of key words
CLASS_ROWS, CLASS_NUMBERS, MEMBERS, LOCAL = 7, 8, 9, 10
M0, M1 = 0xD2511F53, 0xCD9E8D57


def key_words(seed: int, purpose: int, epoch: int, count: int, *size: int) -> list[int]:
    """Return `count` key words of an order of some size, or of a mixture, which passes none."""
    sequence = np.random.SeedSequence(seed, spawn_key=(purpose, epoch, *size))
    return [int(word) for word in sequence.generate_state(count, np.uint32)]


def rounds_of(n: int) -> int:
    return 24 if n < 2**12 else 12 if n < 2**20 else 8


def sides_of(n: int) -> tuple[int, int]:
    """Return a and b, the sides of the domain of the network."""
    a = math.isqrt(n - 1) + 1  # ceil(sqrt(n))
    b = -(-n // a)
    return a, b + b % 2


def philox(counter: Sequence[int], key: Sequence[int]) -> list[int]:
    """Return the four words of Philox4x32-10 (Salmon et al. 2011)."""
    c, k = list(counter), list(key)
    for _ in range(10):
        high0, low0 = divmod(c[0] * M0, 2**32)
        high1, low1 = divmod(c[2] * M1, 2**32)
        c = [high1 ^ c[1] ^ k[0], low1, high0 ^ c[3] ^ k[1], low0]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return c


def f(x: int, k0: int, k1: int, m: int) -> int:
    t = (x ^ k0) * M0
    t = (t ^ t >> 32) % 2**32
    t = (t ^ k1) * M1
    t = (t ^ t >> 32) % 2**32
    return t * m >> 32


def forward(n: int, words: Sequence[int], position: int) -> int:
    """Return the index of a position, by shuffle-v1 with these key words."""
    a, b = sides_of(n)
    k0, k1 = words[0::2], words[1::2]
    while True:
        left, right = divmod(position, b)
        for i in range(0, rounds_of(n), 2):
            left = (left + f(right, k0[i], k1[i], a)) % a
            right = (right + f(left, k0[i + 1], k1[i + 1], b)) % b
        position = left * b + right
        if position < n:
            return position


def backward(n: int, words: Sequence[int], index: int) -> int:
    """Return the position of an index, by shuffle-v1 with these key words."""
    a, b = sides_of(n)
    k0, k1 = words[0::2], words[1::2]
    while True:
        left, right = divmod(index, b)
        for i in reversed(range(0, rounds_of(n), 2)):
            right = (right - f(left, k0[i + 1], k1[i + 1], b)) % b
            left = (left - f(right, k0[i], k1[i], a)) % a
        index = left * b + right
        if index < n:
            return index


def shuffle_forward(n: int, seed: int, epoch: int, position: int) -> int:
    return forward(n, key_words(seed, SHUFFLE, epoch, 2 * rounds_of(n), n), position)


def drawn_words(m: int, first: int, number: int, last: int, key: Sequence[int]) -> list[int]:
    """Return the key words of a shuffle on [0, m), from Philox(first, number, i // 2, last)."""
    words = []
    for i in range(0, rounds_of(m), 2):
        words += philox([first, number, i // 2, last], key)
    return words


def window_words(n: int, m: int, seed: int, epoch: int, v: int) -> list[int]:
    """Return the key words of window v, of m positions."""
    return drawn_words(m, v % 2**32, v >> 32, 0, key_words(seed, WINDOWS, epoch, 2, n))


class Blocks:
    """The slots and windows of block-shuffle-v1."""

    def __init__(self, n: int, block_size: int, window: int, seed: int, epoch: int) -> None:
        self.n, self.block_size, self.window = n, block_size, window
        self.num_blocks = -(-n // block_size)
        self.words = key_words(seed, BLOCKS, epoch, 2 * rounds_of(self.num_blocks), n)
        self.short_slot = self.slot_of(self.num_blocks - 1)
        self.missing = self.num_blocks * block_size - n

    def block_in(self, slot: int) -> int:
        return forward(self.num_blocks, self.words, slot)

    def slot_of(self, block: int) -> int:
        return backward(self.num_blocks, self.words, block)

    def start_of(self, slot: int) -> int:
        """Return the first position of a slot, or n for the slot after the last."""
        return slot * self.block_size - (self.missing if slot > self.short_slot else 0)

    def slot_at(self, position: int) -> int:
        """Return the slot of a position, by bisection."""
        return bisect_right(range(self.num_blocks), position, key=self.start_of) - 1

    def window_of(self, slot: int) -> tuple[int, int, int]:
        """Return a slot's window, and the start and stop of its positions."""
        v = slot // self.window
        stop_slot = min((v + 1) * self.window, self.num_blocks)
        return v, self.start_of(v * self.window), self.start_of(stop_slot)


def block_shuffle_forward(
    n: int, block_size: int, window: int, seed: int, epoch: int, position: int
) -> int:
    blocks = Blocks(n, block_size, window, seed, epoch)
    v, start, stop = blocks.window_of(blocks.slot_at(position))
    words = window_words(n, stop - start, seed, epoch, v)
    place = start + forward(stop - start, words, position - start)
    slot = blocks.slot_at(place)
    return blocks.block_in(slot) * block_size + place - blocks.start_of(slot)


def local_window(
    n: int, window: int, seed: int, epoch: int, place: int
) -> tuple[int, int, list[int]]:
    """Return the start, size and key words of the window of local-shuffle-v1 at a place."""
    v = place // window
    m = min(window, n - v * window)
    words = drawn_words(m, v % 2**32, v >> 32, 0, key_words(seed, LOCAL, epoch, 2, n))
    return v * window, m, words


def local_shuffle_forward(n: int, window: int, seed: int, epoch: int, position: int) -> int:
    start, m, words = local_window(n, window, seed, epoch, position)
    return start + forward(m, words, position - start)
