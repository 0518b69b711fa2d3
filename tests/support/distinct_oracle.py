"""distinct-v1 in plain integers, written from docs/specification.md: too simple to be wrong."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.oracles import drawn_words, forward, key_words, rounds_of

TURNS, LABELS, COPIES, BATCHES, SLOTS = range(19, 24)


def shuffled(n: int, seed: int, purpose: int, epoch: int, size: int, at: int) -> int:
    """Return what a shuffle of n things has at a place."""
    return forward(n, key_words(seed, purpose, epoch, 2 * rounds_of(n), size), at)


def read(labels: Sequence[int], batch_size: int, seed: int, epoch: int) -> list[int]:
    """Return all samples that an epoch reads."""
    n, num = len(labels), len(labels) // batch_size
    members: dict[int, list[int]] = {}
    for sample, label in enumerate(labels):
        members.setdefault(label, []).append(sample)
    listed: list[list[int]] = []  # the samples of each label, as this epoch lists them
    key = key_words(seed, COPIES, epoch, 2, n)
    for stratum, size in enumerate(sorted({len(each) for each in members.values()})):
        alike = [members[label] for label in sorted(members) if len(members[label]) == size]
        whose = n + (sum(map(len, listed)) << 64)
        for at in range(len(alike)):
            label = shuffled(len(alike), seed, LABELS, epoch, whose, at)
            words = drawn_words(size, stratum, label, 0, key)
            listed.append([alike[label][forward(size, words, copy)] for copy in range(size)])
    turn = shuffled(len(listed), seed, TURNS, 0, n, epoch % len(listed))
    row = [sample for each in listed[turn:] + listed[:turn] for sample in each]
    found, key = [], key_words(seed, SLOTS, epoch, 2, n)
    for v in range(num):
        batch = shuffled(num, seed, BATCHES, epoch, n, v)
        words = drawn_words(batch_size, v, 0, 0, key)
        found += [row[forward(batch_size, words, at) * num + batch] for at in range(batch_size)]
    return found
