"""ShardedDataset: samples in shards of an object store, fetched before the plan needs them."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, get_worker_info

from indexplan import IndexPlanError, Plan, Shards
from indexplan.errors import printable, shown, wrong
from indexplan_torch.feed import Feed
from indexplan_torch.shards.checks import check_shards, count, path_of, seconds
from indexplan_torch.shards.columns import columns_of
from indexplan_torch.shards.fetch import Clock, Settings
from indexplan_torch.shards.fetcher import ALL, Fetcher
from indexplan_torch.shards.folder import Failure, Folder
from indexplan_torch.shards.held import Held, limits_of, read_at_a_time
from indexplan_torch.shards.locks import is_held
from indexplan_torch.shards.metrics import HITS, STALLS, WAITED, Fetched, Metrics, Tally, shared
from indexplan_torch.shards.opening import ShardFile, by_row
from indexplan_torch.shards.source import Source
from indexplan_torch.shards.stalls import warning
from indexplan_torch.shards.sums import DamagedError

POLL = 0.005  # seconds between checks whether a shard is there
PATIENCE = 0.05  # seconds of waiting before the process that fetches is told of it
ALONE = 1.0  # seconds of waiting before a worker starts fetching itself, if no process fetches


class ShardedDataset(Dataset[Any]):
    """A dataset in shards that are downloaded while it is read, into a folder of bounded size.

    For datasets in an object store that are larger than a node's disk, or that should not be
    downloaded first. `PlanLoader(dataset, plan)` tells it what the ranks of this node will read. In
    the background, one of their processes fetches the next shards before they are needed, into a
    folder that all of them share; when that is full, it drops the shards whose next use is furthest
    away. A process may be killed at any time: shards appear whole, and the next process goes on
    with what is there.

    Parameters
    ----------
    shards : Shards
        What `shard_sizes` returned, or `Shards.from_json` with its `path`: files of Parquet, Arrow,
        `.npy`, MDS or wids, each one shard, or row groups of Parquet files.
    open_shard : callable
        open_shard(file) returns the rows of a `ShardFile`: anything with `len(rows)` and `rows[i]`;
        if it has `rows.__getitems__(list)`, that is called instead; of a pyarrow Table or
        RecordBatch, rows are dicts. Pass `open_parquet`, or a
        function of your own that returns, for example, `numpy.load(file.path, mmap_mode="r")`.
        Spawned workers need one that can be pickled. Only the columns are fetched of
        `functools.partial(open_parquet, columns=["text"])`, or of a function with a `columns`.
    cache_dir : str or path-like
        A folder on a disk of this node, for all of its ranks and for later runs. Each user gets a
        folder of their own in it, which nobody else can write to, so that it may be in `/tmp`.
    cache_bytes : int, optional
        The most bytes that shards in the folder may take, including those being fetched. By default
        as many as this node reads at a time by the plan (`traffic` counts them), and `ahead` shards
        more, but never more than nine tenths of what is free on the disk. If several datasets use
        the folder at the same time, the value of the process that fetches counts.
    ranks_per_node : int, optional
        How many ranks share the folder; ranks 0 to ranks_per_node - 1 are the first node. By
        default what torchrun sets, also for nodes of different sizes.
    ahead : int, default 16
        How many shards are fetched before they are needed, if there is room.
    num_epochs : int, optional
        How many epochs the run has. If given, the first shards of the next epoch are fetched ahead,
        too.
    num_threads : int, default 4
        How many shards are fetched at the same time.
    tries : int, default 4
        How often a fetch is tried, with growing pauses, before the batch that needs it raises.
    stall_timeout : float, default 60
        After how many seconds without a byte a fetch is given up, and tried again like one that
        fails. Keep `tries` times this well below the timeout of the process group: ten minutes with
        NCCL.
    keep_open : int, optional
        How many shards each worker keeps open. By default all that it reads at a time by the plan,
        so that each is opened and decoded once, while they fit into half of the machine's memory;
        what a shard takes is its rows' `nbytes`, or else the size of its file.
    on_metrics : callable, optional
        on_metrics(found) is called with what `report()` returns, for a logger: in the training
        process, between batches, every ten seconds at most, and at the end of each pass. An error
        in it is a warning, and the run continues. Workers do not get it, so it need not be pickled.

    Raises
    ------
    IndexPlanError
        If an argument breaks its rule. On reading: if a shard could not be fetched, is not what
        `shards` says, or does not fit into cache_bytes.

    Warns
    -----
    UserWarning
        When a batch has waited 60 seconds for a shard, and again each time the wait has doubled:
        which process fetches, whether it runs, how many bytes have come, and what to do. When
        memory or keep_open does not hold the shards that a worker reads at a time, or cache_bytes
        or the disk those that the node does: with the number that would do.

    Examples
    --------
    >>> import indexplan as ip, pyarrow as pa, pyarrow.parquet as pq
    >>> from indexplan_torch import PlanLoader, ShardedDataset, open_parquet
    >>> for name, start in (("a", 0), ("b", 100)):
    ...     pq.write_table(pa.table({"id": range(start, start + 100)}), f"{name}.parquet")
    >>> shards = ip.shard_sizes("*.parquet")
    >>> dataset = ShardedDataset(shards, open_parquet, cache_dir="cache", cache_bytes=10**9)
    >>> plan = ip.Plan(ip.ShardShuffle(shards, lanes=1), batch_size=50)
    >>> sum(int(batch["id"].sum()) for batch in PlanLoader(dataset, plan)) == sum(range(200))
    True
    >>> dataset.report().num_fetches
    2
    """

    def __init__(
        self,
        shards: Shards,
        open_shard: Callable[[ShardFile], Sequence[Any]],
        *,
        cache_dir: str | os.PathLike[str],
        cache_bytes: int | None = None,
        ranks_per_node: int | None = None,
        ahead: int = 16,
        num_epochs: int | None = None,
        num_threads: int = 4,
        tries: int = 4,
        stall_timeout: float = 60.0,
        keep_open: int | None = None,
        on_metrics: Callable[[Fetched], Any] | None = None,
    ) -> None:
        check_shards(shards)
        if not callable(open_shard):
            raise wrong(
                "open_shard",
                "a function of a ShardFile",
                open_shard,
                "pass open_parquet, or one that returns the rows of a file",
            )
        self.shards, self.open_shard = shards, open_shard
        columns = columns_of(open_shard, shards)
        self.folder = Folder(path_of(cache_dir), shards, columns)
        if columns is not None:
            Source(shards, self.folder.place, columns).check_columns()
        self.settings = Settings(
            cache_bytes=None if cache_bytes is None else count("cache_bytes", cache_bytes),
            ahead=count("ahead", ahead),
            num_threads=count("num_threads", num_threads),
            tries=count("tries", tries),
            num_epochs=None if num_epochs is None else count("num_epochs", num_epochs),
            leave_after=seconds("stall_timeout", stall_timeout),
        )
        if ranks_per_node is not None:
            ranks_per_node = count("ranks_per_node", ranks_per_node)
        self.ranks_per_node = ranks_per_node
        self.keep_open = None if keep_open is None else count("keep_open", keep_open)
        self._limits = shared(limits_of(0, 1), torch.int64)
        if on_metrics is not None and not callable(on_metrics):
            raise wrong(
                "on_metrics",
                "a function of a report",
                on_metrics,
                "pass one that logs report.num_bytes and the like",
            )
        self._metrics = None if on_metrics is None else Metrics(on_metrics)
        self._tally = Tally()
        self._forget()

    def _forget(self) -> None:
        """Reset what belongs to one process."""
        self._fetcher: Fetcher | None = None
        self._rows = Held(self._limits, self.keep_open)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to this process."""
        state = {name: each for name, each in vars(self).items() if name != "_rows"}
        return {**state, "_fetcher": None, "_metrics": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    def __len__(self) -> int:
        return self.shards.num_samples

    def __getitem__(self, index: int) -> Any:
        """Return a sample."""
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Any) -> list[Any]:
        """Return the samples of a batch, shard by shard."""
        which, rows = self.shards.locate(indices)
        self._close_dropped()
        samples: list[Any] = [None] * len(which)
        for shard in dict.fromkeys(which.tolist()):
            at = np.flatnonzero(which == shard).tolist()
            held, asked = self._open(shard), rows[at].tolist()
            some = getattr(held, "__getitems__", None)
            found = some(asked) if some is not None else [held[row] for row in asked]
            for place, sample in zip(at, found, strict=True):
                samples[place] = sample
        return samples

    def report(self) -> Fetched:
        """Return what this process has fetched, and how its batches have got their shards.

        Examples
        --------
        >>> import indexplan as ip, numpy as np
        >>> from indexplan_torch import ShardedDataset
        >>> np.save("rows.npy", np.arange(100))
        >>> shards = ip.shard_sizes("rows.npy")
        >>> rows_of = lambda file: np.load(file.path)
        >>> dataset = ShardedDataset(shards, rows_of, cache_dir="cache", cache_bytes=10**6)
        >>> int(dataset[7]), dataset.report().num_bytes
        (7, 928)
        """
        fetcher, sums = self._fetcher, self._tally.sums()
        if fetcher is None:
            return Fetched(0, 0, 0, *sums, 0)
        counts = fetcher.num_fetches, fetcher.num_samples, fetcher.num_bytes
        return Fetched(*counts, *sums, fetcher.num_retries)

    def heard(self, *, ended: bool = False) -> None:
        """Tell what there is to tell, as the loop has received a batch; `PlanLoader` calls it."""
        fetcher = self._fetcher
        if fetcher is not None and fetcher.room.warning is not None:
            message, fetcher.room.warning = fetcher.room.warning, None
            warnings.warn(message, stacklevel=3)
        if self._metrics is not None:
            self._metrics.tell(self.report, ended=ended)

    def expect(self, feed: Feed, num_workers: int) -> None:
        """Count the shards that each worker of a loader will read at a time; before they start."""
        plan, rank = feed.running()
        if get_worker_info() is not None or plan.order.num_samples != len(self):
            return
        ranks, workers = self._ranks(plan, rank), max(1, num_workers)
        live = read_at_a_time(plan, self.shards, feed.where, rank, workers)
        if self.keep_open is not None and self.keep_open < live:
            message = (
                f"keep_open must be at least {live}, the shards that each worker reads at a time; "
                f"got {self.keep_open}; pass {2 * live}, or leave it out: now shards are opened "
                "again and again"
            )
            warnings.warn(printable(message), stacklevel=3)
        live = max(live, int(self._limits[0]))  # another loader may read it, too
        self._limits[:] = torch.tensor(limits_of(live, len(ranks) * workers))

    def follow(self, feed: Feed) -> None:
        """Fetch for a loader that begins a pass; `PlanLoader` calls it."""
        if get_worker_info() is None:
            plan, rank = feed.running()
            if plan.order.num_samples != len(self):  # it reads a part, such as a torch Subset
                self._fetching()
                return
            ranks = self._ranks(plan, rank)
            self._fetching().follow(feed, ranks)

    def _ranks(self, plan: Plan, rank: int) -> range:
        """Return the ranks of this node."""
        world_size = plan.world_size or 1
        each = self.ranks_per_node
        if each is None:
            said = os.environ.get("LOCAL_WORLD_SIZE") if world_size > 1 else "1"
            if said is None or world_size not in {1, int(os.environ.get("WORLD_SIZE", "0"))}:
                raise IndexPlanError(
                    "ranks_per_node",
                    "must be given where torchrun does not tell which ranks share a node",
                    f"{world_size} ranks of the plan",
                    "pass how many of them share cache_dir",
                )
            each = int(said)
            if os.environ.get("RANK") == str(rank) and "LOCAL_RANK" in os.environ:
                first = rank - int(os.environ["LOCAL_RANK"])  # of nodes of different sizes
                return range(first, min(first + each, world_size))
        first = rank // each * each
        return range(first, min(first + each, world_size))

    def _fetching(self) -> Fetcher:
        """Return the fetcher of this process; it is idle while another process fetches."""
        if self._fetcher is None or not self._fetcher.alive:
            self.folder.make()
            self._fetcher = Fetcher(self.folder, self.shards, self.settings)
            weakref.finalize(self, self._fetcher.stop)
        return self._fetcher

    def _has_fetcher(self) -> bool:
        """Return whether a thread of this process fetches, or waits for its turn."""
        return self._fetcher is not None and self._fetcher.alive

    def _open(self, shard: int) -> Any:
        """Return the rows of a shard, after waiting for it."""
        if (held := self._rows.get(shard)) is not None:
            return held
        name, number = self.shards.part(shard)
        path = self.folder.shard(shard, name)
        part = None if self.shards.whole_files else number
        self.folder.check()
        dropped = False  # a file that could not be read
        with ExitStack() as stack:  # it counts as waiting until it has the rows
            while True:
                self._wait(shard, path, stack)
                try:
                    found = path.lstat()
                    self.folder.sums.check(path, self.folder.stamp(shard))
                    rows = by_row(self.open_shard(ShardFile(str(path), shard, part)))
                    break
                except (IndexPlanError, ImportError, MemoryError):
                    raise
                except Exception as error:
                    if not path.exists():  # it was dropped just now
                        continue
                    if dropped:
                        raise self._unreadable(shard, path, error) from error
                    dropped = True
                    self.folder.drop(path, found)  # unless somebody else has done so
        expected = int(self.shards.sizes.array[shard])
        if len(rows) != expected:
            raise IndexPlanError(
                "open_shard",
                f"must return the {expected} rows of shard {shard}, {name}",
                len(rows),
                "return a row for each sample",
            )
        self._rows.add(shard, rows, path)
        return rows

    def _unreadable(self, shard: int, path: Path, error: Exception) -> IndexPlanError:
        """Return the error about a shard that cannot be read, though it was fetched twice."""
        what = f"shard {shard}, {self.shards.path}/{self.shards.part(shard)[0]},"
        if isinstance(error, DamagedError):
            cure = "check the disk and the memory of this machine, or pass another cache_dir"
            got = f"other bytes in {path}, twice"
            return IndexPlanError(what, "must be as it was fetched", got, cure)
        cure = "check the file in its place, and what open_shard does with it"
        got = f"{shown(error)} of {path}, twice"
        return IndexPlanError(what, "must be a file that open_shard opens", got, cure)

    def _close_dropped(self) -> None:
        """Close shards that were dropped: their space is free once no process has them open."""
        for shard in self._rows:
            if not self.folder.shard(shard, self.shards.part(shard)[0]).exists():
                self._rows.close(shard)

    def _wait(self, shard: int, path: Path, stack: ExitStack) -> None:
        """Wait until a shard is there, or raise why it will not be."""
        if path.exists():
            self._tally.add(HITS)
            return
        self.folder.make()
        begun, told, worker = time.monotonic(), False, get_worker_info()
        clock, waited, warn_at = Clock(), 0.0, self.settings.warn_after
        before = self.folder.failures()
        while not path.exists():
            self._raise_failures(shard, begun, before)
            if waited > PATIENCE and not told:
                stack.enter_context(self.folder.waiting(shard))
                told = True
            # usually the main process fetches, or that of another rank
            alone = (worker is None or waited > ALONE) and not self._has_fetcher()
            if alone and not is_held(self.folder.fetcher):
                self._fetching()
            parent = multiprocessing.parent_process()
            if worker is not None and parent is not None and not parent.is_alive():
                sys.exit(1)
            time.sleep(POLL)
            waited += clock.lived()
            if waited >= warn_at:
                warnings.warn(warning(self.folder, self.shards, shard, waited), stacklevel=2)
                warn_at *= 2
        self._tally.add(WAITED, time.monotonic() - begun)
        self._tally.add(STALLS)

    def _raise_failures(self, shard: int, since: float, before: list[Failure]) -> None:
        """Raise an error if a shard could not be fetched since this process waits for it.

        `before` has older failures, as the clock starts again when the machine is restarted.
        """
        here = self._fetcher if self._has_fetcher() else None
        found = [None if here is None else here.broken]
        for failure in self.folder.failures():
            new = failure.time >= since and failure not in before
            if failure.shard in {shard, ALL} and new:
                found.append(failure.message)
        for message in found:
            if message:
                raise IndexPlanError(message)


def sharded(dataset: Any) -> ShardedDataset | None:
    """Return the ShardedDataset inside a dataset, whose wrappers name it `dataset`."""
    for _ in range(16):
        if isinstance(dataset, ShardedDataset) or dataset is None:
            break
        dataset = getattr(dataset, "dataset", None)
    return dataset if isinstance(dataset, ShardedDataset) else None
