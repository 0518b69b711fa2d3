"""Samplers that stream a plan, shaped so that trainers leave the plan as it is.

Trainers look for `DistributedSampler` to tell a sampler that knows its rank, call `set_epoch` on
`loader.sampler` or `loader.batch_sampler`, and build batch samplers anew as
`cls(sampler, batch_size=..., drop_last=...)`. All of them here share a `Feed`, which survives that.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torch.utils.data import BatchSampler, DistributedSampler, SequentialSampler

from indexplan import IndexPlanError, Plan
from indexplan_torch.arguments import shown
from indexplan_torch.drawn import (
    Drawn,
    find_drawer,
    load_before_workers_start,
    refuse_out_of_order,
)
from indexplan_torch.feed import Feed
from indexplan_torch.items import Form, Item, asked
from indexplan_torch.ranks import refuse_num_replicas

if TYPE_CHECKING:
    from typing_extensions import Self


class _FeedSampler(DistributedSampler[Any]):
    """What all samplers of a feed have in common, towards users and trainers."""

    feed: Feed
    shuffle = False  # the order is the plan's, and nobody else's to shuffle
    seed = 0
    drop_last = False

    @property
    def num_replicas(self) -> int:  # type: ignore[override]
        """The running world size, by DistributedSampler's name."""
        return self.feed.running()[0].world_size or 1

    @property
    def rank(self) -> int:  # type: ignore[override]
        """The running rank."""
        return self.feed.running()[1]

    @property
    def epoch(self) -> int:  # type: ignore[override]
        """The number of the pass that is set, counted in sub-epochs through the run."""
        return self.feed.number

    def set_epoch(self, epoch: int) -> None:
        """Set which pass comes next: sub-epoch `epoch % sub_epochs` of `epoch // sub_epochs`."""
        self.feed.set_epoch(epoch)

    def set_epoch_and_sub_epoch(self, epoch: int, sub_epoch: int) -> None:
        """Set which pass comes next; `sub_epoch` counts modulo the plan's sub_epochs."""
        self.feed.set_epoch_and_sub_epoch(epoch, sub_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return where the run stands, counted in what was drawn; the same on all ranks.

        With DataLoader workers more is drawn than the loop has received: `PlanLoader` and
        torchdata's StatefulDataLoader count what it received.
        """
        return self.feed.state_dict(drawn=True)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where a run stood, under whatever world_size and batch size are now."""
        self.feed.load_state_dict(state)


class PlanView(_FeedSampler):
    """What `loader.sampler` is: a sign to trainers that ranks are taken care of; hears epochs.

    Examples
    --------
    >>> import indexplan as ip
    >>> from indexplan_torch import PlanLoader
    >>> loader = PlanLoader(range(10), ip.Plan(ip.Sequential(10), batch_size=4))
    >>> loader.sampler.set_epoch(3)  # as trainers do
    >>> loader.cursor.epoch
    3
    """

    def __init__(self, feed: Feed) -> None:
        self.feed = feed

    def set_epoch(self, epoch: int) -> None:
        """Set which pass comes next, as a trainer counts it."""
        self.feed.set_epoch_from_trainer(epoch)

    @property
    def generator(self) -> None:
        """What `accelerator.prepare` asks a sampler before it deals its batches out to ranks."""
        raise IndexPlanError(
            "batches must be all ranks' for accelerator.prepare, which deals them out; got this "
            "rank's; use GlobalPlanBatchSampler, or a PlanLoader and "
            "indexplan_torch.accelerate.prepare"
        )

    def __len__(self) -> int:
        """Return the units of the rank's share of the sub-epoch that is set."""
        plan, rank = self.feed.running()
        epoch, sub_epoch = self.feed.where
        if self.feed.over(self.feed.number):
            return 0
        return int(plan.batch_sizes(epoch, sub_epoch, rank=rank).sum())

    def __iter__(self) -> Iterator[Any]:
        """Yield the rank's indices one by one; of a plan of bins, its bins."""
        plan, rank = self.feed.running()
        if not self.feed.over(self.feed.number):
            for batch in asked(plan, *self.feed.where, rank, Form()):
                yield from batch


class BatchSize(int):
    """A batch size that brings its feed along when a trainer builds a batch sampler anew."""

    feed: Feed

    def __new__(cls, size: int, feed: Feed) -> Self:
        """Make a size of a feed's batches."""
        self = super().__new__(cls, size)
        self.feed = feed
        return self

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)


