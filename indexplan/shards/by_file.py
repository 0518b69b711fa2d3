"""Formats whose files tell how many samples they hold: Parquet, Arrow, .npy, tars, ArrayRecord."""

from __future__ import annotations

import hashlib
import io
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from indexplan.errors import IndexPlanError, PlanFileError, install, shown
from indexplan.shards.location import MOST_BYTES, Local, Location, too_long
from indexplan.shards.tars import TarError, samples_of

DIGEST = 32  # hexadecimal digits of a file's digest
TAIL = 2**16  # bytes at a file's end that are read first: most footers are shorter
HEADERS = 2**14  # bytes that are read at once of a tar on this machine,
PIECES = 2**23  # and of one in a store
HEAD = 2**12  # bytes that are read at once where a header may be
RAW = (
    "of raw tokens, as Dolma and OLMo write them, pass their dtype, such as dtype='uint16'; else "
    "restore the file"
)
PARSED_AGAIN = 20  # times that a header is parsed again where threads met in the parser


class File(NamedTuple):
    """A file in a folder or object store, read in pieces."""

    location: Location
    name: str
    num_bytes: int
    stamp: str = ""

    def piece(self, start: int, stop: int) -> bytes:
        """Return the bytes [start, stop); raise if the file ends before."""
        if stop - start > MOST_BYTES:
            raise too_long(f"{self.location.path}/{self.name}")
        end = min(stop, self.num_bytes)
        data = self.location.piece(self.name, start, end) if 0 <= start < end else b""
        if len(data) != stop - start:
            got = f"its end at byte {self.num_bytes}, but content up to byte {stop}"
            raise self.wrong("be whole", got)
        return data

    def wrong(
        self, rule: str, got: str, cure: str = "write it again, or restore it"
    ) -> PlanFileError:
        """Return the error for a file that is damaged, or an index that says what is not so."""
        return PlanFileError(f"{self.location.path}/{self.name}", f"must {rule}", got, cure)


class Footer(NamedTuple):
    """What a file tells: the samples in each of its parts, and a digest of its footer or header."""

    sizes: list[int]
    digest: str


def digest_of(data: bytes | str) -> str:
    """Return the digest of a file's footer, header or index entry."""
    data = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
    return hashlib.sha256(data).hexdigest()[:DIGEST]


