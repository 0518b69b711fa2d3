"""The plan directory: its names, `plan.json`, and the bytes of its chunks and of their hashes.

Nothing here touches the disk. Every name is made from numbers, never read from a file; every
byte follows from the order's spec, so that any number of builders write the same ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from indexplan.canonical import canonical_json, check_fields
from indexplan.errors import Cure, IndexPlanError, counted, integer, invalid
from indexplan.once import once
from indexplan.orders.base import Int64, Order
from indexplan.orders.traits import Traits
from indexplan.seeds import EPOCH_STOP, SEED_STOP
from indexplan.shards.dataset import Dataset, Identified, dataset_of
from indexplan.stores.store import BLOCK_BYTES

FORMAT = "indexplan"
FORMAT_VERSION = 2

UNITS_PER_CHUNK = 2**26
NUM_CHUNKS_MAX = 2**20  # whoever opens a plan looks at the name and the size of each
HEADER_BYTES = 128
TAG_BYTES = 32  # with which a file of hashes says what it belongs to
SLAB_UNITS = 2**18  # units generated at a time: 2 MiB of int64, which stays in the cache

NO_UNITS = "leave out epochs that have no units"
CURE = "restore the file, or build the plan again at another path"

PLAN = "plan.json"
# kinds of chunk files: samples of units; where each unit's samples start; which part of each sample
INDICES, OFFSETS, SPANS = KINDS = "", ".offsets", ".spans"


def header(dtype: str, length: int) -> bytes:
    """Return the 128 bytes with which a one-dimensional `.npy` file begins (NEP 1, version 1.0).

    NumPy does not write them here, as its versions pad headers to different lengths.
    """
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({length},), }}"
    padded = text.ljust(HEADER_BYTES - 11) + "\n"
    return b"\x93NUMPY\x01\x00" + (HEADER_BYTES - 10).to_bytes(2, "little") + padded.encode()


Key = tuple[int, int, str]  # which chunk file: its epoch, its number there, and its kind


class Chunk(NamedTuple):
    """One file of an epoch's order: the units [start, stop), and which of `KINDS` it holds."""

    epoch: int
    number: int
    start: int
    stop: int
    kind: str

    @property
    def key(self) -> Key:
        """What the file is known by."""
        return self.epoch, self.number, self.kind

    @property
    def name(self) -> str:
        """The file's name below the plan directory."""
        return f"{self._stem}.npy"

    @property
    def hashes_name(self) -> str:
        """The name of the file with the hashes of its blocks."""
        return f"{self._stem}.xxh64"

    @property
    def _stem(self) -> str:
        return f"epoch-{self.epoch:05d}/chunk-{self.number:05d}{self.kind}"


