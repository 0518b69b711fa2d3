"""Epochs without some samples, as plain lists."""

from __future__ import annotations

from tests.support.oracles import shuffle_forward

Groups = list[tuple[int, int, list[int]]]  # since which epoch and position, and which samples


def shuffled(n: int, seed: int, epoch: int) -> list[int]:
    """Return an epoch of shuffle-v1."""
    return [shuffle_forward(n, seed, epoch, position) for position in range(n)]


def without(row: list[int], epoch: int, groups: Groups) -> list[int]:
    """Return an epoch without the samples of some groups."""
    for since, position, samples in groups:
        first = 0 if since < epoch else position if since == epoch else len(row)
        row = row[:first] + [each for each in row[first:] if each not in samples]
    return row
