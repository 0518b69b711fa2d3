"""What a process has fetched and waited for."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from indexplan import Shards

WORKERS = 256  # workers of a loader whose numbers are kept apart
WAITED, STALLS, HITS = range(3)


class Fetched(NamedTuple):
    """What this process has fetched, and how its batches have got their shards.

    Numbers count from the start of the process. Only one process of a node fetches at a time, so
    the numbers of a node's ranks add up.

    Parameters
    ----------
    num_fetches, num_samples : int
        Shards that were fetched whole, and how many samples they hold.
    num_bytes : int
        Bytes that came for them; for row groups, the footers of their files are included.
    waited_seconds : float
        How long batches have waited for shards, summed over all workers.
    num_stalls : int
        How often a batch had to wait for a shard.
    num_hits : int
        How often a shard was opened that was there already.
    num_retries : int
        Attempts to fetch a shard that failed, or brought nothing, and were made again.

    Examples
    --------
    >>> from indexplan_fetch import Fetched
    >>> found = Fetched(2, 200, 8192, waited_seconds=0.5, num_stalls=1, num_hits=6, num_retries=0)
    >>> {name: number for name, number in found._asdict().items() if "stall" in name}  # to a logger
    {'num_stalls': 1}
    """

    num_fetches: int
    num_samples: int
    num_bytes: int
    waited_seconds: float
    num_stalls: int
    num_hits: int
    num_retries: int


class Counts:
    """What a process has fetched, counted in several threads."""

    def __init__(self, shards: Shards) -> None:
        self.num_fetches = self.num_samples = self.num_bytes = self.num_retries = 0
        self._shards = shards
        self._counting = threading.Lock()

    def fetched(self, shard: int, num_bytes: int) -> None:
        """Count a shard that is about to get its name; with negative bytes, take that back."""
        sign = 1 if num_bytes > 0 else -1
        with self._counting:
            self.num_fetches += sign
            self.num_samples += sign * int(self._shards.sizes.array[shard])
            self.num_bytes += num_bytes

    def looked(self, num_bytes: int) -> None:
        """Count bytes that came for a footer alone."""
        with self._counting:
            self.num_bytes += num_bytes


class Tally:
    """Counts of a process and its workers; each writes its own row.

    Parameters
    ----------
    numbers : numpy.ndarray
        float64, shape (WORKERS + 1, 3), zeros; or a tensor of them, in memory that workers share.
    """

    def __init__(self, numbers: Any) -> None:
        self._numbers = numbers

    def add(self, what: int, number: float = 1, *, worker: int | None = None) -> None:
        """Add to one of WAITED, STALLS and HITS, in a worker or in the process itself."""
        self._numbers[WORKERS if worker is None else worker % WORKERS, what] += number

    def sums(self) -> tuple[float, int, int]:
        """Return the seconds waited, the stalls and the hits of all."""
        waited, stalls, hits = self._numbers.sum(0).tolist()
        return waited, int(stalls), int(hits)