@dataclass(frozen=True, kw_only=True)
class Build:
    """What a plan directory is a build of: the content of `plan.json`.

    It says what the order promises, so that a stored order keeps its promises where nobody knows
    its class. The partition in `plan` is the default of a loaded plan.
    """

    plan: dict[str, Any]
    num_samples: int
    traits: Traits
    stream_key: int
    epochs: tuple[int, ...]
    num_units: tuple[int, ...]
    units_per_chunk: int
    dataset: Dataset | None

    @classmethod
    def of(
        cls,
        plan: dict[str, Any],
        order: Order,
        epochs: Sequence[int],
        units_per_chunk: int,
        dataset: Dataset | Identified | None,
    ) -> Build:
        """Return the build of some epochs of a plan, given as its dict form and its order."""
        known = dataset_of(dataset)
        if known is not None and known.num_samples != order.num_samples:
            rule = f"{known.num_samples}, the dataset's number of samples"
            cure = f"use an order of {counted(known.num_samples, 'sample')}"
            raise invalid("the order's num_samples", rule, order.num_samples, cure)
        build = cls(
            plan=plan,
            num_samples=order.num_samples,
            traits=order.traits,
            stream_key=order.stream_key,
            epochs=tuple(epochs),
            num_units=tuple(
                integer(f"num_units of epoch {each}", order.num_units(each), 1, 2**63, NO_UNITS)
                for each in epochs
            ),
            units_per_chunk=integer("units_per_chunk", units_per_chunk, 1, 2**40, "leave it out"),
            dataset=known,
        )
        build.check_num_chunks()
        return build

    @property
    def order(self) -> dict[str, Any]:
        """The dict form of the order."""
        order: dict[str, Any] = self.plan["order"]
        return order

    @property
    def spec(self) -> list[dict[str, Any] | None]:
        """The dict forms that may name columns: those of the order and of the balance."""
        return [self.order, self.plan.get("balance")]

    @property
    def dtype(self) -> str:
        """The type of indices: 4 bytes if they fit."""
        return "<u4" if self.num_samples <= 2**32 else "<i8"

    @property
    def itemsize(self) -> int:
        """Bytes of an index."""
        return int(self.dtype[-1])

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of files that each chunk has."""
        return KINDS[: 3 if self.traits.cuts_samples else 2 if self.traits.deals_bins else 1]

    def type_of(self, kind: str) -> tuple[str, int]:
        """Return the type of the numbers in files of a kind, and how many of them a sample has."""
        return (self.dtype, 1) if kind == INDICES else ("<i8", 2 if kind == SPANS else 1)

    @property
    def num_chunks(self) -> int:
        """Number of chunk files."""
        chunks = sum(-(-units // self.units_per_chunk) for units in self.num_units)
        return len(self.kinds) * chunks

    def check_num_chunks(self) -> None:
        """Raise `IndexPlanError` if there are more chunk files than a plan directory can have."""
        if self.num_chunks > NUM_CHUNKS_MAX:
            cure = Cure(
                "build fewer epochs, or leave units_per_chunk out",
                "build fewer epochs, or leave --units-per-chunk out",
            )
            raise invalid("the number of chunk files", "at most 2**20", self.num_chunks, cure)

    def chunks(self) -> Iterator[Chunk]:
        """Yield the chunk files: by epoch, then chunk, indices before offsets before spans."""
        for epoch, units in zip(self.epochs, self.num_units, strict=True):
            for number, start in enumerate(range(0, units, self.units_per_chunk)):
                stop = min(units, start + self.units_per_chunk)
                for kind in self.kinds:
                    yield Chunk(epoch, number, start, stop, kind)

    def num_bytes(self, chunk: Chunk, samples: int, found: int) -> int:
        """Return the size that a chunk file of `found` bytes must have.

        How many samples bins hold is as their file says; of spans, it is the `samples` of that.
        """
        units = chunk.stop - chunk.start
        if chunk.kind == OFFSETS:
            return HEADER_BYTES + 8 * (units + 1)
        if chunk.kind == SPANS:
            return HEADER_BYTES + 16 * samples
        if self.traits.deals_bins:
            units = max(0, found - HEADER_BYTES) // self.itemsize
        return HEADER_BYTES + self.itemsize * units

    def content(self, order: Order, chunk: Chunk) -> Iterator[memoryview]:
        """Yield the bytes of a chunk file as its blocks, of 4 MiB each but for the last.

        A block is overwritten when the next is drawn.
        """
        dtype, each = self.type_of(chunk.kind)
        length = chunk.stop - chunk.start + (chunk.kind == OFFSETS)
        if chunk.kind != OFFSETS and self.traits.deals_bins:
            samples = (int(order.offsets(chunk.epoch, *slab)[-1]) for slab in _slabs(chunk))
            length = each * sum(samples)
        block = np.empty(BLOCK_BYTES, np.uint8)
        filled = HEADER_BYTES
        block[:filled] = np.frombuffer(header(dtype, length), np.uint8)
        for array in _arrays(order, chunk):
            data = array.astype(dtype).view(np.uint8)
            while len(data):
                size = min(len(data), BLOCK_BYTES - filled)
                block[filled : filled + size] = data[:size]
                filled, data = filled + size, data[size:]
                if filled == BLOCK_BYTES:
                    yield block.data
                    filled = 0
        if filled:
            yield block[:filled].data

    def to_dict(self) -> dict[str, Any]:
        """Return the content of `plan.json` as JSON types, with the digest of all the rest."""
        return {**self._content, "sha256": self.sha256}

    @once
    def sha256(self) -> str:
        """The sha256 of the canonical JSON of all fields but itself, in hexadecimal."""
        return sha256_of(self._content)

    @property
    def _content(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "plan": self.plan,
            "num_samples": self.num_samples,
            "traits": asdict(self.traits),
            "stream_key": self.stream_key,
            "epochs": list(self.epochs),
            "num_units": list(self.num_units),
            "units_per_chunk": self.units_per_chunk,
            "dataset": self.dataset.to_dict() if self.dataset else None,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Build:
        """Return the build that `to_dict` described, or raise `IndexPlanError`."""
        if data.get("format") != FORMAT:
            raise invalid("format", repr(FORMAT), data.get("format"), CURE)
        version = data.get("format_version")
        if type(version) is not int or version != FORMAT_VERSION:  # nor true, which equals 1
            cure = "read it with the indexplan that wrote it, or with a newer one"
            raise invalid("format_version", f"{FORMAT_VERSION}", version, cure)
        check_fields(PLAN, data, FIELDS, CURE)
        for name in ("epochs", "num_units"):
            if not isinstance(data[name], list):
                raise invalid(name, "a list of integers", data[name], CURE)
        epochs = tuple(integer("an epoch", epoch, 0, EPOCH_STOP, CURE) for epoch in data["epochs"])
        num_units = tuple(
            integer("num_units", units, 1, 2**63, CURE) for units in data["num_units"]
        )
        if not epochs or list(epochs) != sorted(set(epochs)) or len(epochs) != len(num_units):
            raise invalid("epochs", "rising, with one num_units each", list(epochs)[:8], CURE)
        if not isinstance(data["plan"], dict):
            raise invalid("a plan", "an object", data["plan"], CURE)
        order = data["plan"].get("order")
        if not isinstance(order, dict):
            raise invalid("a plan's order", "an object", order, CURE)
        if not isinstance(order.get("algorithm"), str):
            raise invalid("an order's algorithm", "a string", order.get("algorithm"), CURE)
        build = cls(
            plan=data["plan"],
            num_samples=integer("num_samples", data["num_samples"], 1, 2**63, CURE),
            traits=_traits(data["traits"]),
            stream_key=integer("stream_key", data["stream_key"], 0, SEED_STOP, CURE),
            epochs=epochs,
            num_units=num_units,
            units_per_chunk=integer("units_per_chunk", data["units_per_chunk"], 1, 2**40, CURE),
            dataset=None if data["dataset"] is None else Dataset.from_dict(data["dataset"]),
        )
        if build.to_dict() != data:
            raise IndexPlanError(PLAN, "must be as it was written", "an edited one", CURE)
        return build


FIELDS = ("format", "format_version", *(field.name for field in fields(Build)), "sha256")


def hashes_file(digest: str, chunk: Chunk, hashes: Sequence[int]) -> bytes:
    """Return the content of the file of a chunk's hashes.

    It begins with a digest of the plan and of the chunk's name, so that chunks which are swapped or
    copied with their hashes, from one plan or epoch to another, are found out.

    Parameters
    ----------
    digest : str
        The sha256 of the build.
    chunk : Chunk
        What was hashed.
    hashes : sequence of int
        The XXH64 of each of its blocks.
    """
    return _tag(digest, chunk) + np.array(hashes, "<u8").tobytes()


def hashes_bytes(size: int) -> int:
    """Return the size of the file of hashes of a chunk file of so many bytes."""
    return TAG_BYTES + 8 * -(-size // BLOCK_BYTES)


def hashes_in(content: bytes, digest: str, chunk: Chunk, size: int) -> list[int]:
    """Return the hashes that a file holds. `IndexPlanError` if they are of another chunk.

    Whether they are right shows when blocks are compared with them.
    """
    if len(content) != hashes_bytes(size) or content[:TAG_BYTES] != _tag(digest, chunk):
        cure = "restore it, or delete it and run the same build again"
        rule = f"must hold the hashes of {chunk.name} of this plan"
        raise IndexPlanError(chunk.hashes_name, rule, "others", cure)
    # NumPy 1 compares its uint64 with an int as floats, which lose the last bits
    found: list[int] = np.frombuffer(content, "<u8", offset=TAG_BYTES).tolist()
    return found


def _tag(digest: str, chunk: Chunk) -> bytes:
    return hashlib.sha256(f"{digest} {chunk.name}".encode()).digest()


def _traits(data: Any) -> Traits:
    """Return what a build says that its order promises, or raise `IndexPlanError`."""
    if not isinstance(data, dict):
        raise invalid("a plan's traits", "an object", data, CURE)
    check_fields("a plan's traits", data, [field.name for field in fields(Traits)], CURE)
    try:
        return Traits(**data)
    except IndexPlanError as error:
        raise IndexPlanError(error.what, error.rule, error.got, CURE) from None


def _slabs(chunk: Chunk) -> list[tuple[int, int]]:
    starts = range(chunk.start, chunk.stop, SLAB_UNITS)
    return [(start, min(chunk.stop, start + SLAB_UNITS)) for start in starts]


def _arrays(order: Order, chunk: Chunk) -> Iterator[Int64]:
    """Yield the numbers of a chunk, some at a time; offsets with the last end."""
    total = 0
    if chunk.kind == OFFSETS:
        yield np.zeros(1, np.int64)
    for start, stop in _slabs(chunk):
        if not order.deals_bins:
            yield order.take(chunk.epoch, start, stop)
            continue
        offsets = order.offsets(chunk.epoch, start, stop)
        if chunk.kind == OFFSETS:
            yield offsets[1:] + total
            total += int(offsets[-1])
            continue
        low = 0
        while low < stop - start:  # bins may be large, and a slab of them larger than memory
            high = int(np.searchsorted(offsets, offsets[low] + SLAB_UNITS, side="right")) - 1
            high = max(high, low + 1)
            ask = order.spans if chunk.kind == SPANS else order.take
            yield ask(chunk.epoch, start + low, start + high).reshape(-1)
            low = high


def sha256_of(data: Any) -> str:
    """Return the sha256 of a value's canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical_json(data).encode()).hexdigest()
