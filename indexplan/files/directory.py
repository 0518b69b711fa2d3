"""A plan directory as one reader or builder found it: what it is a build of, and its manifest."""

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
from indexplan.once import once
from indexplan.stores.store import Store


class PlanDirectory:
    """What a place holds of a plan.

    What it is a build of and its manifest are read at their first use, and kept. Other builders may
    add files at any time: to see these, make another one, for a new look.

    Parameters
    ----------
    store : Store
        The place.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.path = store.path

    @property
    def is_finished(self) -> bool:
        """Whether there is a manifest, now."""
        return self.store.has(MANIFEST)

    @once
    def build(self) -> Build:
        """What the directory is a build of; `PlanFileError` if it is none, or the file is wrong."""
        if not self.store.has(BUILD):
            self.check()  # which says what is there instead
        text = self.store.read(BUILD)
        try:
            build = Build.from_dict(parse_json_object(BUILD, text, CURE))
            build.check_num_chunks()
        except IndexPlanError as error:
            raise in_file(self.path, error) from None
        return build

    @once
    def _text(self) -> bytes:
        return self.store.read(MANIFEST)

    @once
    def manifest(self) -> Manifest:
        """What the manifest says, which agrees with itself; `check` compares it with the files."""
        text = self._text
        try:
            manifest = Manifest.from_dict(parse_json_object(MANIFEST, text, CURE))
            identities(manifest.build.spec)
        except IndexPlanError as error:
            raise in_file(self.path, error) from error
        return manifest

    def blocks_of(self, manifest: Manifest) -> NDArray[np.uint64]:
        """Return the block table that is there now: the XXH64 of every block; uint64.

        It is not kept, as only readers that check what they touch need it again.

        Raises
        ------
        PlanFileError
            If it is not the table that the manifest names.
        """
        table = self.store.read(BLOCKS)
        if hashlib.sha256(table).hexdigest() != manifest.blocks_sha256:
            cure = "delete blocks.npy and manifest.json, and run the same build again"
            raise PlanFileError(
                f"{self.path}/{BLOCKS}", "must be as it was written", "other bytes", cure
            )
        num_bytes = HEADER_BYTES + 8 * manifest.num_blocks
        if len(table) != num_bytes or table[:HEADER_BYTES] != header("<u8", manifest.num_blocks):
            cure = "delete it and manifest.json, and run the same build again"
            raise PlanFileError(
                f"{self.path}/{BLOCKS}", f"must hold {manifest.num_blocks} hashes", None, cure
            )
        return np.frombuffer(table, "<u8", offset=HEADER_BYTES)

    def check(self) -> None:
        """Compare the manifest with the sizes of all files, and the block table with its digest.

        Raises
        ------
        PlanFileError
            If the place is no plan directory, is half-built or of another format version, or if a
            file is missing, has another size, or was edited, as far as that shows without reading
            chunks.
        """
        if not self.is_finished:
            raise self._unfinished()
        build = self.manifest.build
        chunks = (chunk.name for chunk in build.chunks())
        sizes = dict(zip(chunks, self.manifest.chunk_bytes, strict=True))
        columns = identities(build.spec)
        sizes |= {name: num_bytes(identity) for name, identity in columns.items()}
        optional = {f"columns/{digest}.npy" for digest in build.over}
        for (name, size), found in zip(sizes.items(), self.store.sizes(sizes), strict=True):
            if found is not None or name not in optional:
                self._check_size(name, size, found)
        self.blocks_of(self.manifest)

    def _unfinished(self) -> PlanFileError:
        """Return an error that says what is there instead of a plan."""
        if (kind := self.store.kind()) != "a folder":
            cure = "check the path"
            if kind == "nothing there":  # else a build would refuse the path
                cure += ", or build it with `indexplan build`"
            return PlanFileError(self.path, "must be a plan directory", kind, cure)
        if self.store.has(BUILD):
            cure = "run the same build again to finish it"
            return PlanFileError(self.path, "must be finished", "a half-built one", cure)
        got = f"a folder without {MANIFEST}"
        return PlanFileError(self.path, "must be a plan directory", got, "check the path")

    def _check_size(self, name: str, size: int, found: int | None) -> None:
        path, cure = f"{self.path}/{name}", "restore it, or delete"
        again = "manifest.json and run the same build again"
        if found is None:
            got = "'No such file or directory'"
            raise PlanFileError(path, "must be there", got, f"{cure} {again}")
        if found != size:
            # builders keep what is there, and refuse it where it is wrong
            raise PlanFileError(path, f"must hold {size} bytes", found, f"{cure} it and {again}")

    def agrees(self) -> bool:
        """Return whether the manifest is undamaged, and `build.json` holds its build.

        Raises
        ------
        PlanFileError
            If the manifest cannot be read.
        """
        _ = self._text
        with suppress(IndexPlanError):
            return self.other_build(self.manifest.build) is None
        return False

    def other_build(self, build: Build) -> IndexPlanError | None:
        """Return an error if `build.json`, which later builders rely on, holds another build."""
        try:
            there = parse_json_object(BUILD, self.store.read(BUILD), CURE)
        except IndexPlanError as error:
            return error
        if canonical_json(there) == canonical_json(build.to_dict()):
            return None
        rule = f"must hold the build that {MANIFEST} holds"
        return IndexPlanError(BUILD, rule, "another", CURE)

    def check_digest(self, expected: str) -> None:
        """Raise `PlanFileError` unless the manifest that is there has this digest."""
        found = "none"
        if self.is_finished:
            with suppress(IndexPlanError):  # a damaged manifest is not the expected one either
                manifest = parse_json_object(MANIFEST, self._text)
                found = str(manifest.get("manifest_sha256"))
        if found != expected:
            raise replaced(self.path, expected, found)


def replaced(path: str, expected: str, found: str) -> PlanFileError:
    """Return an error about a plan that was opened, and has another digest now."""
    return PlanFileError(
        path,
        f"must still hold the plan that was opened, of the manifest_sha256 {expected:.16}...",
        f"{found:.16}...",
        "open it again, and give every plan a path of its own",
    )
