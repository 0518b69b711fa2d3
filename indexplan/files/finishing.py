"""The end of a build: the block table, then the manifest, which makes a plan of the directory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from indexplan.canonical import canonical_json
from indexplan.files.format import BLOCKS, MANIFEST, Build, Manifest, header
from indexplan.files.parts import Hashes, UnfinishedError, gather, sweep
from indexplan.files.places import Place
from indexplan.version import __version__


def complete(
    root: Place, build: Build, plan: dict[str, Any], left: list[tuple[int, Hashes]]
) -> None:
    """Publish the block table, then the manifest; sweep up what killed builders left."""
    table = np.concatenate([hashes for _, hashes in left])
    blocks = header("<u8", len(table)) + table.tobytes()
    root.publish(BLOCKS, [blocks])
    manifest = Manifest(
        build=build,
        plan=plan,
        chunk_bytes=tuple(size for size, _ in left),
        blocks_sha256=hashlib.sha256(blocks).hexdigest(),
        library_version=__version__,
    )
    names = [chunk.name for chunk in build.chunks()]
    root.settle([BLOCKS, *names])
    root.publish(MANIFEST, [canonical_json(manifest.to_dict()).encode()])
    root.sweep([MANIFEST, *names])
    sweep(root)


def join(root: Place, build: Build, progress: Callable[[int, int], None] | None = None) -> None:
    """Finish a build whose parts are all there, or raise `UnfinishedError`."""
    if not root.has(MANIFEST):
        try:
            plan, found = gather(root, build, progress)
            complete(root, build, plan, found)
        except UnfinishedError:
            if not root.has(MANIFEST):  # else another has just finished, and swept up
                raise
    sweep(root)
