"""Fetch and check shards: whole files, or row groups, from an object store or a folder."""

from __future__ import annotations

import glob
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from fsspec import AbstractFileSystem
from fsspec.callbacks import Callback
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from indexplan import IndexPlanError, PlanFileError, Shards, shard_sizes
from indexplan.errors import counted
from indexplan_fetch.answers import AnswerError, watch
from indexplan_fetch.columns import Spans, merged, missing, spans_of
from indexplan_fetch.sums import same_stamp
from indexplan_fetch.unzip import has_hash, unzip

BLOCK = 4096  # bytes that file systems give a file at a time
TAIL = 2**16  # bytes at a file's end that are read first: most footers are shorter
DIGEST = 32  # hexadecimal digits of a footer's digest
PIECE = 2**24  # bytes of a row group that are held in memory
FOOTERS = 2**26  # bytes of footers that are kept, so that a file's is fetched once

RESTORE = "restore it, or read the sizes again with shard_sizes and build a new plan"


class LeftError(Exception):
    """A fetch that was given up, or that brought more bytes than the file should have."""


class StalledError(Exception):
    """A fetch that brings no more bytes; the message says for how long."""


class ColumnError(PlanFileError):
    """A file without a column that is to be read."""


class Footer(NamedTuple):
    """The end of a Parquet file, and where the columns to fetch of its row groups are."""

    data: bytes
    parts: list[Spans]
    stamp: str
    """Of the file, before its footer was read."""


class Came(NamedTuple):
    """What a fetch has written to a file."""

    num_bytes: int
    """That came, with those of the footer if it was read."""
    before: str
    after: str
    """Stamps of the file that they came from, before and after they came."""
    spans: list[tuple[int, int]]
    """Where they are, and what was written with them."""


