"""How many bytes shards in a folder may take: as given, or what the plan reads at a time."""

from __future__ import annotations

import shutil

import numpy as np
from numpy.typing import NDArray

from indexplan import IndexPlanError, Shards
from indexplan_fetch.folder import Folder
from indexplan_fetch.future import Epoch
from indexplan_fetch.source import BLOCK, Source

FREE = (
    0.9  # of what is free on the disk and taken by shards, which they may take without being told
)

Int64s = NDArray[np.int64]


class Room:
    """The room for shards, and whether it holds what a node reads at a time.

    Without `cache_bytes` it follows the plan: the shards that are live at a step, most of all, and
    `ahead` more; a shard that a batch waits for may exceed that. It is bounded by the disk.

    Parameters
    ----------
    folder : Folder
    shards : Shards
    cache_bytes : int or None
    ahead : int
    """

    def __init__(self, folder: Folder, shards: Shards, cache_bytes: int | None, ahead: int) -> None:
        self.folder, self.shards = folder, shards
        self.cache_bytes, self.ahead = cache_bytes, ahead
        self.warning: str | None = None  # for the loop to warn of
        self._needed: int | None = None  # bytes, as far as the plan was looked at
        self._looked = (-1, -1, 0, 0)  # the epoch, its start, the steps looked at, known sizes
        self._warned = False
        self._sizes: Int64s | None = None

    def limit(self, used: int) -> int:
        """Return the most bytes that shards may ever take, with `used` by those that are there."""
        if self.cache_bytes is not None:
            return self.cache_bytes
        return int((shutil.disk_usage(self.folder.path).free + used) * FREE)

    def most(self, used: int) -> int:
        """Return how many bytes shards may take without need."""
        limit = self.limit(used)
        return limit if self.cache_bytes or self._needed is None else min(limit, self._needed)

    def no_room(self, what: str, num_bytes: int, used: int, fewer: str) -> IndexPlanError:
        """Return the error about shards that do not fit; `fewer` takes less room."""
        if self.cache_bytes is None:
            rule = f"must have room for {num_bytes} bytes, which {what}"
            got = f"{self.limit(used)}, nine tenths of what is free on its disk"
            cure = f"free some, pass a folder on a larger disk, or {fewer}"
            return IndexPlanError("cache_dir", rule, got, cure)
        rule = f"must be at least {num_bytes}, which {what}"
        return IndexPlanError("cache_bytes", rule, self.cache_bytes, f"pass more, or {fewer}")

    def follow(self, epoch: Epoch, source: Source, used: int) -> None:
        """Count what the plan needs in an epoch, when twice as much of it is known, or all."""
        known = source.known_on_disk()
        *begun, seen, num_known = self._looked
        more = epoch.seen >= 2 * seen or (epoch.complete and seen < epoch.stop)
        if begun == [epoch.number, epoch.start] and not more and len(known) <= 2 * num_known:
            return
        self._looked = epoch.number, epoch.start, epoch.seen, len(known)
        sizes = self._on_disk(dict(known))
        read = epoch.order
        if not len(read):
            return
        change = np.zeros(epoch.seen - epoch.start + 1, np.int64)
        np.add.at(change, epoch.first[read] - epoch.start, sizes[read])
        np.subtract.at(change, epoch.last[read] + 1 - epoch.start, sizes[read])
        live = int(np.cumsum(change).max())
        self._needed = max(live + self.ahead * int(sizes[read].mean() + 1), self._needed or 0)
        if epoch.complete and not self._warned:
            self._warn(live, used)

    def _on_disk(self, known: dict[int, int]) -> Int64s:
        """Return the bytes that each shard takes on this disk.

        A row group's are known when its file's footer was read; until then they are taken to be in
        proportion to its samples, as those that are known are.
        """
        if self._sizes is None:
            parts = np.array(self.shards.parts, np.int64)
            sizes = self.shards.sizes.array.astype(np.float64)
            files = np.repeat(np.arange(len(parts)), parts)
            samples = np.bincount(files, sizes, minlength=len(parts))
            num_bytes = np.array(self.shards.num_bytes, np.float64)
            share = np.where(samples > 0, num_bytes / np.maximum(samples, 1), 0)[files] * sizes
            taken = num_bytes if self.shards.whole_files else share + 3 * BLOCK
            self._sizes = (np.ceil(taken / BLOCK) * BLOCK).astype(np.int64)
        if not known:
            return self._sizes
        ids = np.fromiter(known.keys(), np.int64)
        exact = np.fromiter(known.values(), np.int64)
        ratio = float(exact.sum()) / max(1, int(self._sizes[ids].sum()))
        found: Int64s = (self._sizes * ratio).astype(np.int64)
        found[ids] = exact
        return found

    def _warn(self, live: int, used: int) -> None:
        """Warn, once, if there is less room than the shards take that are read at a time."""
        given = self.cache_bytes
        most = self.limit(used)
        if live <= most:
            return
        self._warned = True
        what = f"{live}, the bytes of the shards that this node reads at a time"
        again = ": now shards are downloaded again and again"
        if given is None:
            got = f"{most}, nine tenths of what is free"
            cure = "use a larger disk, or an order that reads fewer shards at a time"
            error = IndexPlanError("the disk of cache_dir", f"must hold {what}", got, cure + again)
        else:
            cure = f"pass {self._needed}, with {self.ahead} shards ahead, or leave it out"
            error = IndexPlanError("cache_bytes", f"must be at least {what}", given, cure + again)
        self.warning = str(error)
