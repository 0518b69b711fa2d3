"""The loop that a process follows: what it reads, and the note that tells others how far it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from indexplan import Plan
from indexplan_fetch.folder import Folder, RankNote
from indexplan_fetch.future import offsets


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop over a plan, whose shards are fetched before it reads them.

    Parameters
    ----------
    plan : Plan
    rank : int
    ranks : range
        The ranks of this node.
    place : callable
        place() returns the (epoch, sub_epoch, step) that the loop receives next, or the end of a
        sub-epoch; None before it has begun. It is called in another thread.
    """

    plan: Plan
    rank: int
    ranks: range
    place: Callable[[], tuple[int, int, int] | None]


class Reader:
    """The loop of this process, and the note in which it writes how far that is."""

    def __init__(self, folder: Folder, loop: Loop) -> None:
        self.loop = loop
        self.plan, self.rank, self.ranks = loop.plan, loop.rank, loop.ranks
        self.name = self.plan.fingerprint.rpartition(":")[2][:16]
        self.note = RankNote(folder, self.name, self.rank)
        self._offsets: tuple[int, list[int]] = (-1, [])

    def tell(self) -> None:
        """Write the epoch and the step in it that the loop receives next; or the epoch's end.

        There may be no next epoch: its first shards are fetched only if the run is known to have
        it.
        """
        place = self.loop.place()
        if place is None:
            return
        epoch, sub_epoch, step = place
        if self._offsets[0] != epoch:
            self._offsets = epoch, offsets(self.plan, epoch)
        self.note.say((epoch, self._offsets[1][sub_epoch] + step))
