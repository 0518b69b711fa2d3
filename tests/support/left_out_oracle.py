"""Epochs without some samples, and with spans skipped, as plain lists."""

from __future__ import annotations

from tests.support.oracles import shuffle_forward

Groups = list[tuple[int, int, list[int]]]  # since which epoch and position, and which samples
Spans = list[tuple[int, int, int, str]]  # epoch, start, stop, "drop" or "later"


def shuffled(n: int, seed: int, epoch: int) -> list[int]:
    """Return an epoch of shuffle-v1."""
    return [shuffle_forward(n, seed, epoch, position) for position in range(n)]


def without(row: list[int], epoch: int, groups: Groups) -> list[int]:
    """Return an epoch without the samples of some groups."""
    for since, position, samples in groups:
        first = 0 if since < epoch else position if since == epoch else len(row)
        row = row[:first] + [each for each in row[first:] if each not in samples]
    return row


def skipped(row: list[int], epoch: int, spans: Spans) -> list[int]:
    """Return an epoch with some spans left out, or put off."""
    for of, start, stop, then in spans:
        if of == epoch:
            row = row[:start] + row[stop:] + (row[start:stop] if then == "later" else [])
    return row
