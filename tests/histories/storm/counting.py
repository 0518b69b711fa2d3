"""The count: what the ranks noted, compared with what was put into the store.

Imports no indexplan: a fault in the library cannot be in the count as well.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.histories.storm.truth import Truth

RECORD = struct.Struct("<qqqq")  # steps done before, epoch, sample, checksum of its value


class Log(NamedTuple):
    """What one process of a rank noted; it counts up to the step from which another went on."""

    path: Path
    until: int


class Count(NamedTuple):
    """Samples that were read wrong by anybody; of those that counted, lost and read twice."""

    wrong: list[str]
    lost: list[str]
    twice: list[str]
    num_read: int


def records(path: Path) -> Iterator[tuple[int, int, int, int]]:
    """Yield the records of a log, which may end in half of one."""
    data = path.read_bytes() if path.exists() else b""
    yield from RECORD.iter_unpack(data[: len(data) // RECORD.size * RECORD.size])


def count(truth: Truth, logs: Iterable[Log], num_epochs: int, *, finished: bool) -> Count:
    """Count every sample of every epoch; those that were read wrong count wherever they were."""
    sums = truth.checksums_of_values()
    times: Counter[tuple[int, int]] = Counter()
    wrong, num_read = [], 0
    for log in logs:
        for done, epoch, sample, checksum in records(log.path):
            num_read += 1
            where = f"epoch {epoch}, sample {sample} ({log.path.name})"
            if not 0 <= sample < len(sums):
                wrong.append(f"no such sample: {where}")
            elif checksum != sums[sample]:
                wrong.append(f"another value: {where}")
            if done < log.until:
                times[epoch, sample] += 1
    there = [(epoch, sample) for epoch in range(num_epochs) for sample in range(len(sums))]
    lost = [f"epoch {epoch}, sample {sample}" for epoch, sample in there if finished]
    lost = [text for text, key in zip(lost, there, strict=False) if not times[key]]
    twice = [f"epoch {epoch}, sample {sample}" for (epoch, sample), n in times.items() if n > 1]
    return Count(wrong, lost, twice, num_read)
