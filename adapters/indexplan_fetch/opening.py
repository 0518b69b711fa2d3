"""ShardFile, a shard on this machine, and functions that open one: Parquet, tar, ArrayRecord."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from indexplan import IndexPlanError, PlanFileError
from indexplan.shards.tars import TarError, samples_of


@dataclass(frozen=True)
class ShardFile:
    """A fetched shard on this machine, which `open_shard` gets.

    Parameters
    ----------
    path : str
        Its file. For a row group, a Parquet file in which the other row groups are missing; where
        only some columns are fetched, so are the others.
    number : int
        Its number in the `Shards`.
    part : int or None
        The number of its row group; None if the whole file is the shard.

    Examples
    --------
    >>> import numpy as np
    >>> from indexplan_fetch import ShardFile
    >>> np.save("rows.npy", np.arange(3))
    >>> file = ShardFile("rows.npy", number=0, part=None)
    >>> np.load(file.path, mmap_mode="r").tolist()
    [0, 1, 2]
    """

    path: str
    number: int
    part: int | None


class Rows(Sequence[Any]):
    """The rows of a pyarrow table, each a dict."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def nbytes(self) -> int:
        """How many bytes of memory they take."""
        return int(self.table.nbytes)

    def __getitem__(self, row: Any) -> Any:
        """Return a row."""
        return self.table.slice(range(len(self))[row], 1).to_pylist()[0]

    def __getitems__(self, rows: list[int]) -> list[Any]:
        """Return some rows at once."""
        found: list[Any] = self.table.take(rows).to_pylist()
        return found


def by_row(rows: Any) -> Any:
    """Return what open_shard returned so that an index finds a row, not a column."""
    kind = type(rows)
    if kind.__module__.partition(".")[0] == "pyarrow" and hasattr(rows, "num_rows"):
        return Rows(rows)
    if hasattr(rows, "iloc"):
        raise IndexPlanError(
            "open_shard",
            "must return rows that a position finds",
            f"a {kind.__name__} of {kind.__module__.partition('.')[0]}",
            'return frame.to_dict("records"), or a list',
        )
    return rows


def open_parquet(shard: ShardFile, columns: Sequence[str] | None = None) -> Rows:
    """Read a shard of Parquet, a row group or a whole file: an `open_shard`.

    It is decoded once, and kept in memory while it is open.

    Parameters
    ----------
    shard : ShardFile
    columns : sequence of str, optional
        The columns to read; by default all. To choose some, pass
        `functools.partial(open_parquet, columns=["text"])` as `open_shard`: then only these are
        fetched. A nested column by its name, or a part of it as "image.bytes".

    Returns
    -------
    sequence of dict
        The rows, each a dict of its values by column.

    Examples
    --------
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> from indexplan_torch import open_parquet
    >>> from indexplan_fetch import ShardFile
    >>> pq.write_table(pa.table({"id": [7, 8, 9]}), "a.parquet", row_group_size=2)
    >>> list(open_parquet(ShardFile("a.parquet", number=1, part=1)))
    [{'id': 9}]
    """
    import pyarrow.parquet as pq

    names = None if columns is None else list(columns)
    # of pages that have one, which pyarrow would not look at by default
    with pq.ParquetFile(shard.path, page_checksum_verification=True) as file:
        if shard.part is None:
            return Rows(file.read(columns=names))
        return Rows(file.read_row_group(shard.part, columns=names))


