"""PlanIterDataset: the batches of a plan in Grain's Dataset API."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import grain

from indexplan import Cursor, IndexPlanError, Plan
from indexplan.errors import as_integer, counted, empty_batches, grown, invalid, shown
from indexplan.keywords import named
from indexplan_jax.steps import Steps

STATE_VERSION = 1


@named
class PlanIterDataset(grain.IterDataset):
    """An IterDataset of a plan's batches, in place of `shuffle`, slicing, `repeat` and `batch`.

    Like Grain's `ElasticIterator`, its state is equal on all processes and loads on any number of
    them, with any number of workers and another batch size. Transform samples in `dataset`, and
    batches after this.

    Parameters
    ----------
    dataset : grain.MapDataset or data source
        The samples, as many as the plan's order has, in their own sequence.
    plan : Plan
        With any order, batch size and remainder. You can leave out its world_size. To resume at a
        cursor, pass `plan.resume(cursor)`.
    shard_options : grain.sharding.ShardOptions, optional
        This process and how many there are, such as `grain.sharding.ShardByJaxProcess()`. By
        default there is one.
    num_epochs : int, optional
        The epochs of the whole run, including those before a resume. By default there is no end.
    batch_fn : callable, optional
        Turns a list of samples into a batch, as for Grain's `batch`. By default arrays are stacked.
        If the order has bins, it gets a list of bins, each a list of samples, or of
        `(sample, start, stop)` if the order cuts samples; by default that list is the batch.
    read_options : grain.ReadOptions, optional
        Grain's options: threads, and how many batches they prefetch.
    multiprocessing_options : grain.MultiprocessingOptions, optional
        Grain's options, to read in worker processes. You can't use `mp_prefetch` after this.

    Raises
    ------
    IndexPlanError
        If the dataset doesn't have as many samples as the plan's order, or the plan's world_size
        isn't the number of processes. When it is read: if a step has no unit for this process, or a
        sample is None because Grain's `filter` removed it.

    Notes
    -----
    `random_map` on `dataset` depends on its seed, the epoch and the sample, so in an epoch, a
    sample looks the same on any number of processes. If an order reads a sample several times in
    an epoch, it looks the same each time. Under "carry" the epoch is that in which the step began.

    Examples
    --------
    >>> import grain, indexplan as ip
    >>> from indexplan_jax.grain import PlanIterDataset
    >>> plan = ip.Plan(ip.Sequential(10), global_batch_size=4)
    >>> squares = grain.MapDataset.range(10).map(lambda number: number**2)
    >>> two = [iter(PlanIterDataset(squares, plan, grain.sharding.ShardOptions(rank, 2),
    ...                             num_epochs=1)) for rank in range(2)]
    >>> [next(iterator).tolist() for iterator in two]
    [[0, 1], [4, 9]]

    One process resumes where the two stood:

    >>> one = iter(PlanIterDataset(squares, plan, num_epochs=1))
    >>> one.set_state(two[0].get_state())
    >>> [batch.tolist() for batch in one]
    [[16, 25, 36], [49, 64, 81]]
    """

    def __init__(
        self,
        dataset: Any,
        plan: Plan,
        shard_options: grain.sharding.ShardOptions | None = None,
        *,
        num_epochs: int | None = None,
        batch_fn: Callable[[Sequence[Any]], Any] | None = None,
        read_options: grain.ReadOptions | None = None,
        multiprocessing_options: grain.MultiprocessingOptions | None = None,
    ) -> None:
        super().__init__()  # without parents, which mp_prefetch would slice
        plan, shard = _of_processes(plan, shard_options)
        if not isinstance(dataset, grain.MapDataset):
            dataset = grain.MapDataset.source(dataset)
        if len(dataset) != plan.order.num_samples:
            raise IndexPlanError(
                "dataset",
                f"must have {counted(plan.order.num_samples, 'sample')}, as the plan's order",
                str(len(dataset)),
                "pass the samples in their own sequence, without shuffle, repeat or slices",
            )
        self._read = _Read(dataset, Steps(plan, num_epochs), shard.shard_index, batch_fn)
        self._read_options = read_options
        self._workers = multiprocessing_options

    def batches(self, read: _Read) -> grain.DatasetIterator:
        """Return Grain's own iterator over some batches, with its threads and workers."""
        batches: Any = read.to_iter_dataset(self._read_options)
        if self._workers is not None:
            batches = batches.mp_prefetch(self._workers)
        return iter(batches)

    def __iter__(self) -> _Batches:
        return _Batches(self, self._read)


def _of_processes(
    plan: Any, shard_options: grain.sharding.ShardOptions | None
) -> tuple[Plan, grain.sharding.ShardOptions]:
    """Return the plan for as many processes as there are, and which one this is."""
    if not isinstance(plan, Plan):
        cure = 'pass indexplan.Plan(order, batch_size=..., remainder="carry")'
        raise invalid("plan", "an indexplan.Plan", plan, cure)
    shard = grain.sharding.NoSharding() if shard_options is None else shard_options
    if not isinstance(shard, grain.sharding.ShardOptions):
        cure = "pass grain.sharding.ShardByJaxProcess(), or ShardOptions(process, count)"
        raise invalid("shard_options", "Grain's ShardOptions", shard, cure)
    if plan.world_size is None:
        plan = plan.replace(world_size=shard.shard_count).resume(plan.start)
    if plan.world_size != shard.shard_count:
        rule = f"for {plan.world_size} processes, the plan's world_size"
        cure = "leave the plan's world_size out, or pass ShardOptions of as many"
        raise invalid("shard_options", rule, shard, cure)
    return plan, shard


