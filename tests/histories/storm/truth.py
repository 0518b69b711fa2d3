"""What the storm put into the store, and the count: what the ranks noted, compared with that.

Imports no indexplan: a fault in the library cannot be in the count as well.
"""

from __future__ import annotations

import hashlib
import io
import struct
import tarfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from random import Random
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

RIGHT, OTHER, LONGER, REVERSED = "right", "other values", "longer values", "rows reversed"
GLOBAL_BATCH, NUM_EPOCHS = 16, 2  # of each run
RECORD = struct.Struct("<qqqq")  # steps done before, epoch, sample, checksum of its value


@dataclass(frozen=True)
class Truth:
    """A dataset of Parquet files or tars; sample i is the one that comes after i others.

    Parameters
    ----------
    seed : str
    groups : tuple of tuple of int
        Rows of each row group of each file.
    width : int
        Bytes of a value.
    statistics, checksums : bool
        Whether footers tell the least and largest value, and pages have checksums.
    tars : bool
        Whether files are tars, in which a sample has two members.
    """

    seed: str
    groups: tuple[tuple[int, ...], ...]
    width: int
    statistics: bool
    checksums: bool
    tars: bool = False

    @property
    def num_samples(self) -> int:
        """Samples in all files."""
        return sum(map(sum, self.groups))

    @property
    def names(self) -> list[str]:
        """The names of the files."""
        ending = "tar" if self.tars else "parquet"
        return [f"part-{number:04}.{ending}" for number in range(len(self.groups))]

    def value(self, sample: int, version: str = RIGHT) -> bytes:
        """Return the value of a sample, in a version of its file."""
        version = RIGHT if version == REVERSED else version
        more = 512 if self.tars else 8  # tars fill blocks of 512 bytes
        width = self.width + more * (version == LONGER)
        return hashlib.shake_256(f"{self.seed} {version} {sample}".encode()).digest(width)

    def file(self, number: int, version: str = RIGHT) -> bytes:
        """Return the bytes of a file; all versions but LONGER have as many."""
        return _written(self, number, version)

    def file_of(self, shard: int, *, whole_files: bool) -> int:
        """Return the number of the file that a shard is in."""
        if whole_files:
            return shard
        of = [number for number, groups in enumerate(self.groups) for _ in groups]
        return of[shard]


@cache
def _written(truth: Truth, number: int, version: str) -> bytes:
    first = sum(map(sum, truth.groups[:number]))
    if truth.tars:
        return _tar(truth, range(first, first + sum(truth.groups[number])), version)
    schema = pa.schema({"id": pa.int64(), "value": pa.binary()})
    out = io.BytesIO()
    options = {
        "compression": "none",
        "use_dictionary": False,
        "write_statistics": truth.statistics,
        "write_page_checksum": truth.checksums,
    }
    with pq.ParquetWriter(out, schema, **options) as writer:
        for rows in truth.groups[number]:
            ids = list(range(first, first + rows))
            if version == REVERSED:
                ids.reverse()
            values = [truth.value(sample, version) for sample in ids]
            writer.write_table(pa.table({"id": ids, "value": values}, schema))
            first += rows
    return out.getvalue()


def _tar(truth: Truth, samples: range, version: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for sample in reversed(samples) if version == REVERSED else samples:
            members = {"id": b"%06d" % sample, "value": truth.value(sample, version)}
            for extension, data in members.items():
                member = tarfile.TarInfo(f"{sample:06}.{extension}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
        stop = tar.offset
    return out.getvalue()[:stop] + bytes(1024)  # not filled up to a multiple of 10,240 bytes


def drawn(random: Random, seed: str, *, tars: bool) -> Truth:
    """Draw a dataset whose number of samples is a multiple of a global batch."""
    groups = [[random.randint(6, 20) for _ in range(random.randint(2, 5))] for _ in range(8)]
    groups[-1][-1] += -sum(map(sum, groups)) % GLOBAL_BATCH
    return Truth(
        seed,
        tuple(map(tuple, groups)),
        random.choice([16, 200, 1500]),
        statistics=random.random() < 0.5,
        checksums=random.random() < 0.5,
        tars=tars,
    )


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


def count(truth: Truth, logs: Iterable[Log], *, finished: bool) -> Count:
    """Count every sample of every epoch; those that were read wrong count wherever they were."""
    sums = [zlib.crc32(truth.value(sample)) for sample in range(truth.num_samples)]
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
    every = product(range(NUM_EPOCHS * finished), range(len(sums)))
    lost = [f"epoch {key[0]}, sample {key[1]}" for key in every if not times[key]]
    twice = [f"epoch {epoch}, sample {sample}" for (epoch, sample), n in times.items() if n > 1]
    return Count(wrong, lost, twice, num_read)