def read_parquet(file: File) -> Footer:
    """Read from the footer how many samples each row group holds."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        cure = install("shards")
        raise IndexPlanError("Parquet files", "need pyarrow", None, cure) from None
    rule = "be a whole Parquet file"
    tail = file.piece(max(0, file.num_bytes - TAIL), file.num_bytes)
    size = 8 + int.from_bytes(tail[-8:-4], "little")
    if tail[-4:] != b"PAR1" or size > file.num_bytes:
        raise file.wrong(rule, f"one that ends in {tail[-8:]!r}, which is no footer's end")
    footer = file.piece(file.num_bytes - size, file.num_bytes) if size > len(tail) else tail[-size:]
    try:
        found = pq.read_metadata(pa.BufferReader(footer))
        sizes = [found.row_group(number).num_rows for number in range(found.num_row_groups)]
    except Exception:  # whatever pyarrow raises at what it cannot read
        raise file.wrong(rule, "a footer that pyarrow refuses") from None
    return Footer(sizes, digest_of(footer))


SCHEMA, DICTIONARY, RECORDS = 1, 2, 3
GOES_ON = b"\xff\xff\xff\xff"


def read_arrow(file: File) -> Footer:
    """Read how many samples each record batch of an IPC file or stream holds.

    Only the headers of messages are read, which are FlatBuffers: pyarrow would read, and
    decompress, whole batches. https://arrow.apache.org/docs/format/Columnar.html
    """
    rule = "be an Arrow IPC file or stream"
    try:
        in_file = file.piece(0, min(8, file.num_bytes))[:6] == b"ARROW1"
        where = (8, _footer_of(file)) if in_file else (0, None)
        headers = [*_headers(file, *where)]
        kinds = [_number(data, _root(data), 1, "<B") for data in headers]
        batches = [data for data, kind in zip(headers, kinds, strict=True) if kind == RECORDS]
        sizes = [_rows(data) for data in batches]
    except (struct.error, IndexError, OverflowError):
        raise file.wrong(rule, "a header that is not valid") from None
    if (
        any(kind not in {SCHEMA, DICTIONARY, RECORDS} for kind in kinds)
        or min(sizes, default=0) < 0
    ):
        raise file.wrong(rule, "a message of another kind")
    return Footer(sizes, digest_of(b"".join(batches if in_file else headers)))


def _footer_of(file: File) -> int:
    """Return where the footer of an IPC file starts, and the stream before it ends."""
    end = file.piece(max(0, file.num_bytes - 10), file.num_bytes)
    if end[-6:] != b"ARROW1" or len(end) < 10:
        raise file.wrong("be a whole Arrow IPC file", f"one that ends in {end[-6:]!r}")
    return file.num_bytes - 10 - int(struct.unpack("<I", end[:4])[0])


def _headers(file: File, at: int, footer: int | None) -> Iterator[bytes]:
    """Yield the headers of all messages up to the footer, or the end of a stream: it is marked."""
    stop = file.num_bytes if footer is None else footer
    while footer is None or at != footer:
        ahead = file.location.piece(file.name, at, max(at, min(at + HEAD, stop)))
        skip = 8 if ahead[:4] == GOES_ON else 4
        # a size below 0 would lead back, so that reading never ends
        if len(ahead) < skip or (size := _at(ahead, skip - 4, "<i")) < 0:
            raise file.wrong("be a whole Arrow IPC stream", f"no mark of its end at byte {at}")
        if not size:
            if footer is not None and not 0 <= footer - at - skip < 8:  # a hole of zeros
                got = f"an end at byte {at}, before its footer at {footer}"
                raise file.wrong("be a whole Arrow IPC file", got)
            return
        header = ahead[skip : skip + size]
        if len(header) < size:
            header = file.piece(at + skip, at + skip + size)
        yield header
        body = _number(header, _root(header), 3, "<q")
        at += skip + size + body
        if body < 0 or at > stop:
            got = f"a message up to byte {at}, past its end at {stop}"
            raise file.wrong("be a whole Arrow IPC stream", got)


def _rows(message: bytes) -> int:
    header = _field(message, _root(message), 2)
    return -1 if header is None else _number(message, header + _at(message, header, "<I"), 0, "<q")


# FlatBuffers (https://flatbuffers.dev/internals): a table begins with the distance back to its list
# of fields. From its third number on, the list has each field's distance from the table's start.
def _root(data: bytes) -> int:
    return _at(data, 0, "<I")


def _field(data: bytes, table: int, slot: int) -> int | None:
    fields = table - _at(data, table, "<i")
    if 4 + 2 * slot >= _at(data, fields, "<H"):
        return None
    behind = _at(data, fields + 4 + 2 * slot, "<H")
    return table + behind if behind else None


def _number(data: bytes, table: int, slot: int, kind: str) -> int:
    at = _field(data, table, slot)
    return 0 if at is None else _at(data, at, kind)


def _at(data: bytes, at: int, kind: str) -> int:
    return int(struct.unpack_from(kind, data, at)[0])


def npy_header(stream: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return the shape of a .npy file, whether it is column-major, and its dtype.

    NumPy parses it as Python, by a parser that counts its depth over all threads in Python 3.11 and
    3.12, and raises SystemError where two meet in it (CPython issue 106905): it is asked again.
    """
    readers: Any = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    read = readers[np.lib.format.read_magic(stream)]
    start = stream.tell()
    for _ in range(PARSED_AGAIN):
        try:
            return read(stream)  # type: ignore[no-any-return]
        except SystemError:
            stream.seek(start)
    return read(stream)  # type: ignore[no-any-return]


def read_npy(file: File) -> Footer:
    """Read from the header how many rows an array has."""
    data = file.piece(0, min(TAIL, file.num_bytes))
    if not data.startswith(np.lib.format.MAGIC_PREFIX):
        raise file.wrong("be a .npy file", "one without its header", RAW)
    stream = io.BytesIO(data)
    try:
        shape, _, dtype = npy_header(stream)
    except Exception as error:  # NumPy reads headers as Python, which raises anything
        raise file.wrong("be a .npy file", shown(str(error).partition("\n")[0])) from None
    if not shape:
        raise file.wrong("be an array with rows", "one of shape ()")
    stop = stream.tell() + dtype.itemsize * int(
        np.prod([int(each) for each in shape], dtype=object)
    )
    if not dtype.hasobject and stop != file.num_bytes:
        raise file.wrong(f"be whole, of {stop} bytes", f"{file.num_bytes}")
    if dtype.hasobject and shape[0] > file.num_bytes:
        raise file.wrong(f"be whole, of {shape[0]} objects", f"{file.num_bytes} bytes")
    return Footer([shape[0]], digest_of(data[: stream.tell()]))


