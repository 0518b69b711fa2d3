"""Plans under NeMo AutoModel: the batch sampler of its DataloaderConfig."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import indexplan
from indexplan import Order, Plan
from indexplan.errors import counted, wrong
from indexplan_torch.samplers import PlanBatchSampler

__all__ = ["PlanBatchSamplerConfig"]


@dataclass(frozen=True, kw_only=True)
class PlanBatchSamplerConfig:
    """What AutoModel's DataloaderConfig takes as its `batch_sampler_config`: batches of a plan.

    Parameters
    ----------
    batch_size : int
        Samples in each rank's micro-batch, from 1: AutoModel's local_batch_size.
    seed : int, default 0
        Of `indexplan.Shuffle`, where no order is given.
    order : Order, optional
        The sequence in which each epoch reads the samples, instead of a shuffle.
    remainder : str, default "carry"
        As for `indexplan.Plan`. Under "carry" each micro-batch is full: the last of an epoch is
        filled with the next epoch's first samples.

    Examples
    --------
    >>> from indexplan_torch.nemo import PlanBatchSamplerConfig
    >>> config = PlanBatchSamplerConfig(batch_size=2, seed=1)
    >>> ranks = [config.build(dataset_len=10, rank=rank, world_size=2) for rank in range(2)]
    >>> [list(sampler) for sampler in ranks]
    [[[9, 2], [6, 4], [5, 0]], [[7, 3], [1, 8], [9, 3]]]
    """

    batch_size: int
    seed: int = 0
    order: Order | None = None
    remainder: Any = "carry"

    def build(self, *, dataset_len: int, rank: int, world_size: int) -> PlanBatchSampler:
        """Return a data-parallel rank's batch sampler; AutoModel calls this.

        Raises
        ------
        IndexPlanError
            If the order doesn't have as many samples as the dataset, or a field is invalid.
        """
        order = indexplan.Shuffle(dataset_len, self.seed) if self.order is None else self.order
        plan = Plan(order, batch_size=self.batch_size, remainder=self.remainder)
        if order.num_samples != dataset_len:
            rule = f"of {counted(dataset_len, 'sample')}, as many as the dataset's"
            raise wrong("order", rule, order.num_samples, "leave it out, or make it as long")
        return PlanBatchSampler(plan, rank=rank, world_size=world_size)
