"""Compressed shards, as MosaicML Streaming writes them: their hashes, and what is in them."""

from __future__ import annotations

import bz2
import hashlib
from pathlib import Path, PurePosixPath

from indexplan import IndexPlanError
from indexplan.errors import install

PIECE = 2**20  # bytes that are hashed at a time
CODECS = {".zstd": "zstd", ".br": "brotli", ".gz": "gzip", ".snappy": "snappy", ".bz2": "bz2"}


def has_hash(path: Path, noted: str) -> bool:
    """Return whether a file has the hash that an index notes, such as "sha1:2fd4..."."""
    kind, _, expected = noted.partition(":")
    if kind not in hashlib.algorithms_guaranteed or kind.startswith("shake_"):
        return True
    digest = hashlib.new(kind, usedforsecurity=False)
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest() == expected


def unzip(path: Path, name: str, num_bytes: int) -> bool:
    """Write over a compressed file what is in it; return False unless that is so many bytes."""
    codec, data = CODECS.get(PurePosixPath(name).suffix), path.read_bytes()
    if codec is None:
        raise IndexPlanError(
            name,
            "must be compressed by zstd, br, gz, snappy or bz2",
            "another ending",
            "write the shards again, or decompress them",
        )
    if codec == "bz2":
        try:
            found = bz2.BZ2Decompressor().decompress(data, num_bytes + 1)
        except OSError:
            return False
    else:
        try:
            import pyarrow as pa
        except ImportError:
            raise IndexPlanError(
                name, "needs pyarrow, to be decompressed", None, install("shards")
            ) from None
        try:
            found = pa.Codec(codec).decompress(data, num_bytes, asbytes=True)
        except (OSError, ValueError):
            return False
    path.write_bytes(found)
    return len(found) == num_bytes
