"""The end of a build: the block table, then the manifest, which makes a plan of the directory.

Files that are there are compared, not trusted: they may be damaged, or of another partition.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from indexplan.canonical import canonical_json, parse_json_object
from indexplan.errors import IndexPlanError, PlanFileError, in_file
from indexplan.files.columns import identities
from indexplan.files.directory import other_build, read_blocks, read_manifest
from indexplan.files.format import BLOCKS, MANIFEST, Build, Manifest, header
from indexplan.files.parts import (
    Hashes,
    UnfinishedError,
    check_partition,
    first_plan,
    gather,
    sweep,
)
from indexplan.stores.store import BLOCK_BYTES, Store
from indexplan.version import __version__


def check_there(root: Store, plan: dict[str, Any]) -> None:
    """Raise `PlanFileError` early if a build with this partition could not end well here."""
    if finished(root, plan) is None and (there := first_plan(root)) is not None:
        check_partition(root, there, plan)


def finished(root: Store, plan: dict[str, Any]) -> Manifest | None:
    """Return the manifest that is there, which must be this plan's; None if there is none."""
    if not root.has(MANIFEST):
        return None
    text, manifest = root.read(MANIFEST), None
    with suppress(IndexPlanError):
        manifest = Manifest.from_dict(parse_json_object(MANIFEST, text))
    if manifest is None or other_build(root, manifest.build) is not None:
        raise _other_bytes(root, MANIFEST)
    check_partition(root, manifest.plan, plan, finished=True)
    return manifest


def complete(
    root: Store, build: Build, plan: dict[str, Any], left: list[tuple[int, Hashes]]
) -> None:
    """Publish the block table, then the manifest."""
    table = np.concatenate([hashes for _, hashes in left])
    blocks = header("<u8", len(table)) + table.tobytes()
    if not root.publish(BLOCKS, [blocks]) and root.read(BLOCKS) != blocks:
        raise _other_bytes(root, BLOCKS)
    manifest = Manifest(
        build=build,
        plan=plan,
        chunk_bytes=tuple(size for size, _ in left),
        blocks_sha256=hashlib.sha256(blocks).hexdigest(),
        library_version=__version__,
    )
    root.settle([BLOCKS, *file_names(build)])
    if not root.publish(MANIFEST, [canonical_json(manifest.to_dict()).encode()]):
        check_chunks(root, plan, 0, left)


def file_names(build: Build) -> Iterator[str]:
    """Yield the names of the files that are in folders below the plan directory."""
    yield from identities(build.spec)
    yield from (chunk.name for chunk in build.chunks())


def clear(root: Store, build: Build) -> None:
    """Remove temporary files of dead builders and records of parts: the plan is finished."""
    root.sweep([MANIFEST, *file_names(build)])
    sweep(root)


def check_chunks(
    root: Store, plan: dict[str, Any], first: int, left: list[tuple[int, Hashes]]
) -> None:
    """Compare the finished plan with what a builder has of its chunks, from number `first` on."""
    sizes = tuple(size for size, _ in left)
    hashes = np.concatenate([np.empty(0, np.uint64), *(hashes for _, hashes in left)])
    manifest = finished(root, plan)
    if (
        manifest is None  # it has just been removed
        or manifest.chunk_bytes[first : first + len(left)] != sizes
        or not np.array_equal(_hashes(root, manifest, first, len(hashes)), hashes)
    ):
        raise _other_bytes(root, MANIFEST)


def _hashes(root: Store, manifest: Manifest, first: int, num_blocks: int) -> Hashes:
    """Return that many hashes of the block table, from chunk number `first` on."""
    skip = sum(-(-size // BLOCK_BYTES) for size in manifest.chunk_bytes[:first])
    return read_blocks(root, manifest)[skip : skip + num_blocks]


def join(root: Store, build: Build, progress: Callable[[int, int], None] | None = None) -> Manifest:
    """Finish a build whose parts are all there, or raise `UnfinishedError`."""
    if not root.has(MANIFEST):
        try:
            plan, found = gather(root, build, progress)
            complete(root, build, plan, found)
        except UnfinishedError:
            if not root.has(MANIFEST):  # else another builder has just finished, and swept up
                raise
    manifest = read_manifest(root)
    if (error := other_build(root, manifest.build)) is not None:
        raise in_file(root.path, error)
    clear(root, build)
    return manifest


def _other_bytes(root: Store, name: str) -> PlanFileError:
    cure = "delete the file and run the same build again"
    return PlanFileError(
        f"{root.path}/{name}", "must hold what its build writes", "other bytes", cure
    )
