"""ShardLoader: the samples of each step of a plan, for JAX, NumPy, and any loop in Python."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from types import TracebackType
from typing import Any, NoReturn

from indexplan import Cursor, IndexPlanError, Plan, Shards
from indexplan.errors import counted, empty_batches, invalid
from indexplan.keywords import named
from indexplan_fetch.checks import count
from indexplan_fetch.following import Loop
from indexplan_fetch.metrics import Fetched
from indexplan_fetch.opening import ShardFile
from indexplan_fetch.samples import Samples

IN_EACH = "make one in each process, with the rank of that process"


class _Place:
    """The (epoch, sub_epoch, step) that a loop receives next; it knows nothing of its loader.

    So the thread that fetches, which asks for it, keeps no loader alive that nobody reads any more.
    """

    def __init__(self, place: tuple[int, int, int]) -> None:
        self.now = place

    def __call__(self) -> tuple[int, int, int]:
        return self.now


@named
class ShardLoader(Iterator[list[Any]]):
    """An iterator over the samples of each step of a plan, fetched before the loop needs them.

    Use it in JAX, NumPy and other loops without torch, for a dataset in an object store. In the
    background, one process of a node fetches the next shards into a folder that the node's ranks
    share. When the folder is full, it drops the shards whose next use is furthest away. Fetching
    begins when you make the loader. Shards are opened in the loop's thread: there are no workers.

    `next` returns a list of the samples of this rank's next step, from where the plan starts to the
    end of the last epoch. If the order has bins, it is a list of bins, each a list of samples. If
    the order cuts samples, each sample comes as `(sample, start, stop)`, with the part to read. If
    a step's shards could not be fetched, `next` raises, and the next call tries that step again.
    Several threads may call `next`; each step is returned once.

    Parameters
    ----------
    shards : Shards
        What `shard_sizes` or `Shards.from_json` (with its `path`) returned. A shard is a file, or
        a row group of a Parquet file.
    open_shard : callable
        open_shard(file) returns the rows of a `ShardFile`: anything with `len(rows)` and `rows[i]`.
        If the rows have `rows.__getitems__(list)`, that is called instead. The rows of a pyarrow
        Table or RecordBatch are dicts. Pass `open_parquet`, or your own function. To fetch only
        some columns, pass `functools.partial(open_parquet, columns=["text"])`, or a function with
        an attribute `columns`.
    plan : Plan
        With a world_size, and an order of as many samples as the shards hold. To resume a run, pass
        `plan.resume(cursor)`; its world_size may differ from that of the run before.
    rank : int
        Which of the plan's ranks reads; with JAX, `jax.process_index()`.
    num_epochs : int
        How many epochs the run has in all. The loader ends after them.
    cache_dir : str or path-like
        A folder on a disk of this node, for all of its ranks and for later runs. Each user gets a
        separate folder in it, which nobody else can write to, so it may be in `/tmp`.
    cache_bytes : int, optional
        The most bytes that shards in the folder may take, including those being fetched. The
        default is enough for the shards that this node reads at a time by the plan (`traffic`
        counts them) and `ahead` more, but at most nine tenths of the free space on the disk.
    ranks_per_node : int, optional
        How many ranks share the folder; ranks 0 to ranks_per_node - 1 are the first node. You can
        leave it out if torchrun sets it, or the plan has one rank.
    ahead : int, default 16
        How many shards to fetch before they are needed, if there is room.
    num_threads : int, default 4
        How many shards to fetch at the same time.
    tries : int, default 4
        How often to try a fetch, with growing pauses, before the step that needs it raises.
    stall_timeout : float, default 60
        After this many seconds without a byte, a fetch is given up and tried again, like one that
        failed.
    keep_open : int, optional
        How many shards to keep open. By default, all that this rank reads at a time by the plan, as
        long as they fit into half of the machine's memory.

    Raises
    ------
    IndexPlanError
        If an argument breaks its rule. On reading: if a shard could not be fetched, is not what
        `shards` says, or does not fit into cache_bytes; if a rank would get an empty batch; if the
        loader was closed, or was made in another process.

    Warns
    -----
    UserWarning
        When a step has waited 60 seconds for a shard, and again each time the wait has doubled.
        Also when the shards that this rank reads at a time don't fit into memory or keep_open, or
        those of the node into cache_bytes or the disk. That warning says how much would be enough.

    Examples
    --------
    >>> import indexplan as ip, numpy as np
    >>> from indexplan_fetch import ShardLoader
    >>> for name, start in (("a", 0), ("b", 5)):
    ...     np.save(f"{name}.npy", np.arange(start, start + 5))
    >>> shards = ip.shard_sizes("*.npy")
    >>> plan = ip.Plan(ip.ShardShuffle(shards, lanes=1), world_size=1, batch_size=4)
    >>> rows_of = lambda file: np.load(file.path)
    >>> options = {"rank": 0, "num_epochs": 1, "cache_dir": "cache"}
    >>> with ShardLoader(shards, rows_of, plan, **options) as loader:
    ...     first = np.stack(next(loader))
    ...     saved = loader.cursor.to_json()
    >>> rest = plan.resume(ip.Cursor.from_json(saved))
    >>> with ShardLoader(shards, rows_of, rest, **options) as loader:
    ...     others = [np.stack(samples) for samples in loader]
    >>> sorted(np.concatenate([first, *others]).tolist())
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """

    def __init__(
        self,
        shards: Shards,
        open_shard: Callable[[ShardFile], Sequence[Any]],
        plan: Plan,
        *,
        rank: int,
        num_epochs: int,
        cache_dir: str | os.PathLike[str],
        cache_bytes: int | None = None,
        ranks_per_node: int | None = None,
        ahead: int = 16,
        num_threads: int = 4,
        tries: int = 4,
        stall_timeout: float = 60.0,
        keep_open: int | None = None,
    ) -> None:
        self._samples = Samples(
            shards,
            open_shard,
            cache_dir=cache_dir,
            cache_bytes=cache_bytes,
            ranks_per_node=ranks_per_node,
            ahead=ahead,
            num_epochs=num_epochs,
            num_threads=num_threads,
            tries=tries,
            stall_timeout=stall_timeout,
            keep_open=keep_open,
        )
        _check_plan(plan, shards)
        start = plan.start
        plan.batches(start.epoch, start.sub_epoch, rank=rank)  # refuses a rank that it has not
        self._plan, self._rank = plan, int(rank)
        self._num_epochs = count("num_epochs", num_epochs)
        self._place = _Place((start.epoch, start.sub_epoch, start.step))
        self._begun: tuple[int, int] | None = None  # the sub-epoch that was looked at
        self._reading = threading.RLock()  # a signal's handler may close it
        self._pid = os.getpid()
        if start.epoch < self._num_epochs:
            ranks = self._samples.ranks(plan, self._rank)
            self._samples.follow(Loop(plan, self._rank, ranks, self._place))

    def __next__(self) -> list[Any]:
        """Return the samples of the next step."""
        if os.getpid() != self._pid:
            raise IndexPlanError(
                "a ShardLoader",
                "must be read in the process that made it",
                "a fork of that process",
                IN_EACH,
            )
        with self._reading:
            self._samples.check_open()
            epoch, sub_epoch, step = self._find_step()
            if self._begun != (epoch, sub_epoch):
                self._begin(epoch, sub_epoch)
            found = self._read(epoch, sub_epoch, step)
            self._place.now = epoch, sub_epoch, step + 1
            self._samples.heard()
            return found

    def _find_step(self) -> tuple[int, int, int]:
        """Return the next step; or raise StopIteration."""
        epoch, sub_epoch, step = self._place.now
        while epoch < self._num_epochs:
            if step < self._plan.steps(epoch, sub_epoch).stop:
                return epoch, sub_epoch, step
            step, sub_epoch = 0, sub_epoch + 1
            if sub_epoch == self._plan.sub_epochs:
                epoch, sub_epoch = epoch + 1, 0
        raise StopIteration

    def _begin(self, epoch: int, sub_epoch: int) -> None:
        """Check a sub-epoch, and count the shards that will be open in it."""
        plan = self._plan
        if not plan.account(epoch, sub_epoch).min_batch_size:
            raise empty_batches(plan.world_size, plan.remainder, epoch, sub_epoch)
        self._samples.expect(plan, (epoch, sub_epoch), self._rank, 1)
        self._begun = epoch, sub_epoch

    def _read(self, epoch: int, sub_epoch: int, step: int) -> list[Any]:
        """Return the samples of a step; of bins, a list for each."""
        plan = self._plan
        if not plan.order.deals_bins:
            batch = plan.batch(epoch, sub_epoch, step=step, rank=self._rank)
            return self._samples.__getitems__(batch)
        units = plan.units(epoch, sub_epoch, step=step, rank=self._rank)
        found: list[Any] = self._samples.__getitems__(units.samples)
        if units.spans is not None:
            spans = units.spans.tolist()
            found = [(each, *span) for each, span in zip(found, spans, strict=True)]
        return [found[start:stop] for start, stop in pairwise(units.offsets.tolist())]

    @property
    def cursor(self) -> Cursor:
        """Where the run stands after the steps that `next` has returned; the same on all ranks.

        Save it, and pass `plan.resume(cursor)` to a new loader. If a thread of yours calls `next`
        ahead of the loop, let it take the cursor there, and keep that with the samples.
        """
        epoch, sub_epoch, step = self._place.now
        return self._plan.cursor(epoch, sub_epoch, step=step)

    def report(self) -> Fetched:
        """Return what this process has fetched, and how its steps have got their shards."""
        return self._samples.report()

    def close(self) -> None:
        """Stop fetching, and close all shards; what is whole stays in the folder, for the next run.

        Another rank of the node fetches then. The end of a `with` block calls it.
        """
        self._samples.stop()
        with self._reading:
            self._samples.close_all()

    def __enter__(self) -> ShardLoader:  # noqa: PYI034 (Self needs Python 3.11)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __getstate__(self) -> NoReturn:
        """Refuse to travel to another process, which would read the same samples again."""
        rule = "must be read in the process that made it"
        raise IndexPlanError("a ShardLoader", rule, "one to be pickled", IN_EACH)


def _check_plan(plan: Any, shards: Shards) -> None:
    """Refuse what is no plan, or a plan of other samples."""
    if not isinstance(plan, Plan):
        raise invalid(
            "plan", "an indexplan.Plan", plan, "pass indexplan.Plan(order, batch_size=...)"
        )
    held = counted(shards.num_samples, "sample")
    if plan.order.num_samples != shards.num_samples:
        raise IndexPlanError(
            "plan",
            f"must have an order of {held}, as many as shards holds",
            counted(plan.order.num_samples, "sample"),
            "make the plan with an order over all of them, such as indexplan.ShardShuffle(shards)",
        )