class PlanBatchSampler(BatchSampler, _FeedSampler):
    """A rank's batches of the sub-epoch that is set: `DataLoader(dataset, batch_sampler=...)`.

    `PlanLoader` is the shorter way, and the one to take with trainers.

    Parameters
    ----------
    plan : Plan
        With the running world_size, or an open one.
    rank, world_size : int, optional
        Discovered at first use if left out.
    mesh : torch.distributed.device_mesh.DeviceMesh, optional
        Instead of these: a mesh, or its data-parallel dimension.
    nested : bool, default False
        Yield a list of inner batches, for a dataset that takes lists of indices.
    item : callable, optional
        item(index, phase) is what the dataset is asked for instead of the index; it brings a
        phase's parameters to workers, persistent ones too. Of a plan that cuts samples, index is a
        `Piece`, and the dataset has to cut what an item makes of it.
    as_array : bool, default False
        Yield int64 arrays, for datasets with `__getitems__` that take them.
    keep_bins : bool, default True
        Of a plan whose order deals bins, yield a list of bins, each a list of indices (`Bins` is a
        dataset that takes one), or an array under `as_array`. Where the order cuts samples, each is
        a `Piece`, or a row of an array of shape (samples, 3). False: the samples of all bins in one
        list, where a bin is a batch by itself, as those of `ClassBatches`, and batch_size is 1.
    partial : bool, default False
        Say that the loop leaves passes before their end, on purpose: else a later pass after one
        that was left is an error, as its samples are lost.
    compare : bool, default True
        Compare the plan with that of the other ranks, when all begin their first pass, where a
        process group runs. Switch it off for a loader that only some of them read.

    Other Parameters
    ----------------
    batch_size, drop_last, sampler
        For trainers that build batch samplers anew. Leave them out.
    num_replicas
        Refused: its name here is world_size.

    Raises
    ------
    IndexPlanError
        If an argument breaks its rule.

    Examples
    --------
    >>> import indexplan as ip
    >>> from indexplan_torch import PlanBatchSampler
    >>> plan = ip.Plan(ip.Sequential(12), batch_size=(2, 3))
    >>> list(PlanBatchSampler(plan, rank=1, world_size=2, nested=True))
    [[[6, 7, 8], [9, 10, 11]]]
    """

    def __init__(
        self,
        plan: Plan | Any,
        batch_size: int | None = None,
        drop_last: bool = False,
        *,
        rank: int | None = None,
        world_size: int | None = None,
        mesh: Any = None,
        nested: bool = False,
        item: Item | None = None,
        as_array: bool = False,
        keep_bins: bool = True,
        partial: bool = False,
        compare: bool = True,
        sampler: Any = None,
        num_replicas: None = None,
    ) -> None:
        refuse_num_replicas(num_replicas)
        injected = sampler if isinstance(plan, Plan) else plan
        feed = getattr(injected, "feed", None) or getattr(batch_size, "feed", None)
        if feed is None:
            if not isinstance(plan, Plan) or batch_size is not None or drop_last is not False:
                raise IndexPlanError(
                    "PlanBatchSampler must be given a plan, and no batch_size or drop_last; got "
                    f"{type(plan).__name__}, batch_size={shown(batch_size)}, "
                    f"drop_last={shown(drop_last)}; "
                    "these belong to the plan: indexplan.Plan(..., batch_size=...)"
                )
            feed = Feed(
                plan,
                rank=rank,
                world_size=world_size,
                mesh=mesh,
                form=Form(nested, item, as_array, keep_bins),
                partial=partial,
                compare=compare,
            )
        if isinstance(injected, SequentialSampler):
            feed = feed.pin()  # overfit_batches: the same batches in every epoch
        self.feed = feed
        self.sampler = PlanView(feed)

    @property
    def batch_size(self) -> int:  # type: ignore[override]
        """The largest batch of the sub-epoch that is set, in units."""
        plan, _ = self.feed.running()
        return BatchSize(plan.account(*self.feed.where).max_batch_size or 0, self.feed)

    def __len__(self) -> int:
        """Return the steps of the sub-epoch that is set, finished ones included."""
        return len(self.feed)

    def __iter__(self) -> Iterator[Any]:
        """Yield a batch a step; nothing happens before the first is asked for."""
        refuse_as_sampler(self)
        refuse_out_of_order()
        load_before_workers_start(self)
        drawn = Drawn(self.feed)
        self.feed.opened = weakref.ref(drawn)
        return drawn