class Source:
    """The files of shards, read through fsspec; all threads share one, and its connections.

    Parameters
    ----------
    shards : Shards
    place : str
        The URL or absolute path that they are in.
    columns : tuple of str, optional
        Of Parquet files, fetch these only.
    """

    def __init__(self, shards: Shards, place: str, columns: tuple[str, ...] | None = None) -> None:
        self.shards, self.columns = shards, columns
        self._as_a_whole = shards.whole_files and columns is None
        self._stamped = replace(shards, path=place)  # wherever this process goes
        # an instance of its own, as its answers are compared with stamps
        self.store, self.root = url_to_fs(place, skip_instance_cache=place.startswith("s3"))
        self._files = {name: number for number, name in enumerate(shards.files)}
        self._footers: OrderedDict[str, Footer] = OrderedDict()
        self._on_disk: dict[int, int] = {}  # of row groups
        # of each file once it is known, by shards or by what was fetched of it
        self._stamps = {at: each for at, each in enumerate(shards.stamps) if each}
        self._noting = threading.Lock()
        watch(self.store, self._etag)

    def file(self, shard: int) -> tuple[str, int, int]:
        """Return the file that a shard is in: its name, its number, and its size in bytes."""
        name, _ = self.shards.part(shard)
        number = self._files[name]
        return name, number, self.shards.num_bytes[number]

    def _etag(self, path: str) -> str:
        """Return the ETag of a file of the store; "" if it is not known."""
        number = self._files.get(path.removeprefix(f"{self.root}/"))
        stamp = "" if number is None else self._stamps.get(number, "")
        return stamp[4:] if stamp.startswith("tag:") else ""

    def replaced(self, shard: int) -> PlanFileError | None:
        """Return the error about a file that was replaced, by what its place says of it now."""
        try:
            stamp = self._stamped.stamp(self.file(shard)[1])
        except IndexPlanError:  # it says nothing now
            return None
        return None if self.recognise(shard, stamp) else _since(self._where(shard))

    def _where(self, shard: int) -> str:
        """Return how messages name a shard."""
        path = f"{self.shards.path}/{self.file(shard)[0]}"
        return path if self.shards.whole_files else f"shard {shard}, {path},"

    def bytes_on_disk(self, shard: int) -> int | None:
        """Return how many bytes a shard takes on this disk; None before its footer was read."""
        if not self._as_a_whole:
            return self._on_disk.get(shard)
        return -(-self.file(shard)[2] // BLOCK) * BLOCK

    def known_on_disk(self) -> dict[int, int]:
        """Return how many bytes row groups take on this disk, of those whose footer was read."""
        return self._on_disk

    def look(self, shard: int) -> int:
        """Find out how many bytes a row group takes; return how many bytes that has fetched."""
        return self._look(shard)[1]

    def _look(self, shard: int) -> tuple[Footer, int]:
        """Return the footer of a row group's file, and how many bytes that has fetched."""
        name, number, num_bytes = self.file(shard)
        footer, fetched = self._footers.get(name), 0
        if footer is None:
            footer = self._read_footer(shard, name, number, num_bytes)
            fetched = max(len(footer.data), min(TAIL, num_bytes))
            self._footers[name] = footer
            while sum(len(each.data) for each in [*self._footers.values()]) > FOOTERS:
                self._footers.popitem(last=False)
        spans = self._spans(shard, footer)
        taken = sum(stop - start for start, stop in spans) + len(footer.data)
        self._on_disk[shard] = taken + (1 + 2 * len(spans)) * BLOCK  # where blocks are cut
        return footer, fetched

    def _spans(self, shard: int, footer: Footer) -> Spans:
        """Return where in its file the bytes of a shard are."""
        if self.shards.whole_files:
            return merged([span for part in footer.parts for span in part])
        return footer.parts[self.shards.part(shard)[1]]

    def check_columns(self) -> None:
        """Refuse columns that the first file does not have; if it cannot be read, fetches tell."""
        try:
            self.look(0)
        except ColumnError as error:
            raise IndexPlanError(*error.args) from None
        except Exception:  # whatever a store raises
            return

    def _read_footer(self, shard: int, name: str, number: int, num_bytes: int) -> Footer:
        import pyarrow as pa
        import pyarrow.parquet as pq

        stamp = self._stamps.get(number) or self._stamped.stamp(number)
        tail = self.piece(name, max(0, num_bytes - TAIL), num_bytes)
        size = 8 + int.from_bytes(tail[-8:-4], "little")
        if size > len(tail):
            tail = self.piece(name, max(0, num_bytes - size), num_bytes)
        footer = bytes(tail[-size:])
        if hashlib.sha256(footer).hexdigest()[:DIGEST] != self.shards.digests[number]:
            raise _other_footer(self._where(shard))
        found = pq.read_metadata(pa.BufferReader(footer))
        if (lost := missing(found, self.columns)) is not None:
            got = f"{lost!r}, which {self.shards.path}/{name} does not have"
            cure = f"it has {', '.join(found.schema.names)}"
            raise ColumnError("columns", "must be in each file of shards", got, cure)
        parts = [spans_of(found, i, self.columns) for i in range(found.num_row_groups)]
        return Footer(footer, parts, stamp)

    def piece(self, name: str, start: int, stop: int) -> bytes:
        """Return the bytes [start, stop) of a file, all of them."""
        data: bytes = self.store.cat_file(f"{self.root}/{name}", start=start, end=stop)
        if len(data) != stop - start:
            raise AnswerError(f"{len(data)} bytes instead of the {stop - start} asked for")
        return data

    def fetch(self, shard: int, path: Path, tell: Callable[[int], None]) -> Came:
        """Write a shard to a file, calling tell(num_bytes) as they come."""
        name, number, num_bytes = self.file(shard)
        source = f"{self.root}/{name}"
        if self._as_a_whole:
            # stop at the expected size: a file that has grown would fill the disk
            stored = self.shards.stored[number]
            source = f"{self.root}/{stored.zip_name or name}"
            watch = _Watch(tell, stored.zip_bytes if stored.zip_name else num_bytes)
            stamp = self._stamps.get(number) or self._stamped.stamp(number)
            if isinstance(self.store, LocalFileSystem):  # its own get_file calls no callback
                AbstractFileSystem.get_file(self.store, source, str(path), callback=watch)
            else:
                self.store.get_file(source, str(path), callback=watch)
            came = path.stat().st_size
            after = self._stamped.stamp(number)
            if stored.zip_name:
                self._unzip(path, stored.zip_name, stored.zip_bytes, stored.zip_hash, num_bytes)
            return Came(came, stamp, after, [(0, path.stat().st_size)])
        footer, fetched = self._look(shard)
        found = self._spans(shard, footer)
        pieces = [
            (at, min(at + PIECE, stop)) for start, stop in found for at in range(start, stop, PIECE)
        ]
        with path.open("wb") as file:  # with holes where all else is
            file.write(b"PAR1")
            for start, stop in pieces:
                data = self.piece(name, start, stop)
                tell(len(data))
                fetched += len(data)
                file.seek(start)
                file.write(data)
            file.seek(num_bytes - len(footer.data))
            file.write(footer.data)
        spans = [(0, 4), *found, (num_bytes - len(footer.data), num_bytes)]
        return Came(fetched, footer.stamp, self._stamped.stamp(number), spans)

    def _unzip(self, path: Path, name: str, zip_bytes: int, noted: str, num_bytes: int) -> None:
        """Write over a compressed file what is in it, after checking both."""
        where = f"{self.shards.path}/{name}"
        if (size := path.stat().st_size) != zip_bytes:
            raise AnswerError(f"{size} bytes instead of the {zip_bytes} of its index")
        if not has_hash(path, noted):
            raise _other_hash(where, noted)
        if not unzip(path, name, num_bytes):
            rule = f"must hold {num_bytes} bytes in compressed form, as shards says"
            raise PlanFileError(where, rule, "others", RESTORE)

    def recognise(self, shard: int, stamp: str) -> bool:
        """Return whether a shard that was fetched before is of the file as it is known to be."""
        with self._noting:  # one for all shards of a file, some of which may come just now
            return same_stamp(self._stamps.setdefault(self.file(shard)[1], stamp), stamp)

    def problem(self, shard: int, path: Path, came: Came) -> PlanFileError | None:
        """Return what is wrong with a file that was fetched; None if it is what it should be."""
        name, number, num_bytes = self.file(shard)
        where = self._where(shard)
        if (size := path.stat().st_size) != num_bytes:
            rule = f"must hold {num_bytes} bytes, as shards says"
            return PlanFileError(where, rule, size, RESTORE)
        if self.shards.whole_files and not has_hash(path, self.shards.stored[number].hash):
            return _other_hash(where, self.shards.stored[number].hash)
        if self.shards.whole_files and self.shards.files_tell:
            problem = self._problem_inside(shard, path, where)
            if problem is not None:
                return problem
        if same_stamp(came.before, came.after) and self.recognise(shard, came.before):
            return None
        self._footers.pop(name, None)  # read again
        return _since(where)

    def _problem_inside(self, shard: int, path: Path, where: str) -> PlanFileError | None:
        """Return what is wrong with the samples of a whole file, or with its footer or header."""
        _, number, _ = self.file(shard)
        try:
            found = shard_sizes(glob.escape(str(path)), kind=self.shards.kind, whole_files=True)
        except IndexPlanError:
            rule = f"must be a {self.shards.kind} file, as shards says"
            return PlanFileError(where, rule, "one that is damaged", RESTORE)
        first = shard - self.shards.part(shard)[1]
        expected = self.shards.sizes.array[first : first + self.shards.parts[number]].tolist()
        if (sizes := found.sizes.array.tolist()) != expected:
            held = f"{counted(sum(expected), 'sample')} in {counted(len(expected), 'shard')}"
            got = f"{sum(sizes):,} in {len(sizes):,}"
            return PlanFileError(where, f"must hold {held}, as shards says", got, RESTORE)
        if found.digests[0] != self.shards.digests[number]:
            return _other_footer(where)
        return None

    def fetch_error(self, shard: int, error: Exception, tries: int) -> IndexPlanError:
        """Return why a shard could not be fetched; a store's own words may hold keys."""
        name, _, num_bytes = self.file(shard)
        where = f"{self.shards.path}/{name}"
        if isinstance(error, LeftError):
            rule = f"must hold {num_bytes} bytes, as shards says"
            return PlanFileError(self._where(shard), rule, "more", RESTORE)
        said = isinstance(error, StalledError | AnswerError)
        got = f"{error if said else type(error).__name__}, {counted(tries, 'time')}"
        cure = "check the store and the credentials, then run again: whole shards are kept"
        what = f"shard {shard}, {where},"
        return IndexPlanError(what, "must be fetched before its batch", got, cure)


class _Watch(Callback):  # type: ignore[misc]  # fsspec is not typed
    """Reports the bytes of a download, and stops one that brings too many."""

    def __init__(self, tell: Callable[[int], None], most: int) -> None:
        super().__init__()
        self.tell, self.most, self.done = tell, most, 0

    def relative_update(self, inc: int = 1) -> None:
        """Count bytes that were written."""
        self.done += inc
        self.tell(inc)
        if self.done > self.most:
            raise LeftError

    def absolute_update(self, value: int) -> None:
        """Take the number of all bytes written so far, which Azure's file system reports."""
        self.relative_update(value - self.done)


def _other_footer(where: str) -> PlanFileError:
    got = "one with as many bytes, but another footer or header"
    return PlanFileError(where, "must be the file that shards was made from", got, RESTORE)


def _since(where: str) -> PlanFileError:
    got = "one that was written since"
    return PlanFileError(where, "must be the file that shards was made from", got, RESTORE)


def _other_hash(where: str, noted: str) -> PlanFileError:
    rule = f"must have the {noted.partition(':')[0]} that its index says"
    return PlanFileError(where, rule, "another", RESTORE)
