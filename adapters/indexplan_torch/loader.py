"""PlanLoader: a DataLoader that streams a plan, and keeps it under every trainer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import torch
from torch.utils.data import DataLoader

from indexplan import Cursor, IndexPlanError, Plan
from indexplan_torch.arguments import check_by_index, shown
from indexplan_torch.bins import Bins
from indexplan_torch.counting import refuse_counting_bins
from indexplan_torch.cuts import check_received
from indexplan_torch.drawn import check_in_order
from indexplan_torch.feed import Feed
from indexplan_torch.groups import groups_of, shares_of
from indexplan_torch.items import Item
from indexplan_torch.ranks import refuse_num_replicas
from indexplan_torch.samplers import PlanBatchSampler, PlanView
from indexplan_torch.seeding import SeedWorker
from indexplan_torch.shards.dataset import sharded

if TYPE_CHECKING:
    from typing_extensions import Unpack

_THE_PLANS_OWN = {"batch_size": 1, "shuffle": None, "sampler": None, "drop_last": False}


class Options(TypedDict, total=False):
    """DataLoader's options, but those that belong to the plan."""

    num_workers: int
    collate_fn: Callable[[Any], Any] | None
    pin_memory: bool
    timeout: float
    worker_init_fn: Callable[[int], None] | None
    multiprocessing_context: Any
    generator: torch.Generator | None
    prefetch_factor: int | None
    persistent_workers: bool
    pin_memory_device: str
    in_order: Literal[True]