def read_tar(file: File) -> Footer:
    """Count the samples of a tar by its headers, which are all over the file.

    From a store, that reads all of it, in pieces; here, a window at each header.
    """
    window = HEADERS if isinstance(file.location, Local) else PIECES
    held, begin = b"", 0

    def read(start: int, stop: int) -> bytes:
        nonlocal held, begin
        if not begin <= start <= stop <= begin + len(held):
            begin, upto = start, min(max(stop, start + window), file.num_bytes)
            held = file.location.piece(file.name, start, max(start, upto))
        return held[start - begin : stop - begin]

    digest, num = hashlib.sha256(), 0
    try:
        num = sum(1 for _ in samples_of(read, file.num_bytes, digest.update))
    except TarError as error:
        raise file.wrong(*error.args) from None
    return Footer([num], digest.hexdigest()[:DIGEST])


def read_array_record(file: File) -> Footer:
    """Ask array_record, of Grain and MaxText, how many records a file on this machine holds."""
    try:
        from array_record.python.array_record_module import ArrayRecordReader
    except ImportError:
        cure = "pip install array_record"
        raise IndexPlanError("ArrayRecord files", "need array_record", None, cure) from None
    if not isinstance(file.location, Local):
        cure = "count them where they are files, and pass Shards.from_json(counted, path=their_url)"
        raise file.wrong("be on this machine to be counted", "one in a store", cure)
    try:
        reader = ArrayRecordReader(str(file.location.root / file.name))
        size = reader.num_records()
        reader.close()  # raises if it was damaged; its size was 0 then
    except Exception:  # whatever it raises at what it cannot read
        raise file.wrong("be a whole ArrayRecord file", "one that array_record refuses") from None
    return Footer([size], digest_of(file.piece(max(0, file.num_bytes - TAIL), file.num_bytes)))


def read_raw(file: File, dtype: np.dtype[Any]) -> Footer:
    """Count the numbers in a file of nothing else, such as tokens."""
    if file.piece(0, min(6, file.num_bytes)) == np.lib.format.MAGIC_PREFIX:
        got = "one with the header of a .npy file, which has its own"
        raise file.wrong("be raw numbers where dtype is given", got, "leave dtype out")
    if file.num_bytes % dtype.itemsize:
        rule = f"have {dtype.itemsize} bytes for each number, as dtype {dtype} says"
        cure = "pass the dtype that it was written with, or restore it"
        raise file.wrong(rule, f"{file.num_bytes} bytes", cure)
    return Footer([file.num_bytes // dtype.itemsize], digest_of(f"{dtype.str} {file.num_bytes}"))


class Format(NamedTuple):
    """A format whose files tell how many samples they hold."""

    words: str
    """Its name for people."""
    suffixes: tuple[str, ...]
    """How its files' names end."""
    read: Callable[[File], Footer]
    whole: bool = False
    """Whether a file is always one shard, and never has several."""


FORMATS = {
    "parquet": Format("Parquet", (".parquet", ".pq", ".parq"), read_parquet),
    "arrow": Format("Arrow", (".arrow", ".arrows", ".feather", ".ipc"), read_arrow),
    "npy": Format(".npy", (".npy",), read_npy, whole=True),
    "tar": Format("tars of WebDataset", (".tar",), read_tar, whole=True),
    "array_record": Format(
        "ArrayRecord", (".array_record", ".arrayrecord"), read_array_record, whole=True
    ),
}
SUFFIXES = {suffix: kind for kind, each in FORMATS.items() for suffix in each.suffixes}


def kind_of(name: str) -> str | None:
    """Return the format that a file's name says, such as TFDS' a.array_record-00000-of-00004."""
    return SUFFIXES.get(PurePosixPath(re.sub(r"-\d+-of-\d+$", "", name)).suffix)
