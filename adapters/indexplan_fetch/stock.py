"""The shards that are there, and which of them are dropped for another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from indexplan import Shards
from indexplan_fetch.folder import Folder
from indexplan_fetch.future import Outlook
from indexplan_fetch.source import Source


class Stock:
    """The shards of a folder that are whole, and their bytes on disk.

    Only the process that fetches has one; it begins with what an earlier process has left, where
    that is of the files that the shards name now.
    """

    def __init__(self, folder: Folder, shards: Shards, source: Source) -> None:
        self.folder, self.shards = folder, shards
        self.whole: dict[int, int] = {}
        for shard, path in folder.there().items():
            with suppress(FileNotFoundError):  # a reader may have dropped it just now
                status, noted = path.lstat(), folder.sums.read(path.name)
                if (
                    shard >= len(shards)
                    or noted is None
                    or status.st_size != source.file(shard)[2]
                    or not source.recognise(shard, noted.stamp)
                ):
                    folder.drop(path)
                else:
                    self.whole[shard] = source.bytes_on_disk(shard) or status.st_blocks * 512

    @property
    def num_bytes(self) -> int:
        """How many bytes they take."""
        return sum(self.whole.values())

    def path(self, shard: int) -> Path:
        """Return the path of a shard once it is whole."""
        return self.folder.shard(shard, self.shards.part(shard)[0])

    def drop(self, shard: int) -> None:
        """Remove a shard."""
        self.folder.drop(self.path(shard))
        del self.whole[shard]

    def forget_removed(self, shards: set[int]) -> None:
        """Forget those of some shards that somebody else has removed."""
        for shard in shards & self.whole.keys():
            if not self.path(shard).exists():
                del self.whole[shard]

    def drop_to_fit(self, cache_bytes: int | None) -> None:
        """Drop shards of an earlier run that had more room; any of them, as it happens once."""
        used = self.num_bytes
        while cache_bytes is not None and used > cache_bytes and self.whole:
            last = next(reversed(self.whole))
            used -= self.whole[last]
            self.drop(last)

    def needed_later(
        self, use: int, kept: set[int], outlook: Outlook | None, *, exact: bool
    ) -> Iterator[tuple[int, bool]]:
        """Yield the shards that are needed after a step, the last first, but those that are kept.

        Yields
        ------
        shard : int
        again : bool
            Whether the ranks read it again in this epoch.
        """
        ids = np.array(sorted(self.whole.keys() - kept), np.int64)
        if outlook is None:  # nobody knows when
            yield from ((shard, False) for shard in ids.tolist())
            return
        uses = outlook.uses(ids, exact=exact)
        again = outlook.epoch.last[ids] >= outlook.step
        for at in np.argsort(-uses, kind="stable").tolist():
            if uses[at] <= use:
                return
            yield int(ids[at]), bool(again[at])

    def choose(
        self, later: Iterable[tuple[int, bool]], short: int, over: int
    ) -> tuple[list[int], int]:
        """Return what to drop, and its bytes: the first that take `short` bytes, or all.

        What is read again in this epoch is dropped only while fewer than `over` bytes are free.
        """
        out, freed = [], 0
        for shard, again in later:
            if freed >= short or (again and freed >= over):
                break
            out.append(shard)
            freed += self.whole[shard]
        return out, freed
