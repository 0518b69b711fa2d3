"""The class orders in the words of docs/specification.md, read by read: too simple to be wrong."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

from tests.support.oracles import (
    CLASS_NUMBERS,
    CLASS_ROWS,
    MEMBERS,
    drawn_words,
    forward,
    key_words,
    rounds_of,
)

TURNS, LABELS, COPIES, BATCHES, SLOTS = range(19, 24)  # purposes of key words


@cache
def key(seed: int, purpose: int, num_samples: int) -> list[int]:
    """Return a Philox key; none of these depends on the epoch."""
    return key_words(seed, purpose, 0, 2, num_samples)


def dealt(n: int, size: int, row: int, at: int, first: int, number: int, last: int, k: Any) -> int:
    """Return what a row of n things deals at some place, in tuples of `size`, turned each row."""
    period = n - n % size if n >= size else n
    drawn = forward(period, drawn_words(period, first, number, last, k), at)
    return ((row + 1) * (n - period) + drawn) % n


def row_thing(n: int, size: int, key: Any, row: int, at: int) -> int:
    """Return what a row of classes, or of slots, deals at a place."""
    return dealt(n, size, row, at, row % 2**32, row >> 32, 0, key)


def member(n: int, size: int, key: Any, c: int, number: int) -> int:
    """Return which of its n members class c deals as its number."""
    turn, at = divmod(number, n - n % size if n >= size else n)
    return dealt(n, size, turn, at, c, turn % 2**32, turn >> 32, key)


def classes_of(labels: Sequence[int]) -> list[list[int]]:
    """Return the samples of each class, by rising label."""
    return [[i for i, each in enumerate(labels) if each == label] for label in sorted(set(labels))]


def shares_of(total: int, weights: Sequence[float]) -> list[int]:
    """Return how often a row reads each class: by largest remainder, ties to the first."""
    exact = [Fraction(weight) * total / sum(map(Fraction, weights)) for weight in weights]
    shares = [int(each) for each in exact]
    while sum(shares) < total:
        rests = [each - share for each, share in zip(exact, shares, strict=True)]
        shares[rests.index(max(rests))] += 1
    return shares


def balanced(
    labels: Sequence[int],
    epoch_size: int,
    weights: Sequence[float] | None,
    seed: int,
    place: int,
) -> int:
    """Return the sample at a place of the stream of class-balanced-v1."""
    groups = classes_of(labels)
    shares = [1] * len(groups) if weights is None else shares_of(epoch_size, weights)
    owners = [c for c, share in enumerate(shares) for _ in range(share)]
    row, at = divmod(place, len(owners))
    slot = row_thing(len(owners), 1, key(seed, CLASS_ROWS, len(labels)), row, at)
    c = owners[slot]
    number = row * shares[c] + slot - owners.index(c)
    return groups[c][member(len(groups[c]), 1, key(seed, MEMBERS, len(labels)), c, number)]


def batch(
    labels: Sequence[int], classes: int, per_class: int, seed: int, short: str, unit: int
) -> list[int]:
    """Return a unit of the stream of class-batches-v1."""
    groups = classes_of(labels)
    if short == "leave_out":
        groups = [group for group in groups if len(group) >= per_class]
    n = len(groups)
    row, t = divmod(unit, n // classes)
    words = key_words(seed, CLASS_NUMBERS, 0, 2 * rounds_of(n), len(labels))
    rows, members = (key(seed, purpose, len(labels)) for purpose in (CLASS_ROWS, MEMBERS))
    found = []
    for i in range(classes):
        thing = row_thing(n, classes, rows, row, t * classes + i)
        left_out = (row * (n % classes) - thing + n - 1) // n
        c = forward(n, words, thing)
        for j in range(per_class):
            number = (row - left_out) * per_class + j
            found.append(groups[c][member(len(groups[c]), per_class, members, c, number)])
    return found


def shuffled(n: int, seed: int, purpose: int, epoch: int, size: int, at: int) -> int:
    """Return what a shuffle of n things has at a place."""
    return forward(n, key_words(seed, purpose, epoch, 2 * rounds_of(n), size), at)


def distinct(labels: Sequence[int], batch_size: int, seed: int, epoch: int) -> list[int]:
    """Return all samples that an epoch of distinct-v1 reads."""
    n, num = len(labels), len(labels) // batch_size
    members: dict[int, list[int]] = {}
    for sample, label in enumerate(labels):
        members.setdefault(label, []).append(sample)
    listed: list[list[int]] = []  # the samples of each label, as this epoch lists them
    drawn = key_words(seed, COPIES, epoch, 2, n)
    for stratum, size in enumerate(sorted({len(each) for each in members.values()})):
        alike = [members[label] for label in sorted(members) if len(members[label]) == size]
        whose = n + (sum(map(len, listed)) << 64)
        for at in range(len(alike)):
            label = shuffled(len(alike), seed, LABELS, epoch, whose, at)
            words = drawn_words(size, stratum, label, 0, drawn)
            listed.append([alike[label][forward(size, words, copy)] for copy in range(size)])
    turn = shuffled(len(listed), seed, TURNS, 0, n, epoch % len(listed))
    row = [sample for each in listed[turn:] + listed[:turn] for sample in each]
    found, drawn = [], key_words(seed, SLOTS, epoch, 2, n)
    for v in range(num):
        batch = shuffled(num, seed, BATCHES, epoch, n, v)
        words = drawn_words(batch_size, v, 0, 0, drawn)
        found += [row[forward(batch_size, words, at) * num + batch] for at in range(batch_size)]
    return found
