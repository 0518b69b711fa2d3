"""Distinct beside sentence-transformers' NO_DUPLICATES, and by itself at many samples.

`python -m benchmarks.measure.distinct 1e6` compares the two, where sentence-transformers is
installed; `1e8 --alone` measures Distinct by itself. Labels are drawn so that few are often: the
k-th of n / 4 by 1 / k, capped at one for each batch. Seconds are of the CPU in one thread.
"""

from __future__ import annotations

import os
import sys
import tempfile
from time import process_time
from typing import Any

import numpy as np

import indexplan as ip
from benchmarks.measure.tables import private

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


def theirs(labels: Any, *, hashed: bool) -> None:
    """Print what an epoch of NO_DUPLICATES costs and reads, on one rank and on two."""
    import torch
    from datasets import Dataset
    from sentence_transformers.base.sampler import NoDuplicatesBatchSampler

    rows = Dataset.from_dict({"query": labels, "answer": np.arange(len(labels)) + len(labels)})
    for size in (G, G // 2):  # its batches are one rank's; two make a global batch
        generator, began = torch.Generator(), process_time()
        sampler = NoDuplicatesBatchSampler(
            rows, size, True, generator=generator, precompute_hashes=hashed, precompute_num_proc=1
        )
        batches = list(sampler)
        seconds, times = process_time() - began, G // size
        whole = [np.concatenate(batches[i : i + times]) for i in range(0, len(batches), times)]
        found = counted(whole, labels)
        print(
            f"NO_DUPLICATES hashed={hashed} ranks={times}: {seconds:.1f} s an epoch, {told(found)}"
        )


def ours(labels: Any, *, count: bool) -> None:
    """Print what Distinct costs, and what an epoch of it reads."""
    small = ip.Distinct(np.arange(10_000), G)  # compiles
    small.locate(0, small.take(0, 0, G))
    order, before, began = ip.Distinct(labels, G, seed=1), private(), process_time()
    num = order.num_units(0)
    seconds, held = process_time() - began, order.ip_table_bytes / len(labels)
    print(f"Distinct: {seconds:.1f} s to build, {held:.0f} bytes a sample of the table,", end=" ")
    print(f"{(private() - before) / len(labels):.1f} of the process after that")
    steps = np.random.default_rng(0).integers(0, num // G, 500).tolist()
    began = process_time()
    reads = [order.take(5, step * G, (step + 1) * G) for step in steps]
    taken = (process_time() - began) / len(steps) / G
    began = process_time()
    for row in reads:
        order.locate(5, row)
    found = (process_time() - began) / len(steps) / G
    print(f"one batch of {G} anywhere: {taken * 1e9:.0f} ns a sample; back: {found * 1e9:.0f} ns")
    if count:
        began = process_time()
        batches = [order.take(0, step * G, (step + 1) * G) for step in range(num // G)]
        seconds = process_time() - began
        print(f"{seconds:.2f} s an epoch, {told(counted(batches, labels))}")


def told(found: tuple[int, int, int]) -> str:
    """Return counts in words."""
    return "{} share a label in a global batch, {} are not read, {} again".format(*found)


if __name__ == "__main__":
    os.environ["INDEXPLAN_CACHE"] = tempfile.mkdtemp()  # so that the table is built
    drawn = labels_of(int(float(sys.argv[1])))
    ours(drawn, count=len(drawn) <= 10**7)
    if "--alone" not in sys.argv:
        for each in (True, False):
            theirs(drawn, hashed=each)
