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


def say(what: str, seconds: float, batches: Any, labels: Any) -> None:
    """Print what an epoch cost, and how often labels meet, and samples are not read or again."""
    meet, reads = 0, np.zeros(len(labels), np.int64)
    for batch in batches:
        meet += len(batch) - len(np.unique(labels[batch]))
        np.add.at(reads, batch, 1)
    print(
        f"{what}: {seconds:.2f} s, {meet} share a label in a global batch, "
        f"{(reads == 0).sum()} are not read, {(reads - 1).clip(0).sum()} again"
    )


def main(labels: Any) -> None:
    """Print this of Distinct, for any number of ranks, and of theirs, for one rank and two."""
    import torch
    from datasets import Dataset
    from sentence_transformers.base.sampler import NoDuplicatesBatchSampler

    began = process_time()
    order = ip.Distinct(labels, G, seed=1)
    batches = [order.take(0, step * G, (step + 1) * G) for step in range(order.num_units(0) // G)]
    say("Distinct", process_time() - began, batches, labels)
    rows = Dataset.from_dict({"query": labels, "answer": np.arange(len(labels)) + len(labels)})
    for ranks in (1, 2):  # its batches are one rank's
        generator, began = torch.Generator(), process_time()
        sampler = NoDuplicatesBatchSampler(
            rows,
            G // ranks,
            True,
            generator=generator,
            precompute_hashes=True,
            precompute_num_proc=1,
        )
        read = list(sampler)
        seconds = process_time() - began
        whole = [np.concatenate(read[i : i + ranks]) for i in range(0, len(read), ranks)]
        say(f"NO_DUPLICATES_HASHED, {ranks} ranks", seconds, whole, labels)


if __name__ == "__main__":
    main(labels_of(int(float(sys.argv[1]))))
