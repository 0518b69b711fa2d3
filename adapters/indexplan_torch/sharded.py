"""ShardedDataset: samples in shards of an object store, fetched before the plan needs them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, get_worker_info

from indexplan.keywords import named
from indexplan_fetch.following import Loop
from indexplan_fetch.samples import Samples
from indexplan_torch.run import Run


@named
class ShardedDataset(Samples, Dataset[Any]):
    """A dataset in shards that are downloaded while it is read, into a folder of bounded size.

    Use it for a dataset in an object store that is larger than a node's disk, or that you don't
    want to download first. From `PlanLoader(dataset, plan)` it knows what the ranks of this node
    will read. In the background, one of their processes fetches the next shards before they are
    needed, into a folder that all of them share. When the folder is full, it drops the shards whose
    next use is furthest away. You may kill a process at any time: shards only ever appear whole,
    and the next process continues with those that are there.

    Parameters
    ----------
    shards : Shards
        What `shard_sizes` or `Shards.from_json` (with its `path`) returned. A shard is a file, or
        a row group of a Parquet file.
    open_shard : callable
        open_shard(file) returns the rows of a `ShardFile`: anything with `len(rows)` and `rows[i]`.
        If the rows have `rows.__getitems__(list)`, that is called instead. The rows of a pyarrow
        Table or RecordBatch are dicts. Pass `open_parquet`, or your own function, which returns,
        for example, `numpy.load(file.path, mmap_mode="r")`. Spawned workers need a function that
        can be pickled. To fetch only some columns, pass
        `functools.partial(open_parquet, columns=["text"])`, or a function with an attribute
        `columns`.
    cache_dir : str or path-like
        A folder on a disk of this node, for all of its ranks and for later runs. Each user gets a
        separate folder in it, which nobody else can write to, so it may be in `/tmp`.
    cache_bytes : int, optional
        The most bytes that shards in the folder may take, including those being fetched. The
        default is enough for the shards that this node reads at a time by the plan (`traffic`
        counts them) and `ahead` more, but at most nine tenths of the free space on the disk. If
        several datasets use the folder at the same time, the value of the process that fetches
        applies.
    ranks_per_node : int, optional
        How many ranks share the folder; ranks 0 to ranks_per_node - 1 are the first node. The
        default is what torchrun sets, which also works for nodes of different sizes.
    ahead : int, default 16
        How many shards to fetch before they are needed, if there is room.
    num_epochs : int, optional
        How many epochs the run has. If you pass it, the first shards of the next epoch are fetched
        ahead too.
    num_threads : int, default 4
        How many shards to fetch at the same time.
    tries : int, default 4
        How often to try a fetch, with growing pauses, before the batch that needs it raises.
    stall_timeout : float, default 60
        After this many seconds without a byte, a fetch is given up and tried again, like one that
        failed. Keep `tries` times this well below the timeout of the process group: ten minutes
        with NCCL.
    keep_open : int, optional
        How many shards each worker keeps open. By default, all that it reads at a time by the plan,
        so that each is opened and decoded once, as long as they fit into half of the machine's
        memory. A shard counts with its rows' `nbytes`, or, without that, the size of its file.

    Raises
    ------
    IndexPlanError
        If an argument breaks its rule. On reading: if a shard could not be fetched, is not what
        `shards` describes, or does not fit into cache_bytes.

    Warns
    -----
    UserWarning
        When a batch has waited 60 seconds for a shard, and again each time the wait has doubled.
        The warning names the process that fetches, and what to check. Also when the shards that a
        worker reads at a time don't fit into memory or keep_open, or those of the node into
        cache_bytes or the disk. That warning says how much would be enough.

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

    _loop: tuple[Run, Loop] | None = None

    def _shared(self, numbers: np.ndarray[Any, Any]) -> torch.Tensor:
        made = torch.tensor(numbers)
        made.share_memory_()  # type: ignore[no-untyped-call]  # torch's own
        return made

    def _worker(self) -> int | None:
        worker = get_worker_info()
        return None if worker is None else worker.id

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to this process."""
        return {**super().__getstate__(), "_loop": None}

    def expect_run(self, run: Run, num_workers: int) -> None:
        """Count the shards that each worker will read at a time, before the workers start."""
        plan, rank = run.running()
        if get_worker_info() is None and plan.order.num_samples == len(self):
            self.expect(plan, run.where, rank, max(1, num_workers))

    def follow_run(self, run: Run) -> None:
        """Fetch for a loader that begins a pass; `PlanLoader` calls it."""
        if get_worker_info() is not None:
            return
        plan, rank = run.running()
        if plan.order.num_samples != len(self):  # the loader reads a part, such as a torch Subset
            self._fetching()
            return
        if self._loop is None or self._loop[0] is not run or self._loop[1].plan is not plan:
            self._loop = run, Loop(plan, rank, self.ranks(plan, rank), partial(_place, run))
        self.follow(self._loop[1])


def _place(run: Run) -> tuple[int, int, int] | None:
    """Return the epoch, the sub-epoch and the step that the loop receives next."""
    begun = run.reading
    if begun is None:
        return None
    place = divmod(begun.number, run.plan.sub_epochs)
    return (*place, run.plan_step(begun.number, begun.step))


def sharded(dataset: Any) -> ShardedDataset | None:
    """Return the ShardedDataset inside wrappers that keep it as their `dataset`."""
    for _ in range(16):
        if isinstance(dataset, ShardedDataset) or dataset is None:
            break
        dataset = getattr(dataset, "dataset", None)
    return dataset if isinstance(dataset, ShardedDataset) else None
