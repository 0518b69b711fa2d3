"""The manifest and the block table of a plan directory, read and checked against its files."""

from __future__ import annotations

import hashlib
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from indexplan.canonical import canonical_json, parse_json_object
from indexplan.errors import IndexPlanError, PlanFileError
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
from indexplan.files.stores.store import Store

MESSAGE = 1000  # a message quotes no more of a file than this


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
            raise PlanFileError(f"{root.path} must be a plan directory; got {kind}; {cure}")
        if root.has(BUILD):
            rule = "must be finished; got a half-built one"
            raise PlanFileError(f"{root.path} {rule}; run the same build again to finish it")
        rule = f"must be a plan directory; got a folder without {MANIFEST}"
        raise PlanFileError(f"{root.path} {rule}; check the path")
    text = root.read(MANIFEST)
    try:
        manifest = Manifest.from_dict(parse_json_object(MANIFEST, text, CURE))
        columns = identities(manifest.build.spec)
    except IndexPlanError as error:
        raise PlanFileError(f"{root.path}: {_short(error)}") from error
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
            f"{root.path} must still hold the plan that was opened, of the manifest_sha256 "
            f"{expected:.16}...; got {found:.16}...; {cure}"
        )


def other_build(root: Store, build: Build) -> list[str]:
    """Return a message if build.json, which later builders rely on, differs from the manifest."""
    try:
        there = parse_json_object(BUILD, root.read(BUILD), CURE)
    except IndexPlanError as error:
        return [_short(error)]
    if canonical_json(there) == canonical_json(build.to_dict()):
        return []
    return [f"{BUILD} must hold the build that {MANIFEST} holds; got another; {CURE}"]


def _short(error: IndexPlanError) -> str:
    said = str(error)
    return said if len(said) <= MESSAGE else f"{said[:MESSAGE]}...; {CURE}"


def _check_files(root: Store, sizes: dict[str, int]) -> None:
    cure = "restore it, or delete manifest.json and run the same build again"
    for (name, size), found in zip(sizes.items(), root.sizes(sizes), strict=True):
        path = f"{root.path}/{name}"
        if found is None:
            reason = "No such file or directory"
            raise PlanFileError(f"{path} must be there; got {reason!r}; {cure}")
        if found != size:
            # builders keep what is there, and refuse it where it is wrong
            cure = "restore it, or delete it and manifest.json and run the same build again"
            raise PlanFileError(f"{path} must hold {size} bytes; got {found}; {cure}")


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
        raise PlanFileError(f"{root.path}/{BLOCKS} must be as it was written; it was not; {cure}")
    num_bytes = HEADER_BYTES + 8 * manifest.num_blocks
    if len(table) != num_bytes or table[:HEADER_BYTES] != header("<u8", manifest.num_blocks):
        cure = "delete it and manifest.json, and run the same build again"
        raise PlanFileError(f"{root.path}/{BLOCKS} must hold {manifest.num_blocks} hashes; {cure}")
    return np.frombuffer(table, "<u8", offset=HEADER_BYTES)
