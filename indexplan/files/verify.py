"""Verification of a plan directory: every byte, against the order's spec and the block table."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from indexplan.errors import IndexPlanError
from indexplan.files.build import num_cores
from indexplan.files.format import BLOCK_BYTES, HEADER_BYTES, Build, Chunk
from indexplan.files.publish import explained
from indexplan.files.read import Stored, open_chunk, read_blocks
from indexplan.orders.base import Order


def known_source(stored: Stored) -> Order:
    """Return the order that a plan directory stores, or raise `IndexPlanError`."""
    try:
        return stored.source
    except IndexPlanError as error:
        rule = "a stored order must be known here, to be verified"
        raise IndexPlanError(f"{rule}: {error}") from error


def check_files(
    stored: Stored, progress: Callable[[int, int], None] | None = None
) -> tuple[int, list[str]]:
    """Compare every chunk with what its order generates, and with the block table.

    Returns
    -------
    num_bytes : int
        Bytes that were compared.
    problems : list of str
        Each names the chunk, the block and the first wrong position.

    Raises
    ------
    IndexPlanError
        If the order's algorithm is not known here, so that it cannot be generated.
    """
    manifest, source = stored.manifest, known_source(stored)
    root = Path(stored.path)
    table = read_blocks(root, manifest)
    total, done, first = sum(manifest.chunk_bytes), 0, 0
    tasks = []
    for chunk, size in zip(manifest.build.chunks(), manifest.chunk_bytes, strict=True):
        num_blocks = -(-size // BLOCK_BYTES)
        tasks.append((chunk, size, table[first : first + num_blocks]))
        first += num_blocks
    problems: list[str] = []
    if progress is not None:
        progress(0, total)
    with ThreadPoolExecutor(num_cores()) as pool:
        results = pool.map(lambda task: _check_chunk(root, stored, source, *task), tasks)
        for (_, size, _), found in zip(tasks, results, strict=True):
            problems.extend(found)
            done += size
            if progress is not None:
                progress(done, total)
    return total, problems


def _check_chunk(
    root: Path, stored: Stored, source: Order, chunk: Chunk, size: int, table: Any
) -> list[str]:
    from indexplan.files.xxh64 import xxh64

    build = stored.manifest.build
    path = root / chunk.name
    problems = []
    with explained("readable", path), open_chunk(path) as stream:
        if (bytes_found := os.fstat(stream.fileno()).st_size) != size:
            return [f"{chunk.name} must hold {size} bytes; got {bytes_found}"]
        for number, block in enumerate(build.content(source, chunk)):
            data = stream.read(BLOCK_BYTES)
            if number >= len(table) or xxh64(data) != int(table[number]):
                problems.append(f"{chunk.name}, block {number}: its hash is not the table's")
            if data != block:
                found = _first_difference(build, chunk, number, data, bytes(block))
                problems.append(f"{chunk.name}, block {number}: {found}")
                break
    return problems


def _first_difference(build: Build, chunk: Chunk, block: int, data: bytes, expected: bytes) -> str:
    """Say which is the first wrong number of a block, or that the header is wrong."""
    skip = HEADER_BYTES if block == 0 else 0
    if data[:skip] != expected[:skip]:
        return "the .npy header is wrong"
    dtype = np.dtype("<i8" if chunk.offsets else build.dtype)
    got = np.frombuffer(data[skip : len(data) // dtype.itemsize * dtype.itemsize], dtype)
    must = np.frombuffer(expected[skip:], dtype)
    if len(got) != len(must):
        return f"it holds {len(got)} numbers, not {len(must)}"
    i = int(np.argmax(got != must))
    place = (block * BLOCK_BYTES + skip - HEADER_BYTES) // dtype.itemsize + i
    what = "number" if build.deals_bins else "position"
    first = place if build.deals_bins else chunk.start + place
    return f"{what} {first} of epoch {chunk.epoch} holds {got[i]}, not {must[i]}"
