"""Distinct beside NO_DUPLICATES_HASHED of sentence-transformers, of so many samples: 1e6.

Labels are drawn so that few are often: the k-th of n / 4 by 1 / k, capped at one for each batch.
Seconds are of the CPU in one thread. What its table costs is on the page of tables.
"""

from __future__ import annotations

import sys
from time import process_time
from typing import Any

import numpy as np

import indexplan as ip

G = 1024  # samples in a global batch


def labels_of(n: int) -> Any:
    """Return n labels of which few are often, in some sequence."""
    kinds = n // 4
    weights = 1 / np.arange(1, kinds + 1)
    counts = np.minimum(np.floor(weights * (n / weights.sum())).astype(np.int64) + 1, n // G)
    labels = np.repeat(np.arange(kinds, dtype=np.int32), counts)[:n]
    rest = np.arange(kinds, kinds + n - len(labels), dtype=np.int32)  # one sample each
    labels = np.concatenate([labels, rest])
    np.random.default_rng(0).shuffle(labels)
    return labels


def counted(batches: Any, labels: Any) -> tuple[int, int, int]:
    """Return samples that share a label in a batch, those that are not read, and read again."""
    meet, reads = 0, np.zeros(len(labels), np.int64)
    for batch in batches:
        meet += len(batch) - len(np.unique(labels[batch]))
        np.add.at(reads, batch, 1)
    return meet, int((reads == 0).sum()), int((reads - 1).clip(0).sum())


def theirs(labels: Any) -> None:
    """Print what an epoch of NO_DUPLICATES_HASHED costs and reads, on one rank and on two."""
    import torch
    from datasets import Dataset
    from sentence_transformers.base.sampler import NoDuplicatesBatchSampler

    rows = Dataset.from_dict({"query": labels, "answer": np.arange(len(labels)) + len(labels)})
    for size in (G, G // 2):  # its batches are one rank's; two make a global batch
        generator, began = torch.Generator(), process_time()
        sampler = NoDuplicatesBatchSampler(
            rows, size, True, generator=generator, precompute_hashes=True, precompute_num_proc=1
        )
        batches = list(sampler)
        seconds, times = process_time() - began, G // size
        whole = [np.concatenate(batches[i : i + times]) for i in range(0, len(batches), times)]
        found = counted(whole, labels)
        print(f"NO_DUPLICATES_HASHED, {times} ranks: {seconds:.1f} s an epoch, {told(found)}")


def ours(labels: Any) -> None:
    """Print what an epoch of Distinct costs and reads, on any number of ranks."""
    began = process_time()
    order = ip.Distinct(labels, G, seed=1)
    batches = [order.take(0, step * G, (step + 1) * G) for step in range(order.num_units(0) // G)]
    seconds = process_time() - began
    print(f"Distinct: {seconds:.2f} s, {told(counted(batches, labels))}")


def told(found: tuple[int, int, int]) -> str:
    """Return counts in words."""
    return "{} share a label in a global batch, {} are not read, {} again".format(*found)


if __name__ == "__main__":
    drawn = labels_of(int(float(sys.argv[1])))
    ours(drawn)
    theirs(drawn)
