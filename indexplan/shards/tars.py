"""Tars of samples, grouped as WebDataset does: where each member is, by the headers alone."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator

BLOCK = 512  # bytes of a header; members begin at multiples of it
LONGEST = 2**20  # bytes of a name or PAX header
PIECE = 2**20  # bytes that are read at once past the end mark
# webdataset 1.0.2, tariterators.py: a key ends at the first dot of the file's name
NAME = re.compile(r"^((?:.*/|)[^.]+)[.]([^/]*)$")
META = re.compile(r"__[^/]*__($|/)")
RESERVED = {"__key__", "__url__", "__bad__"}  # fields that webdataset makes, or drops samples by
PACKED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
REGULAR = {b"0", b"\0", b"7"}
WITHOUT_DATA = {b"1", b"2", b"3", b"4", b"5", b"6"}  # links, devices, folders, pipes
AGAIN = "write it again, or restore it"

ReadAt = Callable[[int, int], bytes]
"""Return the bytes [start, stop) of a file, or fewer at its end."""
Spans = dict[str, tuple[int, int]]


class TarError(Exception):
    """What is wrong with a tar: the rule that it breaks, what it has, and the cure."""


def samples_of(
    read: ReadAt, num_bytes: int, note: Callable[[bytes], object] = len
) -> Iterator[tuple[str, Spans]]:
    """Yield the key of each sample, and where its members are by their extensions.

    Parameters
    ----------
    read : callable
    num_bytes : int
        Of the file.
    note : callable
        Called with each header.

    Raises
    ------
    TarError
        If the file is no whole tar, is compressed, or has two members of one name in a sample.
    """
    key, spans = "", Spans()
    for name, start, stop in _members(read, num_bytes, note):
        if META.match(name) or (found := NAME.match(name)) is None:
            continue
        extension = found[2].lower()
        if found[1] != key:
            if spans:
                yield key, spans
            key, spans = found[1], {}
        if extension in spans:
            cure = "rename one: extensions are compared in lower case, as webdataset does"
            raise TarError("have one member of a name", f"a second {name!r} at byte {start}", cure)
        if extension in RESERVED:
            rule = f"have no extension of {', '.join(sorted(RESERVED))}"
            raise TarError(rule, f"{name!r} at byte {start}", "rename it")
        spans[extension] = start, stop
    if spans:
        yield key, spans


def _members(
    read: ReadAt, num_bytes: int, note: Callable[[bytes], object]
) -> Iterator[tuple[str, int, int]]:
    """Yield the name of each regular file, and where its bytes start and stop."""
    at, for_all, for_next = 0, dict[str, str](), dict[str, str]()
    while (block := read(at, at + BLOCK)) != bytes(BLOCK):
        kind, size, name = _header(block, at, num_bytes)
        note(block)
        start = at + BLOCK
        if kind in {b"x", b"X", b"g", b"L", b"K"}:  # about the next member, or all of them
            if size > LONGEST:
                raise _no_header(at)
            data = read(start, start + size)
            note(data)
            said = _pax(data, at) if kind in {b"x", b"X", b"g"} else {}
            if kind == b"L":
                said = {"path": _text(data)}
            if any(each.startswith("GNU.sparse") for each in said):
                kind = b"S"
            for_next = {**said, **for_next} if kind != b"g" else for_next
            for_all.update(said if kind == b"g" else {})
        else:
            said, for_next = {**for_all, **for_next}, {}
            name = said.get("path", name)
            size = _number(said["size"].encode(), at, 10) if "size" in said else size
        if kind == b"S":
            raise TarError("have no sparse members", f"one at byte {at}", AGAIN)
        at = start if kind in WITHOUT_DATA else start + -(-size // BLOCK) * BLOCK
        if start + size > num_bytes and at > start:
            raise _cut(num_bytes)
        if kind in REGULAR and not name.endswith("/"):
            yield name, start, start + size
    while at < num_bytes:  # such as that of another tar, which readers would not see
        rest = read(at, min(at + PIECE, num_bytes))
        if rest.strip(b"\0"):
            cure = "write one tar of them: `cat` of several does not make one"
            raise TarError("end at its first block of zeros", f"more after byte {at}", cure)
        at += PIECE


def _header(block: bytes, at: int, num_bytes: int) -> tuple[bytes, int, str]:
    """Return the kind of a member, its bytes, and its name."""
    if at == 0 and (packed := next((PACKED[each] for each in PACKED if block.startswith(each)), 0)):
        cure = "decompress it: samples of a compressed tar can't be found without reading all of it"
        raise TarError("be a tar that is not compressed", f"one of {packed}", cure)
    if len(block) < BLOCK:
        raise _cut(num_bytes)
    noted = _number(block[148:156], at)
    if noted != sum(block) - sum(block[148:156]) + 256:
        signed = struct.unpack("148b8x356b", block)  # as some old ones add them up
        if noted != sum(signed) + 256:
            raise _no_header(at)
    kind, size, name = block[156:157], _number(block[124:136], at), _text(block[:100])
    prefix = _text(block[345:500])
    return kind, size, f"{prefix}/{name}" if prefix and kind not in {b"L", b"K", b"S"} else name


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _number(field: bytes, at: int, base: int = 8) -> int:
    """Return a number in octal digits, or, where it is large, in bytes."""
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:], "big")
    try:
        number = int(field.partition(b"\0")[0].decode("ascii").strip() or "0", base)
    except ValueError:
        number = -1
    if number < 0:
        raise _no_header(at)
    return number


def _pax(data: bytes, at: int) -> dict[str, str]:
    """Return the records of a PAX header, each with its own length: `30 path=...`."""
    said, start = {}, 0
    while start < len(data):
        digits, _, _ = data[start : start + 8].partition(b" ")
        stop = start + (int(digits) if digits.isdigit() else 0)
        field, mark, value = data[start + len(digits) + 1 : stop - 1].partition(b"=")
        if not mark or data[stop - 1 : stop] != b"\n":
            raise _no_header(at)
        said[_text(field)] = value.decode("utf-8", "surrogateescape")
        start = stop
    return said


def _no_header(at: int) -> TarError:
    return TarError("be a whole tar", f"no valid header at byte {at}", AGAIN)


def _cut(num_bytes: int) -> TarError:
    return TarError("be a whole tar, with its end mark", f"its end at byte {num_bytes}", AGAIN)
