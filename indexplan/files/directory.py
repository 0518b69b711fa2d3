"""The manifest and the block table of a plan directory, read and checked against its files."""

from __future__ import annotations

import hashlib
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from indexplan.canonical import canonical_json, parse_json_object
from indexplan.errors import IndexPlanError, PlanFileError, in_file
from indexplan.files.columns import identities, num_bytes
from indexplan.files.format import (
    BLOCKS,
    BUILD,
    CURE,
    HEADER_BYTES,
    MANIFEST,
    Build,
    Manifest,
    header,
)
from indexplan.stores.store import Store


def read_manifest(root: Store) -> Manifest:
    """Return the manifest of a plan directory, after comparing it with the sizes of the files.

    Raises
    ------
    PlanFileError
        If `root` is not a plan directory, is half-built or of another format version, or if a file
        is missing, has another size, or was edited, as far as that shows without reading chunks.
    """
    if not root.has(MANIFEST):
        if (kind := root.kind()) != "a folder":
            cure = "check the path, or build it with `indexplan build`"
            raise PlanFileError(root.path, "must be a plan directory", kind, cure)
        if root.has(BUILD):
            cure = "run the same build again to finish it"
            raise PlanFileError(root.path, "must be finished", "a half-built one", cure)
        got = f"a folder without {MANIFEST}"
        raise PlanFileError(root.path, "must be a plan directory", got, "check the path")
    text = root.read(MANIFEST)
    try:
        manifest = Manifest.from_dict(parse_json_object(MANIFEST, text, CURE))
        columns = identities(manifest.build.spec)
    except IndexPlanError as error:
        raise in_file(root.path, error) from error
    chunks = [chunk.name for chunk in manifest.build.chunks()]
    sizes = dict(zip(chunks, manifest.chunk_bytes, strict=True))
    _check_files(root, {**sizes, **{name: num_bytes(columns[name]) for name in columns}})
    read_blocks(root, manifest)
    return manifest


def check_digest(root: Store, expected: str, found: str | None = None) -> None:
    """Raise `PlanFileError` unless the manifest still has this digest.

    `found` is the digest of the manifest that is there, if that has been read.
    """
    if found is None:
        found = "none"
        if root.has(MANIFEST):
            with suppress(IndexPlanError):  # a damaged manifest is not the expected one either
                manifest = parse_json_object(MANIFEST, root.read(MANIFEST))
                found = str(manifest.get("manifest_sha256"))
    if found != expected:
        cure = "open it again, and give every plan a path of its own"
        raise PlanFileError(
            root.path,
            f"must still hold the plan that was opened, of the manifest_sha256 {expected:.16}...",
            f"{found:.16}...",
            cure,
        )


def other_build(root: Store, build: Build) -> IndexPlanError | None:
    """Return an error if build.json, which later builders rely on, differs from the manifest."""
    try:
        there = parse_json_object(BUILD, root.read(BUILD), CURE)
    except IndexPlanError as error:
        return error
    if canonical_json(there) == canonical_json(build.to_dict()):
        return None
    rule = f"must hold the build that {MANIFEST} holds"
    return IndexPlanError(BUILD, rule, "another", CURE)


def _check_files(root: Store, sizes: dict[str, int]) -> None:
    cure = "restore it, or delete manifest.json and run the same build again"
    for (name, size), found in zip(sizes.items(), root.sizes(sizes), strict=True):
        path = f"{root.path}/{name}"
        if found is None:
            reason = "No such file or directory"
            raise PlanFileError(path, "must be there", f"{reason!r}", cure)
        if found != size:
            # builders keep what is there, and refuse it where it is wrong
            cure = "restore it, or delete it and manifest.json and run the same build again"
            raise PlanFileError(path, f"must hold {size} bytes", found, cure)


def read_blocks(root: Store, manifest: Manifest) -> NDArray[np.uint64]:
    """Return the block table: the XXH64 of every block; uint64, shape (num_blocks,).

    Raises
    ------
    PlanFileError
        If it is not the one that the manifest names.
    """
    table = root.read(BLOCKS)
    if hashlib.sha256(table).hexdigest() != manifest.blocks_sha256:
        cure = "delete blocks.npy and manifest.json, and run the same build again"
        raise PlanFileError(
            f"{root.path}/{BLOCKS}", "must be as it was written", "other bytes", cure
        )
    num_bytes = HEADER_BYTES + 8 * manifest.num_blocks
    if len(table) != num_bytes or table[:HEADER_BYTES] != header("<u8", manifest.num_blocks):
        cure = "delete it and manifest.json, and run the same build again"
        raise PlanFileError(
            f"{root.path}/{BLOCKS}", f"must hold {manifest.num_blocks} hashes", None, cure
        )
    return np.frombuffer(table, "<u8", offset=HEADER_BYTES)
