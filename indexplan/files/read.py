"""Reading a plan directory: checked when it is opened, mapped when it is read."""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from indexplan.canonical import parse_json_object
from indexplan.dataset import Dataset
from indexplan.errors import IndexPlanError, PlanFileError, wrong
from indexplan.files.format import (
    BLOCKS,
    BUILD,
    HEADER_BYTES,
    MANIFEST,
    Chunk,
    Manifest,
    header,
)
from indexplan.files.publish import explained
from indexplan.orders.base import Int64, Order, order_from_dict
from indexplan.orders.sequential import expand
from indexplan.plan import Plan

SMALL_BYTES = 2**30  # no manifest or block table is larger: 2**27 blocks are 512 TiB
# From about this mean length on, slices beat one fancy index. For 16,384 units in runs of 64, 128
# and 256: slices 538, 273 and 138 us, the index 250 us.
LONG_RUN = 128


def open_chunk(path: Path) -> BinaryIO:
    """Open a file of a plan directory for reading; a link in its place is an error."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")


def read_small(path: Path) -> bytes:
    """Return the bytes of a manifest or block table."""
    with explained("readable", path), open_chunk(path) as stream:
        if (size := os.fstat(stream.fileno()).st_size) > SMALL_BYTES:
            raise PlanFileError(f"{path} must hold at most {SMALL_BYTES} bytes; got {size}")
        return stream.read()


def read_manifest(root: Path) -> Manifest:
    """Return the manifest of a plan directory, after comparing it with the sizes of the files.

    Raises
    ------
    PlanFileError
        If `root` is not a plan directory, is half-built, is of another format version, or a file
        is missing, has another size, or was edited as far as that can be seen without reading
        the chunks.
    """
    if not root.is_dir():
        got = "a file" if root.exists() else "nothing there"
        cure = "check the path, or build it with `indexplan build`"
        raise PlanFileError(f"{root} must be a plan directory; got {got}; {cure}")
    if not (root / MANIFEST).exists():
        if (root / BUILD).exists():
            rule = "must be finished; got a half-built one"
            raise PlanFileError(f"{root} {rule}; run the same build again to finish it")
        rule = f"must be a plan directory; got a folder without {MANIFEST}"
        raise PlanFileError(f"{root} {rule}; check the path")
    try:
        manifest = Manifest.from_dict(parse_json_object(MANIFEST, read_small(root / MANIFEST)))
    except PlanFileError as error:
        raise PlanFileError(f"{root}: {error}; restore the file, or build another plan") from error
    except IndexPlanError as error:
        raise PlanFileError(f"{root}: {error}") from error
    _check_files(root, manifest)
    return manifest


def _check_files(root: Path, manifest: Manifest) -> None:
    cure = "restore it, or delete manifest.json and run the same build again"
    for chunk, size in zip(manifest.build.chunks(), manifest.chunk_bytes, strict=True):
        path = root / chunk.name
        try:
            found = os.lstat(path).st_size
        except OSError as error:
            reason = error.strerror or str(error)
            raise PlanFileError(f"{path} must be there; got {reason!r}; {cure}") from error
        if found != size:
            raise PlanFileError(f"{path} must hold {size} bytes; got {found}; {cure}")
    table = read_small(root / BLOCKS)
    if hashlib.sha256(table).hexdigest() != manifest.blocks_sha256:
        cure = "delete blocks.npy and manifest.json, and run the same build again"
        raise PlanFileError(f"{root / BLOCKS} must be as it was written; it was not; {cure}")


def read_blocks(root: Path, manifest: Manifest) -> NDArray[np.uint64]:
    """Return the block table: the XXH64 of every block; uint64, shape (num_blocks,)."""
    table = read_small(root / BLOCKS)
    if table[:HEADER_BYTES] != header("<u8", manifest.num_blocks):
        raise PlanFileError(f"{root / BLOCKS} must hold {manifest.num_blocks} hashes; it does not")
    return np.frombuffer(table, "<u8", offset=HEADER_BYTES)


@lru_cache(maxsize=256)  # each map holds a file descriptor
def _mapped(path: str, dtype: str, size: int, manifest_sha256: str) -> NDArray[Any]:  # noqa: ARG001
    """Return the numbers of a chunk file as a view of a map of it; one map for a process."""
    with explained("readable", Path(path)), open_chunk(Path(path)) as stream:
        found = os.fstat(stream.fileno()).st_size
        if found != size:
            raise PlanFileError(f"{path} must hold {size} bytes; got {found}; restore it")
        mapped = mmap.mmap(stream.fileno(), size, access=mmap.ACCESS_READ)
    if hasattr(mapped, "madvise"):
        # Without this, ranks that each read a small slice make the kernel read everything.
        mapped.madvise(mmap.MADV_RANDOM)
    length = (size - HEADER_BYTES) // np.dtype(dtype).itemsize
    if mapped[:HEADER_BYTES] != header(dtype, length):
        raise PlanFileError(
            f"{path} must begin with a .npy header for {length} numbers; restore it"
        )
    return np.frombuffer(mapped, dtype, offset=HEADER_BYTES)


class Stored(Order):
    """An order that is read from a plan directory, and equals the order that was stored there.

    Epochs that are not stored are computed, which gives the same indices. Pickles to its path.

    Parameters
    ----------
    path : str or path-like
        The plan directory.

    Raises
    ------
    PlanFileError
        If there is no whole plan at the path.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = str(Path(path).absolute())
        self.manifest = read_manifest(Path(self.path))
        build = self.manifest.build
        self.num_samples = build.num_samples
        self.deals_bins = build.deals_bins
        self.constant_num_units = len(set(build.num_units)) == 1
        self.algorithm = str(build.order.get("algorithm"))
        self._units = dict(zip(build.epochs, build.num_units, strict=True))
        self._sizes = dict(zip(build.chunks(), self.manifest.chunk_bytes, strict=True))
        self._identity = hashlib.sha256(repr(self.manifest).encode()).hexdigest()

    def __reduce__(self) -> tuple[type[Stored], tuple[str]]:
        return Stored, (self.path,)

    def __repr__(self) -> str:
        return f"Stored({self.path!r})"

    @cached_property
    def source(self) -> Order:
        """The order that is stored, to be computed instead of read."""
        return order_from_dict(self.manifest.build.order)

    def to_dict(self) -> dict[str, Any]:
        """Return the dict form of the order that is stored."""
        return self.manifest.build.order

    def num_units(self, epoch: int) -> int:
        """Return how many units the epoch has."""
        units = self._units.get(epoch)
        return self._computed(epoch).num_units(epoch) if units is None else units

    def _computed(self, epoch: int) -> Order:
        try:
            return self.source
        except IndexPlanError as error:
            stored = self.manifest.build.epochs
            cure = f"epoch {epoch} cannot be computed here: {error}"
            rule = f"one of the {len(stored)} stored ones, {stored[0]} to {stored[-1]}"
            raise wrong("epoch", rule, epoch, cure) from error

    def _fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        if epoch not in self._units:
            self._computed(epoch)._fill(epoch, starts, stops, out)  # noqa: SLF001 (an order too)
        elif (
            self.deals_bins or len(starts) == 1 or (stops - starts).sum() >= LONG_RUN * len(starts)
        ):
            done = 0
            for number, start, stop in self._cut(starts, stops):
                numbers = self._samples(epoch, number, start, stop)
                out[done : done + len(numbers)] = numbers
                done += len(numbers)
        else:
            self._gather(epoch, expand(starts, stops), out)

    def _offsets(self, epoch: int, starts: Int64, stops: Int64) -> Int64:
        if epoch not in self._units:
            return self._computed(epoch).offsets(epoch, starts, stops)
        if not self.deals_bins:
            return super()._offsets(epoch, starts, stops)
        sizes = [
            np.diff(self._numbers(epoch, number, True)[start : stop + 1])
            for number, start, stop in self._cut(starts, stops)
        ]
        return np.concatenate([[0], np.cumsum(np.concatenate([[], *sizes]))]).astype(np.int64)

    def _locate(self, epoch: int, indices: Int64) -> Int64:
        return self.source.locate(epoch, indices)

    def _cut(self, starts: Int64, stops: Int64) -> Iterator[tuple[int, int, int]]:
        """Yield the pieces of intervals as (chunk number, start, stop), counted in the chunk."""
        each = self.manifest.build.units_per_chunk
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            while start < stop:
                number, offset = divmod(start, each)
                size = min(stop - start, each - offset)
                yield number, offset, offset + size
                start += size  # noqa: PLW2901 (walks through the interval)

    def _gather(self, epoch: int, positions: Int64, out: Int64) -> None:
        """Write the indices at single positions."""
        numbers, offsets = np.divmod(positions, self.manifest.build.units_per_chunk)
        for number in np.unique(numbers).tolist():
            chosen = numbers == number
            out[chosen] = self._numbers(epoch, number, False)[offsets[chosen]]

    def _samples(self, epoch: int, number: int, start: int, stop: int) -> NDArray[Any]:
        """Return the samples of the units [start, stop) of a chunk."""
        if self.deals_bins:
            offsets = self._numbers(epoch, number, True)
            start, stop = int(offsets[start]), int(offsets[stop])
        return self._numbers(epoch, number, False)[start:stop]

    def _numbers(self, epoch: int, number: int, offsets: bool) -> NDArray[Any]:
        """Return a chunk file's numbers: the indices, or the bins' offsets."""
        build = self.manifest.build
        start = number * build.units_per_chunk
        stop = min(start + build.units_per_chunk, self._units[epoch])
        chunk = Chunk(epoch, number, start, stop, offsets)
        path = os.path.join(self.path, chunk.name)  # noqa: PTH118 (on the path of every batch)
        dtype = "<i8" if offsets else build.dtype
        return _mapped(path, dtype, self._sizes[chunk], self._identity)


def load(path: str | os.PathLike[str], *, dataset: Dataset | None = None) -> Plan:
    """Return the plan that a plan directory holds: the same answers, read instead of computed.

    Parameters
    ----------
    path : str or path-like
        The plan directory.
    dataset : Dataset, optional
        The dataset that is to be read; compared with the one that the plan was built for.

    Returns
    -------
    Plan
        Its order is a `Stored`; its partition is the one that was saved, and `plan.replace`
        gives it another.

    Raises
    ------
    PlanFileError
        If there is no whole plan at the path, or the dataset has changed.
    """
    order = Stored(path)
    built_for = order.manifest.build.dataset
    if dataset is not None:
        if built_for is None:
            rule = "a plan that was built for a dataset"
            cure = "build it with dataset=..., or load it without"
            raise wrong(f"{path}", rule, "one that remembers none", cure)
        dataset.check_same(built_for)
    try:
        return Plan.from_dict(order.manifest.plan, order=order)
    except IndexPlanError as error:
        raise PlanFileError(f"{path}: {error}") from error