class Members(Sequence[dict[str, Any]]):
    """The samples of a tar, each a dict of its members' bytes."""

    def __init__(self, path: str) -> None:
        # mapped: no descriptor that forked workers would share the position of
        self.data = np.memmap(path, np.uint8, "r")
        extensions: dict[tuple[str, ...], tuple[str, ...]] = {}  # most samples have the same
        self.named: list[tuple[str, tuple[str, ...]]] = []
        spans: list[tuple[int, int]] = []
        for key, members in samples_of(self.bytes_of, len(self.data)):
            each = tuple(members)
            self.named.append((key, extensions.setdefault(each, each)))
            spans.extend(members.values())
        self.spans = np.array(spans, np.int64).reshape(-1, 2)
        self.firsts = np.cumsum([0, *(len(each) for _, each in self.named)])

    def bytes_of(self, start: int, stop: int) -> bytes:
        """Return the bytes [start, stop) of the file."""
        return self.data[start:stop].tobytes()

    def __len__(self) -> int:
        return len(self.named)

    @property
    def nbytes(self) -> int:
        """How many bytes of memory they take: where they are, as the file itself is mapped."""
        return self.spans.nbytes + self.firsts.nbytes + 200 * len(self)

    def __getitem__(self, row: Any) -> Any:
        """Return a sample."""
        number = range(len(self))[row]
        key, extensions = self.named[number]
        spans = self.spans[self.firsts[number] : self.firsts[number + 1]].tolist()
        members = zip(extensions, spans, strict=True)
        return {"__key__": key, **{name: self.bytes_of(*span) for name, span in members}}


def open_tar(shard: ShardFile) -> Members:
    """Read a shard that is a tar of WebDataset's: an `open_shard`.

    The headers of its members are read once, when it is opened, and a sample's bytes when you ask
    for it. Files next to one another whose names are the same up to the first dot are one sample.

    Parameters
    ----------
    shard : ShardFile

    Returns
    -------
    sequence of dict
        The samples, as `webdataset` gives them before it decodes: each a dict of extension, in
        lower case, to bytes, and `__key__`, without `__url__`.

    Raises
    ------
    PlanFileError
        If the file is no whole tar, is compressed, has sparse members, or two of one name in a
        sample.

    Examples
    --------
    >>> import io, tarfile
    >>> from indexplan_torch import open_tar
    >>> from indexplan_fetch import ShardFile
    >>> with tarfile.open("a.tar", "w") as tar:
    ...     for name, data in (("7.cls", b"3"), ("7.txt", b"a cat"), ("8.cls", b"4")):
    ...         member = tarfile.TarInfo(name)
    ...         member.size = len(data)
    ...         tar.addfile(member, io.BytesIO(data))
    >>> list(open_tar(ShardFile("a.tar", number=0, part=None)))
    [{'__key__': '7', 'cls': b'3', 'txt': b'a cat'}, {'__key__': '8', 'cls': b'4'}]
    """
    try:
        return Members(shard.path)
    except TarError as error:
        rule, got, cure = error.args
        raise PlanFileError(shard.path, f"must {rule}", got, cure) from None


class Records(Sequence[bytes]):
    """The records of an ArrayRecord file."""

    def __init__(self, path: str) -> None:
        from array_record.python.array_record_module import ArrayRecordReader

        # as array_record's own data source reads single records
        options = {"options": "readahead_buffer_size:0", "file_reader_buffer_size": 2**15}
        self._open = partial(ArrayRecordReader, path, **options)
        self._reader = os.getpid(), self._open()

    @property
    def reader(self) -> Any:
        """A reader of this process: one that a parent process opened has threads there."""
        if self._reader[0] != os.getpid():
            self._reader = os.getpid(), self._open()
        return self._reader[1]

    def __len__(self) -> int:
        return int(self.reader.num_records())

    def __getitem__(self, row: Any) -> Any:
        """Return a record."""
        return self.reader.read([range(len(self))[row]])[0]

    def __getitems__(self, rows: list[int]) -> list[bytes]:
        """Return some records at once."""
        return list(self.reader.read(rows))


def open_array_record(shard: ShardFile) -> Records:
    """Read a shard of ArrayRecord, by its own package `array_record`: an `open_shard`.

    Parameters
    ----------
    shard : ShardFile

    Returns
    -------
    sequence of bytes
        The records, undecoded. A damaged one raises what `array_record` raises.

    Examples
    --------
    >>> from array_record.python.array_record_module import ArrayRecordWriter
    >>> from indexplan_torch import open_array_record
    >>> from indexplan_fetch import ShardFile
    >>> writer = ArrayRecordWriter("a.array_record", "group_size:1")
    >>> _ = [writer.write(record) for record in (b"a cat", b"a dog")]
    >>> writer.close()
    >>> list(open_array_record(ShardFile("a.array_record", number=0, part=None)))
    [b'a cat', b'a dog']
    """
    return Records(shard.path)