def refuse_as_sampler(sampler: PlanBatchSampler) -> None:
    """Refuse to stream to a batch sampler of torch's, which would make batches of batches.

    `DataLoader(sampler=..., batch_size=n)` puts one around whatever it is given, and it asks for
    nothing but `iter`: it is seen by who asks for that. Once a pass, so cheap enough.
    """
    # not currentframe(): a frame that holds itself keeps its callers' loader and workers alive
    asking = sys._getframe(2).f_locals.get("self")  # noqa: SLF001
    if isinstance(asking, BatchSampler) and vars(asking).get("sampler") is sampler:
        raise IndexPlanError(
            f"sampler must yield indices; got a {type(sampler).__name__}, which yields batches; "
            "use DataLoader(dataset, batch_sampler=...), or PlanLoader(dataset, plan)"
        )


class PlanSampler(PlanView):
    """A rank's indices, one by one, for `DataLoader(batch_size=...)`: full batches only.

    The loader cuts the batches, so they are the plan's only where all of them are full and equal.
    Where the plan's order deals bins, what it yields one by one are bins, each a list of indices.

    Parameters
    ----------
    plan : Plan
        With remainder "drop", "pad" or "carry", and one batch size that is not nested.
    rank, world_size : int, optional
        Discovered at first use if left out.
    mesh : torch.distributed.device_mesh.DeviceMesh, optional
        Instead of these: a mesh, or its data-parallel dimension.
    partial, compare : bool
        As for `PlanBatchSampler`.

    Other Parameters
    ----------------
    num_replicas
        Refused: its name here is world_size.

    Raises
    ------
    IndexPlanError
        If the plan has batches that a loader would cut in other places.

    Examples
    --------
    >>> import indexplan as ip
    >>> from indexplan_torch import PlanSampler
    >>> plan = ip.Plan(ip.Sequential(10), batch_size=2, remainder="drop")
    >>> list(PlanSampler(plan, rank=1, world_size=2))
    [2, 3, 6, 7]
    """

    def __init__(
        self,
        plan: Plan,
        *,
        rank: int | None = None,
        world_size: int | None = None,
        mesh: Any = None,
        partial: bool = False,
        compare: bool = True,
        num_replicas: None = None,
    ) -> None:
        refuse_num_replicas(num_replicas)
        ranks: dict[str, Any] = {"rank": rank, "world_size": world_size, "mesh": mesh}
        super().__init__(Feed(plan, **ranks, partial=partial, compare=compare))
        if plan.remainder == "spread" or len(plan.phases) > 1 or plan.batch_size is None:
            raise IndexPlanError(
                "plan must have batches that are all full, for PlanSampler; got remainder="
                f"{plan.remainder!r}, {len(plan.phases)} phases, batch_size={plan.batch_size}; "
                "use PlanLoader, or remainder='pad' and one batch_size"
            )

    def set_epoch(self, epoch: int) -> None:
        """Set which pass comes next: sub-epoch `epoch % sub_epochs` of `epoch // sub_epochs`."""
        self.feed.set_epoch(epoch)

    def __iter__(self) -> Iterator[Any]:
        """Yield the rank's indices, or bins, of the steps that are left, one by one."""
        find_drawer()  # refuses batches that come out of order
        begun = self.feed.begin()
        for batch in self.feed.draw(begun):
            yield from batch[:-1]
            begun.step += 1  # before the last: a loader that has its batch asks for no more
            yield batch[-1]
