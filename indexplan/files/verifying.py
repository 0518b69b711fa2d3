"""Verify a plan directory: every byte, against the order and the hashes.

Chunk files are shared out to a thread for each core, as they are when they are written. Each block
of 4 MiB is hashed, and compared with the same block generated again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from indexplan import kernels
from indexplan.checks import Check
from indexplan.errors import IndexPlanError, counted, difference_in_words
from indexplan.files.columns import damage
from indexplan.files.format import HEADER_BYTES, Build, Chunk, Key, hashes_in
from indexplan.files.read import Stored
from indexplan.files.running import run
from indexplan.orders.base import Order
from indexplan.stores.open import store_of
from indexplan.stores.publish import explained
from indexplan.stores.store import BLOCK_BYTES, Store

Octets = NDArray[np.uint8]

SLAB, BINS = 2**16, 2**10  # units whose samples are counted at a time


def check_files(
    stored: Stored, progress: Callable[[int, int], None] | None = None
) -> Iterator[Check]:
    """Compare every block with its hash and with what the order generates; count samples.

    Each problem names the chunk, the block and the first wrong position in it. Samples are counted
    where right bytes do not prove that each is read once.

    Raises
    ------
    PlanFileError
        If a file cannot be read, or is not a plain file.
    """
    build, root = stored.build, store_of(stored.path)
    source, unknown = stored.known
    problems = damage(root, build.spec)
    if source is not None and (said := _disagreement(build, source)):
        problems.append(f"plan.json: {said}")
        unknown, source = "its order is not that of plan.json", None
    num_bytes, done = sum(stored.sizes.values()), 0

    def take(chunk: Chunk, found: list[str]) -> None:
        nonlocal done
        done += stored.sizes[chunk.key]
        problems.extend(found)
        if progress is not None:
            progress(done, num_bytes)

    if progress is not None:
        progress(0, num_bytes)
    run(None, _look, (root, build, stored.sizes, source), build.chunks(), take)
    bytes_of, once = "every byte of every chunk is what", "every epoch reads every sample once"
    if unknown:
        yield Check(f"{bytes_of} was written", num_bytes, tuple(problems))
        yield Check(f"{bytes_of} the order generates", 0, skipped=unknown)
    else:
        yield Check(f"{bytes_of} the order generates", num_bytes, tuple(problems))
    if build.traits.reads != "once":
        yield Check(once, 0, skipped="the order need not read every sample once")
    elif problems:
        yield Check(once, 0, skipped="files are wrong, as said above")
    else:
        # what is derived from a class that is proven to be a permutation may fill otherwise
        proven = source is not None and "ip_is_permutation" in vars(type(source))
        miscounts = [] if proven else _miscounts(stored, num_bytes)
        yield Check(once, build.num_samples * len(build.epochs), tuple(miscounts))


def _disagreement(build: Build, source: Order) -> str:
    """Return in words which numbers of plan.json are not those of its order; "" if none."""
    try:
        spec = build.plan, source, build.epochs, build.units_per_chunk, build.dataset
        right = Build.of(*spec).to_dict()
    except IndexPlanError as error:
        return str(error)
    return difference_in_words(build.to_dict(), right, ["sha256"])


def _look(
    root: Store, build: Build, sizes: dict[Key, int], source: Order | None, chunk: Chunk
) -> list[str]:
    """Return what is wrong with the blocks of a chunk file."""
    problems: list[str] = []

    def note(block: int, said: str) -> None:
        problems.append(f"{chunk.name}, block {block}: {said}")

    content, hashes = root.read(chunk.hashes_name), None
    try:
        hashes = hashes_in(content, build.sha256, chunk, sizes[chunk.key])
    except IndexPlanError as error:  # they cannot be those of this chunk
        note(0, str(error))
    with explained("readable", f"{root.path}/{chunk.name}"), root.open(chunk.name) as stream:
        if (size := stream.seek(0, 2)) != sizes[chunk.key]:
            note(0, f"the file must hold {sizes[chunk.key]} bytes; got {size}")
            return problems
        stream.seek(0)
        expected = None if source is None else build.content(source, chunk)
        for number in range(-(-size // BLOCK_BYTES)):
            block = stream.read(BLOCK_BYTES)
            if hashes is not None and kernels.xxh64.xxh64(block) != hashes[number]:
                note(number, "its hash is another")
            if expected is None:
                continue
            got = np.frombuffer(block, np.uint8)
            must = np.frombuffer(next(expected, b""), np.uint8)
            if len(got) != len(must) or (got.view("<u4") != must.view("<u4")).any():
                note(number, _first_difference(build, chunk, number, got, must))
    return problems


def _first_difference(build: Build, chunk: Chunk, block: int, got: Octets, must: Octets) -> str:
    """Return a message about the first wrong number of a block, or about its header."""
    skip = HEADER_BYTES if block == 0 else 0
    if (got[:skip] != must[:skip]).any():
        return "the .npy header is wrong"
    dtype = np.dtype(build.type_of(chunk.kind)[0])
    there = got[skip : len(got) // dtype.itemsize * dtype.itemsize].view(dtype)
    right = must[skip:].view(dtype)
    if len(there) != len(right):
        return f"it holds {len(there)} numbers, not {len(right)}"
    i = int(np.argmax(there != right))
    store = (block * BLOCK_BYTES + skip - HEADER_BYTES) // dtype.itemsize + i
    what = "number" if build.traits.deals_bins else "position"
    first = store if build.traits.deals_bins else chunk.start + store
    return f"{what} {first} of epoch {chunk.epoch} holds {there[i]}, not {right[i]}"


def _miscounts(stored: Stored, num_bytes: int) -> list[str]:
    """Return messages about samples that an epoch reads not once; each sample takes a byte."""
    num_samples = stored.num_samples
    if num_samples > 2 * num_bytes:  # else a forged plan.json could ask for any memory
        return [f"its files are too short for the {counted(num_samples, 'sample')} of an epoch"]
    slab, said = BINS if stored.deals_bins else SLAB, []
    seen = np.empty(num_samples, np.bool_)
    for epoch in stored.build.epochs:
        seen[:] = False
        num_units, num_read = stored.num_units(epoch), 0
        for start in range(0, num_units, slab):
            samples = stored.take(epoch, start, min(num_units, start + slab))
            num_read += len(samples)
            seen[samples[(samples >= 0) & (samples < num_samples)]] = True
        distinct = int(np.count_nonzero(seen))
        if missing := num_samples - distinct:
            are, first = "is" if missing == 1 else "are", int(np.argmin(seen))
            said.append(
                f"epoch {epoch}: {counted(missing, 'sample')} {are} never read, first {first}"
            )
        if again := num_read - distinct:
            said.append(f"epoch {epoch}: {counted(again, 'read')} of no sample or of one again")
    return said
