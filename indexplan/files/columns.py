"""The columns of a plan directory: `columns/<sha256>.npy`, needed to compute the order.

Chunks are read without them. The name of each holds the hash of its content, so they need no file
of hashes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Any

from indexplan.errors import IndexPlanError, PlanFileError
from indexplan.files.format import CURE, HEADER_BYTES, header
from indexplan.orders.columns import Column, check_identity, is_identity
from indexplan.stores.cache import fetch
from indexplan.stores.folder import Folder
from indexplan.stores.plain import open_file
from indexplan.stores.publish import explained
from indexplan.stores.store import BLOCK_BYTES, Store

Identity = Mapping[str, Any]


def identities(spec: Any) -> dict[str, Identity]:
    """Return the columns that a dict form, or a list of them, names, by their file names."""
    found: dict[str, Identity] = {}
    level = [spec]
    while level:
        each = level.pop()
        if is_identity(each):
            check_identity("a column", each)
            found[f"columns/{each['sha256']}.npy"] = each
        elif isinstance(each, Mapping | list):
            level += each.values() if isinstance(each, Mapping) else each
    return found


def num_bytes(identity: Identity) -> int:
    """Return the size of a column's file."""
    return HEADER_BYTES + int(identity["dtype"][-1]) * int(identity["length"])


def files_of(columns: Mapping[str, Column]) -> dict[str, Callable[[], Iterator[memoryview]]]:
    """Return the bytes of the files of columns, by their names."""
    return {f"columns/{each}.npy": partial(_content, columns[each]) for each in columns}


def publish(store: Store, columns: Mapping[str, Column]) -> None:
    """Write the columns of a plan, or check those that are there.

    Raises
    ------
    PlanFileError
        If a column cannot be written, or the file that is there holds something else.
    """
    for digest, column in columns.items():
        name = f"columns/{digest}.npy"
        # by its hash, not by the column's numbers: these may be read from that very file
        if store.has(name) or not store.publish(name, _content(column)):
            with explained("readable", f"{store.path}/{name}"):
                for _ in _checked(store, name, column.identity):
                    pass


def _content(column: Column) -> Iterator[memoryview]:
    """Yield the bytes of a column's file."""
    dtype = column.identity["dtype"]
    yield memoryview(header(dtype, len(column)))
    yield from column.blocks(dtype)


def open_here(
    store: Store, folder: Path, name: str, size: int, blocks: Callable[[], Iterator[bytes]]
) -> BufferedReader:
    """Open a large file on this machine; from a store it is fetched first, by checked blocks."""
    if isinstance(store, Folder):
        return open_file(folder, name)
    return fetch(store, size, blocks, folder / name)


def finder(store: Store, folder: Path) -> Callable[[Identity], Column]:
    """Return a function that finds a plan directory's columns, in `folder` on this machine."""

    def find(identity: Identity) -> Column:
        (name,) = identities(identity)
        path, blocks = folder / name, partial(_checked, store, name, identity)
        with explained("readable", path):
            open_here(store, folder, name, num_bytes(identity), blocks).close()
        try:
            return Column.claimed(str(path), identity)
        except IndexPlanError as error:  # which says how to make a column, not what is wrong here
            raise _others(str(path), identity) from error

    return find


def damage(store: Store, spec: Any) -> list[str]:
    """Return a message for each column of a plan directory that is damaged or missing."""
    said = []
    for name, identity in identities(spec).items():
        try:
            for _ in _checked(store, name, identity):
                pass
        except (PlanFileError, OSError) as error:
            said.append(str(error))
    return said


def _checked(store: Store, name: str, identity: Identity) -> Iterator[bytes]:
    """Yield the blocks of a column's file; the last one only if their hash is that in the name."""
    start = header(identity["dtype"], identity["length"])
    digest = hashlib.sha256(f"{identity['dtype']} {identity['length']}\n".encode())
    left, skip = num_bytes(identity), HEADER_BYTES
    with store.open(name) as stream:
        while left:
            block = stream.read(min(left, BLOCK_BYTES))
            digest.update(block[skip:])
            left -= len(block)
            wrong = not block or (skip and block[:skip] != start)
            if wrong or (not left and (stream.read(1) or digest.hexdigest() != identity["sha256"])):
                raise _others(f"{store.path}/{name}", identity)
            skip = 0
            yield block


def _others(path: str, identity: Identity) -> PlanFileError:
    rule = f"must hold {identity['length']} numbers of the sha256 in its name"
    return PlanFileError(path, rule, "others", CURE)
