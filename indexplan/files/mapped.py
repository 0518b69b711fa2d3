"""The chunk files that a reader has mapped, and which of their blocks it has checked."""

from __future__ import annotations

import mmap
import os
from collections import OrderedDict
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexplan import kernels
from indexplan.errors import IndexPlanError, PlanFileError, in_file
from indexplan.files.columns import open_here
from indexplan.files.directory import check_digest
from indexplan.files.format import HEADER_BYTES, Build, Chunk, Key, hashes_in
from indexplan.orders.units import Int64, expand
from indexplan.stores.cache import cache_folder, checked_chunk
from indexplan.stores.folder import Folder
from indexplan.stores.publish import explained
from indexplan.stores.store import BLOCK_BYTES, Store

CURE = "restore it, or delete it and run the same build again"

# Each map holds a file descriptor, of which some systems give a process few. The one that was
# mapped first is dropped first, which takes no lock.
MAPS = 8


class Mapped(NamedTuple):
    """A chunk file while it is mapped: its map, its numbers as a view of the map, and its hashes.

    `checked` says which blocks have been compared with their hashes. The hashes are read when the
    file is mapped: a map outlives its plan, whose files may be gone or another plan's.
    """

    map: mmap.mmap
    numbers: NDArray[Any]
    hashes: list[int]
    checked: NDArray[np.bool_]


class Chunks:
    """The chunk files of a plan directory, as one `Stored` reads them.

    A block is checked once, unless its file is mapped again. There are no locks, which a fork could
    leave locked for ever: two threads that touch a new block at once both check it.

    Parameters
    ----------
    store : Store
        The plan directory, under its absolute path or URL.
    build : Build
        What it is a build of.
    sizes : dict
        The bytes of each file, as they were when it was opened.
    """

    def __init__(self, store: Store, build: Build, sizes: dict[Key, int]) -> None:
        self.store, self.build, self.sizes = store, build, sizes
        # the files that are mapped: those of the plan directory, or kept copies of those in a store
        here, root = isinstance(store, Folder), store.path
        self.folder = Path(root) if here else cache_folder(root, build.sha256)
        self.units = dict(zip(build.epochs, build.num_units, strict=True))
        self._maps: OrderedDict[Key, Mapped] = OrderedDict()

    def numbers(
        self,
        epoch: int,
        number: int,
        kind: str,
        starts: int | Int64,
        sizes: int | Int64,
    ) -> NDArray[Any]:
        """Return all numbers of a chunk file, mapped, to read some runs of them.

        The blocks that hold the runs are compared with their hashes, each once.

        Raises
        ------
        PlanFileError
            If a block is not what was written.
        """
        key = epoch, number, kind
        file = self._maps.get(key) or self._mapped(key)
        each = file.numbers.itemsize
        first: Any = (HEADER_BYTES + starts * each) // BLOCK_BYTES
        last: Any = (HEADER_BYTES + (starts + sizes) * each - 1) // BLOCK_BYTES
        if isinstance(first, int):
            blocks: Iterable[int] = range(first, last + 1)
        else:
            touched = first if (first == last).all() else expand(first, last + 1)
            blocks = np.unique(touched[~file.checked[touched]]).tolist()
        for block in blocks:
            if not file.checked[block]:
                self._check_block(key, file, block)
                file.checked[block] = True
        return file.numbers

    def _check_block(self, key: Key, file: Mapped, block: int) -> None:
        start = block * BLOCK_BYTES
        size = min(BLOCK_BYTES, len(file.map) - start)
        if hasattr(file.map, "madvise"):  # read it at once, not page by page
            file.map.madvise(mmap.MADV_WILLNEED, start, size)
        found = kernels.xxh64.xxh64(np.frombuffer(file.map, np.uint8, size, start))
        if found != file.hashes[block]:
            self._maps.pop(key, None)  # the file may be restored, or that of its hashes
            chunk = self._chunk(*key)
            rule = f"must have the XXH64 in {chunk.hashes_name}, {file.hashes[block]:016x}"
            cure = (
                "run `indexplan verify` to see what is wrong, then restore the file, or delete it "
                "and its hashes and run the same build again"
            )
            what = f"{self.folder / chunk.name}, block {block}"
            raise PlanFileError(what, rule, f"{found:016x}", self._cure(cure))

    def _mapped(self, key: Key) -> Mapped:
        """Return a chunk file; map it if it is not."""
        found = self._maps.get(key)
        if found is None:
            found = self._maps.setdefault(key, self._map(key))
            while len(self._maps) > MAPS:
                self._maps.popitem(last=False)
        return found

    def _map(self, key: Key) -> Mapped:
        size, chunk = self.sizes[key], self._chunk(*key)
        path = self.folder / chunk.name
        content = self.store.read(chunk.hashes_name)
        try:
            hashes = hashes_in(content, self.build.sha256, chunk, size)
        except IndexPlanError as error:
            check_digest(self.store, self.build.sha256)  # another plan may have taken its place
            raise in_file(self.store.path, error) from None
        blocks = partial(checked_chunk, self.store, chunk.name, size, hashes)
        with (
            explained("readable", path),
            open_here(self.store, self.folder, chunk.name, size, blocks) as stream,
        ):
            found = os.fstat(stream.fileno()).st_size
            if found != size:
                raise PlanFileError(path, f"must hold {size} bytes", found, CURE)
            mapped = mmap.mmap(stream.fileno(), size, access=mmap.ACCESS_READ)
        dtype = np.dtype(self.build.type_of(key[2])[0])
        numbers = np.frombuffer(mapped, dtype, offset=HEADER_BYTES)
        return Mapped(mapped, numbers, hashes, np.zeros(len(hashes), np.bool_))

    def _cure(self, there: str) -> str:
        """Return what to do about a damaged file: `there`, unless it is only a kept copy."""
        if isinstance(self.store, Folder):
            return there
        return f"delete this copy of what {self.store.path} holds, to fetch it again"

    def _chunk(self, epoch: int, number: int, kind: str) -> Chunk:
        each = self.build.units_per_chunk
        start = number * each
        return Chunk(epoch, number, start, min(start + each, self.units[epoch]), kind)