class PlanLoader(DataLoader[Any]):
    """A DataLoader over a plan: this rank's batches, the same under every trainer.

    Its state counts the batches that the training loop has received, however many workers have
    drawn ahead. Iterating again without `set_epoch` goes on with the next sub-epoch.

    Parameters
    ----------
    dataset : torch.utils.data.Dataset
        Map-style; as long as the plan's order has samples.
    plan : Plan
        With the running world_size, or, better, an open one.
    rank, world_size, mesh, nested, item, as_array, keep_bins, partial, compare
        As for `PlanBatchSampler`.
    **options
        DataLoader's: num_workers, collate_fn, persistent_workers and so on. `worker_init_fn` is by
        default one that gives every rank and worker its own random stream.

    Other Parameters
    ----------------
    batch_sampler
        For trainers that build loaders anew. Leave it out.

    Raises
    ------
    IndexPlanError
        If the dataset's length is not the plan's, or an option belongs to the plan.

    Examples
    --------
    >>> import indexplan as ip
    >>> from indexplan_torch import PlanLoader
    >>> loader = PlanLoader(range(10), ip.Plan(ip.Sequential(10), batch_size=4))
    >>> [batch.tolist() for batch in loader]
    [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9]]
    """

    def __init__(
        self,
        dataset: Any,
        plan: Plan,
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
        batch_sampler: Any = None,
        **options: Unpack[Options],
    ) -> None:
        if isinstance(dataset, Plan) and not isinstance(plan, Plan):
            raise IndexPlanError(
                f"dataset must come before the plan; got PlanLoader(Plan, {type(plan).__name__}); "
                "use PlanLoader(dataset, plan)"
            )
        given: dict[str, Any] = {**options}  # a trainer's may have more than a type allows
        refuse_num_replicas(given.pop("num_replicas", None))
        if batch_sampler is None:
            for name in _THE_PLANS_OWN.keys() & given.keys():
                raise IndexPlanError(
                    f"{name} must be left out, as it belongs to the plan; got "
                    f"{shown(given[name])}; use indexplan.Plan(..., batch_size=..., "
                    "remainder=...)"
                )
            batch_sampler = PlanBatchSampler(
                plan,
                rank=rank,
                world_size=world_size,
                mesh=mesh,
                nested=nested,
                item=item,
                as_array=as_array,
                keep_bins=keep_bins,
                partial=partial,
                compare=compare,
            )
        else:  # a trainer builds the loader anew, around what it made of our batch sampler
            given = {k: v for k, v in given.items() if k not in _THE_PLANS_OWN}
        self.feed = _ours(batch_sampler).feed
        if self.feed.given != plan:
            raise IndexPlanError(
                f"batch_sampler must be left out, as the plan makes it; got one of another plan, "
                f"{self.feed.given!r}; use PlanLoader(dataset, plan)"
            )
        check_in_order(given.get("in_order", True))
        _check_dataset(dataset, self.feed)
        # By the names of the parameters, so that a trainer can build the loader anew from them.
        self.plan, self.nested, self.item, self.as_array = plan, nested, item, as_array
        self.keep_bins = keep_bins
        self.rank, self.world_size, self.mesh = rank, world_size, mesh
        self.partial, self.compare = partial, compare
        given.setdefault("worker_init_fn", None)
        if given["worker_init_fn"] is None or isinstance(given["worker_init_fn"], SeedWorker):
            given["worker_init_fn"] = SeedWorker(self.feed)
        super().__init__(dataset, batch_sampler=batch_sampler, **given)

    @property
    def sampler(self) -> Any:
        """A DistributedSampler by type, which hears `set_epoch` for all."""
        return PlanView(self.feed)

    @sampler.setter
    def sampler(self, sampler: Any) -> None:
        """Ignore what DataLoader would put here beside a batch sampler."""

    @property
    def batch_size(self) -> int:
        """The largest batch of the sub-epoch that is set, in units."""
        refuse_counting_bins(self.feed)
        return _ours(self.batch_sampler).batch_size

    @batch_size.setter
    def batch_size(self, size: Any) -> None:
        """Ignore what DataLoader would put here beside a batch sampler."""

    @property
    def _is_accelerate_prepared(self) -> bool:
        """What `accelerator.prepare` asks a loader before it deals its batches out to ranks."""
        raise IndexPlanError(
            "loader must be prepared by indexplan_torch.accelerate.prepare, as its batches are "
            "this rank's already; got it in accelerator.prepare, which would deal them out again; "
            "use prepare(accelerator, loader)"
        )

    def __len__(self) -> int:
        """Return the steps of the sub-epoch that is set, finished ones included."""
        return len(self.feed)

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]  # torch's is a class
        """Yield the batches of the steps that are left; workers start at the first.

        A generator, so that a trainer may ask for it before it has set the epoch.
        """
        begun = self.feed.begin()
        if begun.first == begun.stop:
            return  # starts no workers, and draws no seed that an uninterrupted run would not
        self.feed.handed = begun
        random = torch.get_rng_state() if begun.step else None
        batches = super().__iter__()
        if (dataset := sharded(self.dataset)) is not None:
            dataset.follow(self.feed)  # in a thread: after workers are forked
        if random is not None:  # torch drew a seed, which the run that was stopped did not, here
            torch.set_rng_state(random)
        step = begun.first  # the count of this loader, whose wrapper may look ahead of the loop
        for batch in self._read(batches):
            step += 1
            begun.step += 1
            check_received(begun, step)
            yield batch
        check_received(begun, step, ended=True)

    def _read(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield batches; of a dataset that does not take the plan's bins, say so."""
        try:
            yield from batches
        except TypeError as error:
            bins = self.plan.order.deals_bins and self.feed.form.keep_bins
            if not bins or isinstance(self.dataset, Bins):
                raise
            said = str(error).rpartition("\n")[2]  # of a worker's, without its traceback
            held, or_else = "indices", ", or pass keep_bins=False where a bin is a batch by itself"
            if self.plan.order.traits.cuts_samples:
                held, or_else = "Piece(sample, start, stop)", ""
            raise IndexPlanError(
                f"dataset must take a bin, a list of {held}, as the plan's order deals bins; got "
                f"{shown(said)} of {type(self.dataset).__name__}; wrap it in indexplan_torch.Bins"
                f"{or_else}"
            ) from error

    def set_epoch(self, epoch: int) -> None:
        """Set which pass comes next: sub-epoch `epoch % sub_epochs` of `epoch // sub_epochs`."""
        self.feed.set_epoch(epoch)

    def set_epoch_and_sub_epoch(self, epoch: int, sub_epoch: int) -> None:
        """Set which pass comes next; `sub_epoch` counts modulo the plan's sub_epochs."""
        self.feed.set_epoch_and_sub_epoch(epoch, sub_epoch)

    @property
    def cursor(self) -> Cursor:
        """Where the run stands, in batches the loop has received; the same on all ranks."""
        return self.feed.cursor()

    @property
    def step_size(self) -> int:
        """The valid units over all ranks of the batch that the loop received last.

        What a loss is weighted by: DDP's mean over ranks of `world_size / step_size` times each
        rank's summed loss is the mean over the step's units.
        """
        return self.feed.step_size()

    def step_total(self, column: Any = None) -> int:
        """Return the sum of a column over all ranks' samples of the batch received last.

        What a loss over tokens is divided by, as ranks' batches hold different numbers of them:
        DDP's mean over ranks of `world_size / step_total(tokens)` times each rank's summed loss is
        the mean over the step's tokens.

        Parameters
        ----------
        column : array_like of int, shape (num_samples,), optional
            A number for each sample of the dataset, such as its tokens; None counts samples.

        Raises
        ------
        IndexPlanError
            Outside a loop, or as `Plan.step_total` does.
        """
        cure = "plan.step_total(column, epoch, sub_epoch, step=...) tells of any step"
        received = self.feed.received("step_total", cure)
        return received.plan.step_total(column, *received.where, step=received.step)

    @property
    def groups(self) -> Any:
        """The group of each sample of the batch that the loop received last: its source or class.

        An array, int64, shape (samples,): places in `plan.order.group_names`; -1 for a sample in
        none. By it, the losses of a batch are logged by source: `losses[loader.groups == 0]`. Where
        the plan deals bins, these are their samples one after another, as in `join`'s "seq_lens".

        Raises
        ------
        IndexPlanError
            Outside a loop, or if the plan's order has no groups.
        """
        cure = "plan.order.group_of(batch) tells of any batch"
        return groups_of(self.feed.received("groups", cure))

    @property
    def shares(self) -> dict[str, float]:
        """The share of each group that the order aims at in the step received last, by name.

        What the weights of a mixture come to there, in whichever of their phases it is. They are of
        the step's samples; of a mixture of bins, they are of its bins (`plan.order.shares_of`), and
        samples come in other shares where one source's bins are larger than another's.

        Raises
        ------
        IndexPlanError
            As for `groups`.
        """
        cure = "plan.order.group_shares(epoch, start, stop) tells of any positions"
        return shares_of(self.feed.received("shares", cure))

    def state_dict(self) -> dict[str, Any]:
        """Return where the run stands, in batches the loop has received; the same on all ranks."""
        return self.feed.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where a run stood, under whatever world_size, batch size and workers are now."""
        self.feed.load_state_dict(state)


def handed_over(loader: PlanLoader, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield what a wrapper of a loader looks ahead to, counting each batch when the loop gets it.

    The wrapper has fetched the next from the loader by then, which has counted that.
    """
    for num_received, batch in enumerate(batches, 1):
        begun = loader.feed.current
        if begun is not None:
            begun.step = begun.first + num_received
        yield batch


def _check_dataset(dataset: Any, feed: Feed) -> None:
    """Refuse a dataset that is not read by index, or has other samples than the order."""
    order = feed.plan.order
    if isinstance(dataset, Bins):
        if not (order.deals_bins and feed.form.keep_bins):
            got = f"{order.algorithm}, with keep_bins={feed.form.keep_bins}"
            raise IndexPlanError(
                f"a dataset of Bins needs a plan that deals bins, and keeps them; got {got}; leave "
                "keep_bins out, or use the dataset inside"
            )
        dataset = dataset.dataset
    check_by_index(dataset)
    if not hasattr(dataset, "__len__"):
        return  # some datasets cannot tell
    try:
        length = len(dataset)
    except Exception as error:  # whatever a dataset of somebody's raises
        raise IndexPlanError(
            f"dataset must tell how many samples it has, if it has __len__; got {shown(error)} of "
            f"{type(dataset).__name__}; mend that, or leave __len__ out"
        ) from error
    if length != order.num_samples:
        raise IndexPlanError(
            f"dataset must hold {order.num_samples} samples, as the plan's order; got {length}; "
            f"use an order of {length} samples"
        )


def _ours(batch_sampler: Any) -> PlanBatchSampler:
    """Return the PlanBatchSampler inside a trainer's wrappers."""
    inner = batch_sampler
    while inner is not None and not isinstance(inner, PlanBatchSampler):
        inner = getattr(inner, "_batch_sampler", None) or getattr(inner, "batch_sampler", None)
    if inner is None:
        raise IndexPlanError(
            f"batch_sampler must be left out, as the plan makes it; got {shown(batch_sampler)}; "
            "use torch's DataLoader for another one"
        )
    return inner
