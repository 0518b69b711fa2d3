"""What processes of a node wait for, and what they are told of shards that cannot be fetched."""

from __future__ import annotations

import time

from indexplan import IndexPlanError
from indexplan_fetch.folder import FAILURES, Failure, Folder


class Awaited:
    """The shards that processes wait for, but those whose failure they were told of.

    Only the process that fetches has one.
    """

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._failures: dict[int, Failure] = {}
        self._answered: set[str] = set()  # notes of processes that wait and were told of a failure

    def look(self) -> set[int]:
        """Return the shards that processes wait for now."""
        waits = self.folder.waits()
        self._answered &= waits.keys()
        return {shard for name, shard in waits.items() if name not in self._answered}

    def has_failed(self, shard: int) -> bool:
        """Return whether a shard could not be fetched, and was not asked for since."""
        return shard in self._failures

    def try_again(self, shard: int) -> None:
        """Forget that a shard could not be fetched."""
        self._failures.pop(shard, None)

    def fail(self, shard: int, error: IndexPlanError) -> None:
        """Tell processes that wait for a shard why it cannot be fetched."""
        self._failures[shard] = Failure(shard, time.monotonic(), error.args)
        waits = self.folder.waits()
        self._answered |= {name for name, wanted in waits.items() if wanted == shard}
        latest = sorted(
            self._failures.values(), key=lambda each: (each.shard in waits.values(), each.time)
        )[-FAILURES:]
        told = {failure.shard for failure in latest}  # waits for other shards are tried once more
        self._answered -= {name for name, wanted in waits.items() if wanted not in told}
        self.folder.tell_failures(latest)
