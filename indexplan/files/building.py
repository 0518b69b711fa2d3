"""Building a plan directory, without locks: any number may do so at once, and die at any moment."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from itertools import islice
from typing import Any

import numpy as np

from indexplan.canonical import canonical_json
from indexplan.errors import PlanFileError, in_file
from indexplan.files import columns
from indexplan.files.chunk_files import Progress, write_chunks
from indexplan.files.directory import PlanDirectory
from indexplan.files.format import (
    BLOCKS,
    BUILD,
    DERIVED,
    MANIFEST,
    Build,
    Manifest,
    Written,
    header,
)
from indexplan.files.parts import (
    Part,
    Parts,
    UnfinishedError,
    check_partition,
    chunks_of,
    hashes_of,
)
from indexplan.orders.base import Order
from indexplan.orders.columns import Column
from indexplan.orders.fields import difference_in_words
from indexplan.stores.agree import claim
from indexplan.stores.store import BLOCK_BYTES
from indexplan.version import __version__


class Building:
    """One builder at work; its methods stand in the order in which `save` calls them.

    Files appear whole, the manifest last. Files that are there are compared, not trusted: they may
    be damaged, or of another build or partition. Whoever is second at a name keeps the first one's
    file.

    Parameters
    ----------
    directory : PlanDirectory
        Where to build.
    build : Build
        What `build.json` is to say.
    plan : dict
        The dict form of the plan.
    """

    def __init__(self, directory: PlanDirectory, build: Build, plan: dict[str, Any]) -> None:
        self.directory = directory
        self.store = directory.store
        self.build = build
        self.plan = plan

    def claim(self) -> None:
        """Make the directory, and say there what it is a build of.

        Raises
        ------
        PlanFileError
            If it is something else, or a build with another order, epochs or partition.
        """
        mine = self.build.to_dict()
        there = claim(self.store, BUILD, "a plan directory", mine)
        if there != mine:
            said = difference_in_words(there, mine, DERIVED) or "other fields"
            raise PlanFileError(
                self.store.path,
                "must be a build of the same order and epochs",
                f"one with {said[:1000]}",
                "choose another path",
            )
        if self._finished() is None:
            Parts(self.directory, self.build).check_first(self.plan)

    def write_columns(self, found: Mapping[str, Column]) -> None:
        """Write the columns of the plan, or check those that are there."""
        columns.publish(self.store, found)

    def write_chunks(
        self, order: Order, numbers: range, executor: Executor | None, progress: Progress | None
    ) -> list[Written]:
        """Write the chunk files of some numbers, or compare those that are there."""
        return write_chunks(self.store, self.build, order, numbers, executor, progress)

    def complete(self, written: list[Written]) -> None:
        """Publish the block table of all chunks, then the manifest: now it is a plan."""
        table = hashes_of(written)
        blocks = header("<u8", len(table)) + table.tobytes()
        if not self.store.publish(BLOCKS, [blocks]) and self.store.read(BLOCKS) != blocks:
            raise self._other_bytes(BLOCKS)
        manifest = Manifest(
            build=self.build,
            plan=self.plan,
            chunk_bytes=tuple(each.size for each in written),
            blocks_sha256=hashlib.sha256(blocks).hexdigest(),
            library_version=__version__,
        )
        self.store.settle([BLOCKS, *self._names(range(self.build.num_chunks))])
        if not self.store.publish(MANIFEST, [canonical_json(manifest.to_dict()).encode()]):
            self._compare(0, written)

    def record(self, number: int, of: int, written: list[Written]) -> bool:
        """Publish the record of a part, and make a plan of all parts if this was the last.

        Returns
        -------
        bool
            Whether it is a plan now.
        """
        part = Part(number=number, of=of, plan=self.plan, written=tuple(written))
        Parts(self.directory, self.build).publish(part)
        try:
            joined(self.directory, self.build)
        except UnfinishedError:
            return False
        self._compare(chunks_of(self.build.num_chunks, number, of).start, written)
        return True

    def sweep(self, unfinished: range | None = None) -> None:
        """Remove what dead builders left, and the records of parts.

        While it is not a plan, the records stay, and only the folders of some chunks are looked at.
        """
        numbers = range(self.build.num_chunks) if unfinished is None else unfinished
        self.store.sweep([BUILD, *self._names(numbers)])
        if unfinished is None:
            Parts(self.directory, self.build).remove()

    def _names(self, numbers: range) -> Iterator[str]:
        """Yield the names of the columns, and of some chunk files."""
        yield from columns.identities(self.build.spec)
        chunks = islice(self.build.chunks(), numbers.start, numbers.stop)
        yield from (chunk.name for chunk in chunks)

    def _finished(self) -> PlanDirectory | None:
        """Return the plan that is there now, which must be this one; None if there is none."""
        there = PlanDirectory(self.store)
        if not there.is_finished:
            return None
        if not there.agrees():
            raise self._other_bytes(MANIFEST)
        check_partition(self.store.path, there.manifest.plan, self.plan, finished=True)
        return there

    def _compare(self, first: int, written: list[Written]) -> None:
        """Compare the finished plan with what this builder has of its chunks, from `first` on."""
        there = self._finished()
        if there is not None:  # it may just have been removed
            sizes = there.manifest.chunk_bytes
            skip = sum(-(-size // BLOCK_BYTES) for size in sizes[:first])
            hashes = hashes_of(written)
            if sizes[first : first + len(written)] == tuple(each.size for each in written):
                blocks = there.blocks_of(there.manifest)
                if np.array_equal(blocks[skip : skip + len(hashes)], hashes):
                    return
        # its block table may be another's too: builders keep what is there, and would refuse that
        raise self._other_bytes(MANIFEST, f"delete it and {BLOCKS}, and run the same build again")

    def _other_bytes(
        self, name: str, cure: str = "delete the file and run the same build again"
    ) -> PlanFileError:
        return PlanFileError(
            f"{self.store.path}/{name}", "must hold what its build writes", "other bytes", cure
        )


def joined(
    directory: PlanDirectory, build: Build, progress: Progress | None = None
) -> PlanDirectory:
    """Return the plan that the parts of a build make together, or raise `UnfinishedError`.

    Chunks are not read, as each part has recorded the hashes of what it has written.
    """
    if not directory.is_finished:
        try:
            plan, written = Parts(directory, build).gather(progress)
            Building(directory, build, plan).complete(written)
        except UnfinishedError:
            if not directory.is_finished:  # else another builder has just finished, and swept up
                raise
    whole = PlanDirectory(directory.store)  # as it is now
    whole.check()
    if (error := whole.other_build(whole.manifest.build)) is not None:
        raise in_file(whole.path, error)
    return whole
