"""The chunk files that a process has mapped, and which of their blocks it has checked."""

from __future__ import annotations

import mmap
import os
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from indexplan import kernels
from indexplan.errors import IndexPlanError, PlanFileError, in_file
from indexplan.files.directory import check_digest
from indexplan.files.format import HEADER_BYTES, PLAN, Build, Chunk, Key, hashes_in, header
from indexplan.orders.units import Int64, expand
from indexplan.stores.cache import cache_folder, checked_chunk, fetch
from indexplan.stores.folder import Folder
from indexplan.stores.plain import open_file
from indexplan.stores.publish import explained
from indexplan.stores.store import BLOCK_BYTES, Store

CURE = "restore it, or delete it and run the same build again"

# Each map holds a file descriptor, of which macOS gives a process 256: maps take at most a quarter
# of the limit. The one that was mapped first is dropped first, which takes no lock.
MAPS, OF_DESCRIPTORS = 64, 4
TICKS = 20_000_000  # nanoseconds: some ticks of the clock that file systems stamp files with

Status = tuple[int, ...] | None


def plan_status(root: str) -> Status:
    """Return file status that changes when plan.json is replaced; None if there is none."""
    return _status(Path(root) / PLAN)


def _status(path: Path) -> Status:
    """Return file status that changes with each write to a file; None if it is gone."""
    try:
        return _status_of(os.lstat(path))
    except OSError:
        return None


