"""All ranks' batches in turn, for Accelerate, which splits them among the ranks itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from indexplan import IndexPlanError, Plan
from indexplan.keywords import named
from indexplan_torch import callers
from indexplan_torch.drawn import begin
from indexplan_torch.items import Item, num_phases
from indexplan_torch.ranks import discover, refuse_num_replicas
from indexplan_torch.samplers import BatchSize, PlanBatchSampler, PlanView


class _LastStep(BatchSize):
    """A rank's batch size that knows how many rows of a pass's last step are valid.

    Accelerate's `gather_for_metrics` keeps `len(dataset) % (batch_size * num_processes)` rows of
    that step. This removes padding only if a pass is a whole epoch that was not resumed.
    """

    def __mul__(self, num_processes: int) -> _LastStep:
        return _LastStep(int(self) * num_processes, self.feed)

    def __rmod__(self, _: int) -> int:
        plan, _ = self.feed.running()
        last = plan.steps(*self.feed.where).stop - 1
        return plan.step_size(*self.feed.where, step=last) if last >= 0 else 0


class _GlobalView(PlanView):
    @property
    def generator(self) -> None:
        """Absent: `accelerator.prepare` may split these batches among the ranks."""
        raise AttributeError("generator")


@named
class GlobalPlanBatchSampler(PlanBatchSampler):
    """A batch sampler of all ranks' batches in turn: step 0 rank 0, step 0 rank 1, and so on.

    Use it with `accelerator.prepare`, which gives each rank every world_size-th batch. With
    `split_batches`, `dispatch_batches` or `use_stateful_dataloader`, an Accelerator would cut or
    count the batches differently, so `prepare` raises an error.

    Parameters
    ----------
    plan : Plan
        Without a world_size, or with the running one.
    world_size : int, optional
        If you leave it out, `discover` finds it at first use.
    mesh : torch.distributed.device_mesh.DeviceMesh, optional
        A mesh, or its data-parallel dimension, instead of world_size.
    nested, item, as_array, keep_bins, partial
        As for `PlanBatchSampler`.
    compare : bool, default False
        As for `PlanBatchSampler`. It is off because Accelerate may read the sampler in only one
        process.

    Other Parameters
    ----------------
    num_replicas
        Refused: use world_size.

    Raises
    ------
    IndexPlanError
        In `prepare`, if one of these options is set, or if `gather_for_metrics` could not remove
        the plan's padding.

    Examples
    --------
    >>> import indexplan as ip
    >>> from indexplan_torch import GlobalPlanBatchSampler
    >>> plan = ip.Plan(ip.Sequential(8), batch_size=2)
    >>> list(GlobalPlanBatchSampler(plan, world_size=2))
    [[0, 1], [2, 3], [4, 5], [6, 7]]
    """

    def __init__(
        self,
        plan: Plan,
        *,
        world_size: int | None = None,
        mesh: Any = None,
        nested: bool = False,
        item: Item | None = None,
        as_array: bool = False,
        keep_bins: bool = True,
        partial: bool = False,
        compare: bool = False,
        num_replicas: None = None,
    ) -> None:
        refuse_num_replicas(num_replicas)
        rank = None if world_size is None else 0
        if mesh is not None:
            rank, world_size = discover(rank, world_size, mesh=mesh)
        form: dict[str, Any] = {"nested": nested, "item": item, "as_array": as_array}
        form |= {"keep_bins": keep_bins, "partial": partial, "compare": compare}
        super().__init__(plan, rank=rank, world_size=world_size, **form)

    @property
    def sampler(self) -> Any:
        """What trainers set the epoch on; `accelerator.prepare` always asks for it."""
        _check_prepare()
        return _GlobalView(self.feed)

    @sampler.setter
    def sampler(self, sampler: Any) -> None:
        """Ignore the sampler that BatchSampler sets here."""

    @property
    def batch_size(self) -> int | None:  # type: ignore[override]
        """A rank's batch size under "pad"; otherwise None, because batches may differ by a unit."""
        _check_prepare()
        if self.feed.plan.remainder != "pad":
            return None
        plan, _ = self.feed.running()
        account = plan.account(*self.feed.where)
        size = account.max_batch_size
        uneven = size != account.min_batch_size or num_phases(plan) > 1
        if uneven or self.feed.given.form.nested or plan.order.deals_bins:
            raise IndexPlanError(
                "plan",
                "must have one batch size that all ranks share, of samples that are "
                "neither nested nor in bins, for GlobalPlanBatchSampler with "
                "remainder='pad', as Accelerate counts batches and padding by it",
                "other batches",
                "use indexplan_torch.accelerate.prepare(accelerator, PlanLoader(dataset, plan))",
            )
        return None if size is None else _LastStep(size, self.feed)

    def __len__(self) -> int:
        """Return the number of all ranks' batches in the coming sub-epoch."""
        return len(self.feed) * self.num_replicas

    def __iter__(self) -> Iterator[Any]:
        """Yield every rank's batch of a step, then of the next."""
        begun = begin(self.feed)
        ranks = range(self.num_replicas)
        for step in zip(*(self.feed.draw(begun, rank) for rank in ranks), strict=True):
            for rank, batch in enumerate(step):
                if rank + 1 == len(step):
                    begun.step += 1
                yield batch


# options of Accelerate that make its loaders cut or count batches differently
_NOT_DEALT = {
    "split_batches": "each batch is a rank's already, and would be cut once more",
    "dispatch_batches": "one process would cut a step into equal parts, and a plan's may differ",
    "use_stateful_dataloader": "it would count all ranks' batches as if they were one's",
}


def _check_prepare() -> None:
    """Raise if the caller is Accelerate preparing a loader in a way that breaks the plan."""
    seen = callers.look(callers.DEALING)
    for option, reason in _NOT_DEALT.items():
        if seen is not None and seen[option]:
            raise IndexPlanError(
                option,
                f"must be left out with GlobalPlanBatchSampler, as {reason}",
                seen[option],
                "use indexplan_torch.accelerate.prepare(accelerator, PlanLoader(dataset, plan))",
            )
