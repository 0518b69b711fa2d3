"""What a ShardShuffle deals, in plain Python integers, one place at a time.

Written from the definition in docs/specification.md, not the kernels: too simple to be wrong.
"""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

from tests.support.oracles import drawn_words, forward, key_words, rounds_of

SHARDS, PIECES, LANE_WINDOWS = 11, 12, 13  # purposes of key words


class Shards(NamedTuple):
    """The fields of a ShardShuffle, as plain numbers."""

    sizes: list[int]
    lanes: int
    stripe: int
    window: int
    sticky: bool
    grid: str
    seed: int

    @property
    def places(self) -> int:
        """Return how many places a window has: whole turns of its lane."""
        w, turn = self.window * -(-sum(self.sizes) // len(self.sizes)), self.stripe // self.lanes
        return w + -w % turn

    def words(self, purpose: int, epoch: int, count: int) -> list[int]:
        """Return key words."""
        return key_words(self.seed, purpose, epoch, count, sum(self.sizes))

    def lane_at(self, x: int) -> int:
        """Return the lane of a place of the grid."""
        return x % self.stripe // (self.stripe // self.lanes)

    def row(self, epoch: int) -> list[int]:
        """Return the samples of the shards in their slots, one after another."""
        num = len(self.sizes)
        words = self.words(SHARDS, 0 if self.sticky else epoch, 2 * rounds_of(num))
        first = [sum(self.sizes[:shard]) for shard in range(num)]
        samples = []
        for slot in range(num):
            shard = forward(num, words, slot)
            samples += range(first[shard], first[shard] + self.sizes[shard])
        return samples

    def in_pieces(self, epoch: int, lane: int, samples: list[int]) -> list[int]:
        """Return the samples of a lane with its pieces of shards put in order anew."""
        shard_of = [shard for shard, size in enumerate(self.sizes) for _ in range(size)]
        pieces = [[*piece] for _, piece in groupby(samples, shard_of.__getitem__)]
        m, key = len(pieces), self.words(PIECES, epoch, 2)
        words = drawn_words(m, lane, 0, 0, key)
        return [sample for i in range(m) for sample in pieces[forward(m, words, i)]]

    def mixed(self, epoch: int, lane: int, samples: list[int]) -> list[int]:
        """Return the samples of a lane shuffled inside its windows."""
        w, key, out = self.places, self.words(LANE_WINDOWS, epoch, 2), []
        for v in range(-(-len(samples) // w)):
            part = samples[v * w : (v + 1) * w]
            words = drawn_words(len(part), v % 2**32, v >> 32, lane, key)
            out += [part[forward(len(part), words, i)] for i in range(len(part))]
        return out

    def epoch(self, epoch: int) -> list[int]:
        """Return the indices of an epoch."""
        n = sum(self.sizes)
        d = epoch * n % self.stripe if self.grid == "stream" else 0
        lanes = [self.lane_at(p + d) for p in range(n)]
        row = self.row(epoch)
        dealt, start = {}, 0
        for lane in sorted(set(lanes)):
            samples = row[start : start + lanes.count(lane)]
            start += len(samples)
            if self.sticky:
                samples = self.in_pieces(epoch, lane, samples)
            dealt[lane] = iter(self.mixed(epoch, lane, samples))
        return [next(dealt[lane]) for lane in lanes]
