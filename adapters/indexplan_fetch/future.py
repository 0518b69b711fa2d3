"""What the ranks of a node will read: which shards, in which order, and until when."""

from __future__ import annotations

from bisect import bisect_right
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexplan import Plan, Shards, reads
from indexplan.types import Reads

NEVER = 2**62  # the step of a shard that is not read any more
LOOK = 0.03  # seconds that a look should take, so that no fetch has to wait for it

Int64s = NDArray[np.int64]


def offsets(plan: Plan, epoch: int) -> list[int]:
    """Return where the steps of each unfinished sub-epoch begin in an epoch, and the end."""
    found, first = [0], plan.start.sub_epoch if epoch == plan.start.epoch else 0
    for sub_epoch in range(plan.sub_epochs):
        found.append(found[-1] + (plan.steps(epoch, sub_epoch).stop if sub_epoch >= first else 0))
    return found


class Epoch:
    """The shards that some ranks read in an epoch from a step on; worked out bit by bit.

    Steps are counted through the epoch's sub-epochs. Among the steps looked at, `first` and `last`
    have the first and last step that reads each shard; `order` has the shards by their first use.
    """

    def __init__(self, plan: Plan, shards: Shards, ranks: range, epoch: int, start: int) -> None:
        self.plan, self.shards, self.ranks, self.number = plan, shards, ranks, epoch
        self.offsets = offsets(plan, epoch)
        self.stop = self.offsets[-1]
        self.start = self.seen = min(start, self.stop)
        self.first = np.full(len(shards), NEVER, np.int64)
        self.last = np.full(len(shards), -1, np.int64)
        self.order = np.empty(0, np.int64)
        self._at_once = 4

    @property
    def complete(self) -> bool:
        """Whether all steps were looked at."""
        return self.seen >= self.stop

    def look(self) -> None:
        """Look at some more steps."""
        begun = perf_counter()
        found, offset = self.reads(self.seen, self.seen + self._at_once)
        new = found.shards[self.first[found.shards] == NEVER]
        self.first[new] = found.first_steps[self.first[found.shards] == NEVER] + offset
        self.last[found.shards] = found.last_steps + offset
        self.order = np.concatenate([self.order, new])
        self.seen = found.stop_step + offset
        if perf_counter() - begun < LOOK / 2:
            self._at_once *= 2

    def reads(self, start: int, stop: int) -> tuple[Reads, int]:
        """Return what is read in steps of one sub-epoch, and where in the epoch it begins."""
        sub_epoch = bisect_right(self.offsets, start) - 1
        offset, end = self.offsets[sub_epoch : sub_epoch + 2]
        found = reads(
            self.plan,
            self.shards,
            self.number,
            sub_epoch,
            ranks=self.ranks,
            start_step=start - offset,
            stop_step=min(stop, end) - offset,
        )
        return found, offset

    def upcoming(self, step: int, most: int) -> list[int]:
        """Return shards whose first use is in this step or later, by first use; at most `most`."""
        while not self.complete and self.seen <= step:
            self.look()
        begin = int(np.searchsorted(self.first[self.order], step))
        return [int(shard) for shard in self.order[begin : begin + most]]

    def next_uses(self, wanted: Int64s, step: int, *, leave: int = 0) -> Int64s:
        """Return the step, from this one on, in which shards are read next; NEVER if in none.

        The search may leave out up to `leave` shards, which are read later than all others; they
        get NEVER, too. That is enough to choose which shard to drop.
        """
        uses = np.full(len(self.shards), NEVER, np.int64)
        window = 64
        while step < self.stop and np.count_nonzero(uses[wanted] == NEVER) > leave:
            found, offset = self.reads(step, step + window)
            uses[found.shards] = np.minimum(uses[found.shards], found.first_steps + offset)
            step, window = found.stop_step + offset, 2 * window
        return uses[wanted]


class Future:
    """The epoch that the ranks of a node are in, and the next."""

    def __init__(self, plan: Plan, shards: Shards, ranks: range, num_epochs: int | None) -> None:
        self.plan, self.shards, self.ranks, self.num_epochs = plan, shards, ranks, num_epochs
        self._epochs: dict[int, Epoch] = {}

    def epoch(self, number: int, step: int) -> Epoch:
        """Return what is known of an epoch, from this step on at least."""
        found = self._epochs.get(number)
        if found is None or step < found.start:
            found = Epoch(self.plan, self.shards, self.ranks, number, step)
            kept = {
                key: self._epochs[key] for key in (number - 1, number + 1) if key in self._epochs
            }
            self._epochs = {**kept, number: found}
        return found

    def after(self, number: int) -> Epoch | None:
        """Return what is known of the next epoch, if the run has one."""
        if self.num_epochs is not None and number + 1 >= self.num_epochs:
            return None
        return self.epoch(number + 1, 0)

    def look(self, number: int, step: int) -> bool:
        """Look at more steps of an epoch, or of the next one; False if all have been looked at."""
        for epoch in (self.epoch(number, step), self.after(number)):
            if epoch is not None and not epoch.complete:
                epoch.look()
                return True
        return False


class Outlook(NamedTuple):
    """What the ranks of a node read, seen from the slowest of them.

    Parameters
    ----------
    future : Future
    epoch : Epoch
        The epoch that it is in.
    step : int
        Its step, counted through the sub-epochs.
    """

    future: Future
    epoch: Epoch
    step: int

    def upcoming(self, most: int) -> list[tuple[int, int]]:
        """Return up to `most` shards whose first use is to come, each with the step of that."""
        now = self.epoch
        found = [(shard, int(now.first[shard])) for shard in now.upcoming(self.step, most)]
        if len(found) < most and now.complete and self.future.num_epochs is not None:
            then = self.future.after(now.number)
            if then is not None:
                rest = then.upcoming(0, most - len(found))
                found += [(shard, now.stop + int(then.first[shard])) for shard in rest]
        return found

    def use(self, shard: int) -> int:
        """Return the step of this epoch in which a shard is read next; NEVER if it is not known."""
        first, last = int(self.epoch.first[shard]), int(self.epoch.last[shard])
        if first < self.step <= last:
            return int(self.epoch.next_uses(np.array([shard]), self.step)[0])
        return first

    def uses(self, ids: Int64s, *, exact: bool) -> Int64s:
        """Return the step in which each shard is read next; this step for those in use.

        If `exact`, the next step of those too, but of the one that is read last.
        """
        now, step = self.epoch, self.step
        first, last = now.first[ids], now.last[ids]
        uses = np.where(first >= step, first, np.where(last >= step, step, NEVER))
        then = self.future.after(now.number)
        if then is not None:
            later = then.first[ids]
            uses = np.where((uses == NEVER) & (later < NEVER), now.stop + later, uses)
        live = (first < step) & (last >= step)
        if exact and live.any():
            found = now.next_uses(ids[live], step, leave=1)
            uses[live] = np.minimum(found, now.stop)
        return uses