def _status_of(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


class Chunks:
    """The chunk files of a plan directory, as a process reads them.

    `Chunks.of` returns one for all orders of a process that read the same directory, so that a
    file is mapped once, and a block checked once, unless the file has been written to when an order
    is opened or the file mapped again. There are no locks, which a fork could leave locked for
    ever: two threads that touch a new block at once both check it.

    Parameters
    ----------
    store : Store
        The plan directory, under its absolute path or URL.
    build : Build
        What it is a build of.
    sizes : dict
        The bytes of each file, as they were when an order was opened last.
    status : tuple, optional
        The `plan_status` from before that was read.
    """

    def __init__(
        self, store: Store, build: Build, sizes: dict[Key, int], status: Status = None
    ) -> None:
        self.store, self.build, self.sizes, self._status = store, build, sizes, status
        # the files that are mapped: those of the plan directory, or kept copies of those in a store
        here, root = isinstance(store, Folder), store.path
        self.folder = Path(root) if here else cache_folder(root, build.sha256)
        self.units = dict(zip(build.epochs, build.num_units, strict=True))
        self._hashes: dict[Key, list[int]] = {}  # of files that are mapped and checked
        self._checked: dict[Key, NDArray[np.bool_]] = {}
        # of each file, when it was last mapped, and whether it was new then
        self._of_checked: dict[Key, tuple[Status, bool]] = {}
        self._maps: OrderedDict[Key, tuple[mmap.mmap, NDArray[Any]]] = OrderedDict()

    @classmethod
    def of(cls, store: Store, build: Build, sizes: dict[Key, int], status: Status) -> Chunks:
        """Return the process's own chunks of a directory that holds this plan."""
        key = store.path, build.sha256
        chunks = _CHUNKS.get(key) or _CHUNKS.setdefault(key, cls(store, build, sizes, status))
        chunks.sizes = sizes  # those of bins are known only from their files
        chunks.forget_changed()
        return chunks

    def forget_changed(self) -> None:
        """Forget what was checked of files that have been written to since."""
        for key, (before, recent) in list(self._of_checked.items()):
            changed = not before or before != _status(self.folder / self._chunk(*key).name)
            if changed or recent:
                self._checked.pop(key, None)
            if changed:  # else a map outlives its plan, whose hashes are gone
                self._hashes.pop(key, None)

    def read_ahead(self, epoch: int, number: int, kind: str, start: int, stop: int) -> None:
        """Let the kernel read the numbers [start, stop) at once, not page by page."""
        mapped, numbers = self._mapped((epoch, number, kind))
        first, last = (HEADER_BYTES + i * numbers.itemsize for i in (start, stop))
        if hasattr(mapped, "madvise"):
            first -= first % mmap.PAGESIZE
            mapped.madvise(mmap.MADV_WILLNEED, first, last - first)

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
        # first, as this forgets what was checked of another file
        numbers = (self._maps.get(key) or self._mapped(key))[1]
        checked = self._checked.get(key)
        if checked is None:
            num_blocks = -(-self.sizes[key] // BLOCK_BYTES)
            checked = self._checked.setdefault(key, np.zeros(num_blocks, np.bool_))
        each = numbers.itemsize
        first: Any = (HEADER_BYTES + starts * each) // BLOCK_BYTES
        last: Any = (HEADER_BYTES + (starts + sizes) * each - 1) // BLOCK_BYTES
        if isinstance(first, int):
            blocks: Iterable[int] = range(first, last + 1)
        else:
            touched = first if (first == last).all() else expand(first, last + 1)
            blocks = np.unique(touched[~checked[touched]]).tolist()
        for block in blocks:
            if not checked[block]:
                self._check_block(key, block)
                checked[block] = True
        return numbers

    def _check_block(self, key: Key, block: int) -> None:
        mapped = self._mapped(key)[0]
        start = block * BLOCK_BYTES
        size = min(BLOCK_BYTES, len(mapped) - start)
        if hasattr(mapped, "madvise"):  # read it at once, not page by page
            mapped.madvise(mmap.MADV_WILLNEED, start, size)
        found = kernels.xxh64.xxh64(np.frombuffer(mapped, np.uint8, size, start))
        if found != (noted := self._hashes_of(key)[block]):
            self._maps.pop(key, None)  # the file may be restored, or that of its hashes
            self._hashes.pop(key, None)
            chunk = self._chunk(*key)
            rule = f"must have the XXH64 in {chunk.hashes_name}, {noted:016x}"
            cure = (
                "run `indexplan verify` to see what is wrong, then restore the file, or delete it "
                "and its hashes and run the same build again"
            )
            what = f"{self.folder / chunk.name}, block {block}"
            raise PlanFileError(what, rule, f"{found:016x}", self._cure(cure))

    def _hashes_of(self, key: Key) -> list[int]:
        """Return the hashes of a chunk file's blocks; they are kept as long as its map."""
        found = self._hashes.get(key)
        if found is None:
            chunk = self._chunk(*key)
            content = self.store.read(chunk.hashes_name)
            try:
                found = hashes_in(content, self.build.sha256, chunk, self.sizes[key])
            except IndexPlanError as error:
                raise in_file(self.store.path, error) from None
            self._hashes[key] = found
        return found

    def _open(self, key: Key, name: str) -> BufferedReader:
        """Open a chunk file on this machine; it is downloaded first if need be."""
        if isinstance(self.store, Folder):
            return open_file(self.folder, name)
        size = self.sizes[key]
        blocks = partial(self._downloaded, key, name, size)
        return fetch(self.store, size, blocks, self.folder / name)

    def _downloaded(self, key: Key, name: str, size: int) -> Iterator[bytes]:
        return checked_chunk(self.store, name, size, self._hashes_of(key))

    def _mapped(self, key: Key) -> tuple[mmap.mmap, NDArray[Any]]:
        """Return the memory map of a chunk file, and its numbers as a view of the map."""
        found = self._maps.get(key)
        if found is None:
            found = self._maps.setdefault(key, self._map(key))
            while len(self._maps) > _most_maps():
                dropped, _ = self._maps.popitem(last=False)
                self._hashes.pop(dropped, None)
        return found

    def _map(self, key: Key) -> tuple[mmap.mmap, NDArray[Any]]:
        size, name = self.sizes[key], self._chunk(*key).name
        path = self.folder / name
        with explained("readable", path), self._open(key, name) as stream:
            self._check_same()
            found = os.fstat(stream.fileno())
            if found.st_size != size:
                raise PlanFileError(path, f"must hold {size} bytes", found.st_size, CURE)
            if ((now := _status_of(found)), False) != self._of_checked.get(key):
                self._checked.pop(key, None)
            recent = time.time_ns() - found.st_ctime_ns < TICKS  # and may change without a trace
            self._of_checked[key] = now, recent
            mapped = mmap.mmap(stream.fileno(), size, access=mmap.ACCESS_READ)
        if hasattr(mapped, "madvise"):
            # Without this, ranks that each read a small slice make the kernel read everything.
            mapped.madvise(mmap.MADV_RANDOM)
        dtype = np.dtype(self.build.type_of(key[2])[0])
        length = (size - HEADER_BYTES) // dtype.itemsize
        if mapped[:HEADER_BYTES] != header(dtype.str, length):
            raise PlanFileError(
                path,
                f"must begin with a .npy header for {length} numbers",
                "another",
                self._cure(CURE),
            )
        return mapped, np.frombuffer(mapped, dtype, offset=HEADER_BYTES)

    def _cure(self, there: str) -> str:
        """Return what to do about a damaged file: `there`, unless it is only a kept copy."""
        if isinstance(self.store, Folder):
            return there
        return f"delete this copy of what {self.store.path} holds, to fetch it again"

    def _check_same(self) -> None:
        """Raise `PlanFileError` if another plan has taken the place of this one.

        It is enough to look after a file was opened, as a plan can be replaced only by deleting it,
        plan.json and all. Files from a store are compared with their hashes instead.
        """
        if isinstance(self.store, Folder):
            status = plan_status(self.store.path)
            if status is None or status != self._status:
                check_digest(self.store, self.build.sha256)
                self._status = status

    def _chunk(self, epoch: int, number: int, kind: str) -> Chunk:
        each = self.build.units_per_chunk
        start = number * each
        return Chunk(epoch, number, start, min(start + each, self.units[epoch]), kind)


def _most_maps() -> int:
    """Return how many files of a plan directory may be mapped at a time."""
    try:
        import resource
    except ImportError:  # Windows, where a map holds no descriptor
        return MAPS
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAPS if limit == resource.RLIM_INFINITY else max(1, min(MAPS, limit // OF_DESCRIPTORS))


_CHUNKS: WeakValueDictionary[tuple[str, str], Chunks] = WeakValueDictionary()
