"""PlanSampler: a plan's samples for Grain's DataLoader."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any

import grain
import numpy as np

from indexplan import Cursor, IndexPlanError, Plan
from indexplan.errors import counted, integer, shown
from indexplan.keywords import named
from indexplan_jax.processes import of_processes
from indexplan_jax.states import STATE_VERSION, Saved
from indexplan_jax.steps import Steps, units_of_each_batch

KEPT = 32  # batches, for Grain's threads, which ask for the samples of several


@named
class PlanSampler:
    """A sampler of a plan's samples for `grain.DataLoader`, in place of `IndexSampler`.

    Grain's `Batch` then makes the plan's batches, with any number of workers, and all processes get
    equally many. Grain can load its checkpoints itself if nothing has changed; with `resume`, a
    checkpoint also works with other numbers of processes and workers, and other batch sizes.

    Parameters
    ----------
    plan : Plan
        With remainder "carry", "drop" or "pad", one batch size that the ranks divide, and an order
        whose units are samples. You can leave out its world_size. To resume at a cursor, pass
        `plan.resume(cursor)`.
    shard_options : grain.sharding.ShardOptions, optional
        This process and how many there are, such as `grain.sharding.ShardByJaxProcess()`.
        DataLoader asks the sampler for it. By default there is one process.
    worker_count : int, default 0
        The same as DataLoader's. Each worker makes whole batches, so the sampler gives it the
        samples of every worker_count-th step.
    num_epochs : int, optional
        The epochs of the whole run, including those before a resume. By default there is no end.
    seed : int, optional
        Seeds `RecordMetadata.rng`, for `RandomMap`, together with the epoch and the sample. So in
        an epoch, a sample looks the same on any number of processes and workers.

    Attributes
    ----------
    batch_size : int
        Samples in a rank's batch. Pass it to `grain.transforms.Batch(sampler.batch_size)`.

    Raises
    ------
    IndexPlanError
        If the plan's batches are not all full and equal, or its order has bins; if seed or
        worker_count is out of range; or if a run has an end and its number of steps isn't a
        multiple of the workers, because the last of Grain's batches would then be incomplete.

    Notes
    -----
    Don't put operations that drop or add samples between the sampler and `Batch`.

    Examples
    --------
    >>> import grain, indexplan as ip
    >>> from indexplan_jax.grain import PlanSampler
    >>> plan = ip.Plan(ip.Sequential(12), batch_size=3, remainder="carry")
    >>> sampler = PlanSampler(plan, grain.sharding.ShardOptions(1, 2), num_epochs=1)
    >>> batch = grain.transforms.Batch(sampler.batch_size)
    >>> loader = grain.DataLoader(data_source=range(12), sampler=sampler, operations=[batch])
    >>> [batch.tolist() for batch in loader]
    [[3, 4, 5], [9, 10, 11]]
    """

    def __init__(
        self,
        plan: Plan,
        shard_options: grain.sharding.ShardOptions | None = None,
        *,
        worker_count: int = 0,
        num_epochs: int | None = None,
        seed: int | None = None,
    ) -> None:
        plan, self._shard_options = of_processes(plan, shard_options)
        units = units_of_each_batch(plan)
        if units is None or plan.order.deals_bins:
            kind = "bins" if plan.order.deals_bins else "samples"
            raise IndexPlanError(
                "plan",
                "must deal samples in batches that are all full and equal, for PlanSampler",
                f"{kind}, remainder={plan.remainder!r}, world_size={plan.world_size}, batch_size="
                f"{shown(plan.batch_size)}, global_batch_size={shown(plan.global_batch_size)}",
                "use remainder='carry' and one batch size that the ranks divide, or "
                "PlanIterDataset",
            )
        self.plan, self.batch_size, self.num_epochs = plan, units, num_epochs
        cure = "pass DataLoader's worker_count"
        self.worker_count = integer("worker_count", worker_count, 0, 2**31, cure)
        self.seed = seed
        if seed is not None:
            self.seed = integer("seed", seed, 0, 2**64, "pass None for no random numbers")
        self._steps = Steps(plan, num_epochs)
        self._stride = max(self.worker_count, 1)
        if num_epochs is not None and len(self._steps) % self._stride:
            raise IndexPlanError(
                "worker_count",
                f"must divide the {counted(len(self._steps), 'step')} of the run, as each worker "
                "makes whole batches",
                str(worker_count),
                "use 0 or 1, or num_epochs=None and stop after as many steps",
            )
        self._batches: dict[int, tuple[int, list[int]]] = {}

    def __len__(self) -> int:
        """Return how many samples all processes read; `sys.maxsize` if there is no end."""
        if self.num_epochs is None:
            return sys.maxsize
        return len(self._steps) * self.batch_size * int(self._shard_options.shard_count)

    def __getitem__(self, index: int) -> grain.RecordMetadata:
        """Return the sample at one of Grain's indices; index i belongs to process i % count."""
        local, shard = divmod(index, self._shard_options.shard_count)
        if shard != self._shard_options.shard_index:
            raise IndexPlanError(
                "shard_options",
                "must be DataLoader's",
                f"{self._shard_options}, and a sample of shard {shard}",
                "leave DataLoader's own out, as it asks the sampler for them",
            )
        if not 0 <= index < len(self):
            raise IndexError(index)
        each, worker = divmod(local, self._stride)
        batch, slot = divmod(each, self.batch_size)
        epoch, samples = self._batch(batch * self._stride + worker)
        rng = None
        if self.seed is not None:
            key = np.random.SeedSequence(self.seed, spawn_key=(epoch, samples[slot]))
            rng = np.random.Generator(np.random.Philox(key))
        return grain.RecordMetadata(index=index, record_key=samples[slot], rng=rng)

    def _batch(self, number: int) -> tuple[int, list[int]]:
        """Return the epoch and the samples of a step, which Grain requests sample by sample."""
        kept = self._batches.get(number)
        if kept is None:
            epoch, sub_epoch, step = self._steps[number]
            rank = self._shard_options.shard_index
            kept = epoch, self.plan.batch(epoch, sub_epoch, step=step, rank=rank).tolist()
            self._batches[number] = kept
            for old in sorted(self._batches)[:-KEPT]:
                self._batches.pop(old, None)  # another thread may have been here
        return kept

    def __repr__(self) -> str:
        """Return what Grain compares a checkpoint with, and `cursor` reads out of one."""
        described = {
            "version": STATE_VERSION,
            "plan": self.plan.to_dict(),
            "worker_count": self.worker_count,
            "num_epochs": self.num_epochs,
            "seed": self.seed,
        }
        return f"PlanSampler({json.dumps(described, sort_keys=True)})"

    def __reduce__(self) -> tuple[Any, ...]:
        named = {"worker_count": self.worker_count, "num_epochs": self.num_epochs}
        return _sampler, (self.plan, self._shard_options, {**named, "seed": self.seed})

    def cursor(self, state: bytes | str) -> Cursor:
        """Return where a run stood when it saved the state of a DataLoader's iterator.

        Parameters
        ----------
        state : bytes or str
            What the iterator's `get_state` returned on any process, or the text of one of the files
            that Grain's CheckpointHandler wrote.

        Raises
        ------
        IndexPlanError
            If it is not the state of a DataLoader that reads a PlanSampler; if it is inside a
            batch, because samples were dropped before `Batch` or `Batch` has another size; or if
            DataLoader's worker_count was not its sampler's.
        """
        saved = Saved(state)
        fields = {**saved.plan, "order": self.plan.order.to_dict()}
        fields.pop("balance", None)  # which moves no cursor, and needs a column
        before = Plan.from_dict(fields, order=self.plan.order)
        number = saved.steps(before)
        # the order that was read is compared by plan.resume, as it may have been extended since
        return replace(Steps(before, None).cursor(number), order=saved.plan["order"])

    def resume(self, state: bytes | str) -> PlanSampler:
        """Return a sampler of what is left to read after a state; see `cursor`.

        Processes, workers, batch size and seed may differ from those of the run that saved it.
        """
        function, (_, shard_options, named) = self.__reduce__()
        resumed: PlanSampler = function(self.plan.resume(self.cursor(state)), shard_options, named)
        return resumed


def _sampler(plan: Plan, shard_options: Any, named: dict[str, Any]) -> PlanSampler:
    """Make a sampler, for pickle."""
    return PlanSampler(plan, shard_options, **named)
