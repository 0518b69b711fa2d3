"""What the one process of a node does that fetches and drops, from taking its turn to its end."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from functools import partial
from io import FileIO

from indexplan import Shards
from indexplan_fetch.awaited import Awaited
from indexplan_fetch.fetch import Attempt, Clock, Fetch, Settings
from indexplan_fetch.folder import Folder
from indexplan_fetch.following import Reader
from indexplan_fetch.future import NEVER, Epoch, Future, Outlook
from indexplan_fetch.locks import write_note
from indexplan_fetch.metrics import Counts
from indexplan_fetch.room import Room
from indexplan_fetch.source import Source
from indexplan_fetch.stock import Stock

STILL = 5.0  # seconds without progress of the loops, after which a process that waits comes first


class Progress:
    """Whether the loops of a node stand still, while a process waits and nothing is fetched."""

    def __init__(self) -> None:
        self.stands_still = False
        self._position: tuple[int, int] | None = None
        self._moved = 0.0  # when that last changed, or something was being fetched

    def notice(self, position: tuple[int, int] | None, *, fetches: bool, waits: bool) -> None:
        """Note how far the loops are, whether bytes come, and whether a process waits."""
        now = time.monotonic()
        if position != self._position:
            self._position, self._moved, self.stands_still = position, now, False
        elif fetches or not waits:
            self._moved = now
        elif now - self._moved > STILL:
            self.stands_still = True


class Turn:
    """What is there, what is awaited, what is being fetched, and what comes next.

    Parameters
    ----------
    lock : file
        Held by this process; it notes there which it is.
    folder : Folder
    shards : Shards
    settings : Settings
    room : Room
    counts : Counts
    stop, wake : threading.Event
        Of the thread that works: it is to end, or to look again at once.
    """

    def __init__(
        self,
        lock: FileIO,
        folder: Folder,
        shards: Shards,
        settings: Settings,
        room: Room,
        counts: Counts,
        stop: threading.Event,
        wake: threading.Event,
    ) -> None:
        self.lock, self.folder, self.shards, self.settings = lock, folder, shards, settings
        self.room, self.counts, self._stop, self._wake = room, counts, stop, wake
        self._fetches: dict[int, Fetch] = {}
        self._clock = Clock()
        with suppress(OSError):  # of a full disk: then processes that wait are told less
            write_note(lock, os.getpid())
        self.awaited, self._progress = Awaited(folder), Progress()
        self.source = Source(shards, folder.place, folder.columns)
        self.stock = Stock(folder, shards, self.source)
        self._future: Future | None = None

    def work(self, reader: Reader | None) -> None:
        """Check on what is being fetched, and begin what comes next; called again and again."""
        self._reap()
        self.stock.drop_to_fit(self.settings.cache_bytes)
        self._schedule(reader)

    def leave(self) -> list[Attempt]:
        """Give up what is being fetched; return the attempts, which may end by themselves."""
        running = [fetch.attempt for fetch in self._fetches.values() if fetch.attempt is not None]
        for attempt in running:
            attempt.leave()
        return running

    def _reap(self) -> None:
        """Check on what is being fetched."""
        lived = self._clock.lived()
        for fetch in [fetch for fetch in self._fetches.values() if fetch.over(lived)]:
            del self._fetches[fetch.shard]
            self.counts.num_retries += fetch.num_tries - 1
            if fetch.failed is not None:
                self.awaited.fail(fetch.shard, fetch.failed)
            elif fetch.size is not None:
                self.stock.whole[fetch.shard] = fetch.size
            else:
                self.counts.looked(fetch.num_bytes)

    def _schedule(self, reader: Reader | None) -> None:
        """Begin what is to be fetched next, in the order in which it is needed."""
        wanted = self.awaited.look()
        self.stock.forget_removed(wanted)
        outlook = self._look_out(reader)
        self._progress.notice(
            None if outlook is None else (outlook.epoch.number, outlook.step),
            fetches=any(each.idle < STILL for each in self._fetches.values()),
            waits=bool(wanted - self.stock.whole.keys()),
        )
        if outlook is not None:  # what is being fetched is not on the disk yet
            self.room.follow(outlook.epoch, self.source, self.stock.num_bytes)
        blocked = False  # by a shard whose size is not known yet
        for shard, use in self._queue(wanted, outlook):
            if shard in self.stock.whole or shard in self._fetches:
                continue
            if self.awaited.has_failed(shard) and shard not in wanted:
                continue
            if len(self._fetches) >= self.settings.num_threads:
                return
            size = self.source.bytes_on_disk(shard)
            if size is None:
                blocked = True
            elif blocked or not self._make_room(shard, size, use, wanted, outlook):
                break
            self.awaited.try_again(shard)
            self._begin(shard, size)
        if outlook is not None and outlook.future.look(outlook.epoch.number, outlook.step):
            self._wake.set()

    def _look_out(self, reader: Reader | None) -> Outlook | None:
        """Return what the node reads next, if this process has a plan and the ranks have begun."""
        if reader is None:
            return None
        if self._future is None or self._future.plan is not reader.plan:
            most = self.settings.num_epochs
            self._future = Future(reader.plan, self.shards, reader.ranks, most)
        position = min(self.folder.positions(reader.name), default=None)
        if position is None:
            return None
        return Outlook(self._future, self._future.epoch(*position), position[1])

    def _queue(self, wanted: set[int], outlook: Outlook | None) -> list[tuple[int, int]]:
        """Return what to fetch, and the step that needs it: shards that are waited for come first.

        A process that waits for a shard of a later step is ahead of the others, whose shards come
        first; or it reads next to them, as a validation loader does, while they make no progress.
        """
        if outlook is None:
            return [(shard, -1) for shard in sorted(wanted)]
        now, step = outlook.epoch, outlook.step
        still = self._progress.stands_still
        upcoming = outlook.upcoming(self.settings.ahead)
        urgent, later = [], []
        for shard in sorted(wanted - self.stock.whole.keys() - self._fetches.keys()):
            use = outlook.use(shard)
            if still or step >= now.stop:
                urgent.append((shard, -1))
            elif use <= step or (use == NEVER and now.complete):
                urgent.append((shard, step))
            else:
                later.append((shard, use))
        return urgent if still else [*urgent, *upcoming, *later]

    def _make_room(
        self, shard: int, size: int, use: int, wanted: set[int], outlook: Outlook | None
    ) -> bool:
        """Drop shards needed later than this one, the last first; False if there is no room yet."""
        there = self.stock.num_bytes
        limit = self.room.limit(there)
        taken = there + sum(each.size or 0 for each in self._fetches.values()) + size
        short, over = taken - self.room.most(there), taken - limit
        if short <= 0:
            return True
        if size > limit:
            error = self.room.no_room(f"shard {shard} takes", size, there, "write smaller shards")
            self.awaited.fail(shard, error)
            return False
        urgent = outlook is None or use <= outlook.step
        if outlook is not None and not outlook.epoch.complete:
            if not urgent or over <= 0:  # rather take more than the plan seemed to need
                return urgent
            self._look_at_all(outlook.epoch)
        later = self.stock.needed_later(use, wanted, outlook, exact=urgent)
        out, freed = self.stock.choose(later, short, over)
        if freed < (over if urgent else short):
            if urgent and outlook is not None:
                self._check_step(shard, outlook)
            return False
        for each in out:
            self.stock.drop(each)
        return True

    def _look_at_all(self, epoch: Epoch) -> None:
        """Look at all steps of an epoch, as what is needed last is known only then."""
        while not epoch.complete and not self._stop.is_set():
            epoch.look()

    def _check_step(self, shard: int, outlook: Outlook) -> None:
        """Fail a shard if the shards of one step alone do not fit."""
        if outlook.step >= outlook.epoch.stop:
            return
        found, _ = outlook.epoch.reads(outlook.step, outlook.step + 1)
        sizes = [self.source.bytes_on_disk(each) or 0 for each in found.shards.tolist()]
        there = self.stock.num_bytes
        if sum(sizes) > self.room.limit(there):
            what = f"the {len(sizes)} shards that this node reads in one step take"
            fewer = "use an order that reads fewer shards at a time"
            self.awaited.fail(shard, self.room.no_room(what, sum(sizes), there, fewer))

    def _begin(self, shard: int, size: int | None) -> None:
        """Begin to fetch a shard, or to find out how many bytes it takes."""
        path = None if size is None else self.stock.path(shard)
        attempt = partial(
            Attempt, shard, path, self.source, self.folder.sums, self.counts.fetched, self._wake
        )
        self._fetches[shard] = Fetch(shard, size, attempt, self.source, self.settings)