class _Read(grain.MapDataset):
    """The batches of a plan's steps from where it starts, each read when it is asked for."""

    def __init__(self, dataset: Any, steps: Steps, rank: int, batch_fn: Any) -> None:
        super().__init__(dataset)
        self._dataset, self.steps, self._rank, self._batch_fn = dataset, steps, rank, batch_fn

    def after(self, cursor: Cursor) -> _Read:
        """Return the batches after a cursor."""
        steps = Steps(self.steps.plan.resume(cursor), self.steps.num_epochs)
        return _Read(self._dataset, steps, self._rank, self._batch_fn)

    def begins(self, number: int) -> bool:
        """Return whether a pass begins with one of the steps."""
        try:
            epoch, sub_epoch, step = self.steps[number]
        except IndexError:
            return False
        return step == self.steps.plan.steps(epoch, sub_epoch).start

    def check_length(self) -> None:
        """Refuse a dataset that has more or fewer samples than when it was passed."""
        if (length := len(self._dataset)) != self.steps.plan.order.num_samples:
            raise grown(self.steps.plan.order.num_samples, length)

    def __len__(self) -> int:
        return sys.maxsize if self.steps.num_epochs is None else len(self.steps)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self.slice(index)  # Grain's workers each read a slice
        epoch, sub_epoch, step = self.steps[index]
        plan = self.steps.plan
        units = plan.units(epoch, sub_epoch, step=step, rank=self._rank)
        if not len(units):
            raise empty_batches(plan.world_size, plan.remainder, epoch, sub_epoch)
        first = epoch * len(self._dataset)  # Grain's own number of a sample in a later epoch
        found = [self._sample(first, each) for each in units.samples.tolist()]
        if plan.order.deals_bins:
            if units.spans is not None:
                spans = units.spans.tolist()
                found = [(each, *span) for each, span in zip(found, spans, strict=True)]
            found = [found[start:stop] for start, stop in pairwise(units.offsets.tolist())]
        if self._batch_fn is not None:
            return self._batch_fn(found)
        if plan.order.deals_bins:
            return found
        return grain.experimental.batch_and_pad(found, batch_size=len(found))  # nothing to pad

    def _sample(self, first: int, number: int) -> Any:
        sample = self._dataset[first + number]
        if sample is None:
            cure = "filter the plan's order with indexplan.Subset"
            raise IndexPlanError("each sample", "must be there", f"None for {number}", cure)
        return sample


class _Batches(grain.DatasetIterator):
    """An iterator whose state is a plan's cursor, the same on all processes."""

    _batches: Any = None  # until Grain has taken the options

    def __init__(self, dataset: PlanIterDataset, read: _Read) -> None:
        super().__init__()
        self._dataset = dataset
        self._begin(read)

    def _begin(self, read: _Read) -> None:
        read.check_length()
        self._read, self._returned = read, 0
        self._batches = self._dataset.batches(read)

    def _continue(self, cursor: Cursor) -> None:
        self._batches.close()
        self._begin(self._read.after(cursor))

    @property
    def _cursor(self) -> Cursor:
        return self._read.steps.cursor(self._returned)

    def __next__(self) -> Any:
        """Return the next batch; after an error, the same one once more."""
        if self._returned and self._read.begins(self._returned):
            self._read.check_length()
        try:
            batch = next(self._batches)
        except StopIteration:
            raise
        except BaseException:  # Ctrl-C too: Grain's own iterator would read a later batch
            self._continue(self._cursor)
            raise
        self._returned += 1
        return batch

    def get_state(self) -> dict[str, Any]:
        """Return where the run stands, as JSON types."""
        return {"version": STATE_VERSION, "cursor": self._cursor.to_dict()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Resume from a state, with any processes, workers and batch size."""
        if not isinstance(state, dict) or {*state} != {"version", "cursor"}:
            got = f"a dict of {shown(list(state))}" if isinstance(state, dict) else shown(state)
            cure = "pass what get_state returned"
            raise IndexPlanError("state", "must be of a PlanIterDataset's iterator", got, cure)
        if as_integer(state["version"]) != STATE_VERSION:
            cure = "load it with the version of indexplan that saved it"
            raise invalid("state", f"of version {STATE_VERSION}", state["version"], cure)
        self._continue(Cursor.from_dict(state["cursor"]))

    def start_prefetch(self) -> None:
        """Start reading ahead."""
        self._batches.start_prefetch()

    def close(self) -> None:
        """Stop reading ahead, and end the worker processes."""
        if self._batches is not None:
            self._batches.close()
