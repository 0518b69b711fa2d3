"""Samplers that yield a plan's indices, in a form that trainers don't change.

Trainers recognise a sampler that knows its rank by the type `DistributedSampler`, call `set_epoch`
on `loader.sampler` or `loader.batch_sampler`, and make batch samplers again as
`cls(sampler, batch_size=..., drop_last=...)`. These samplers share a `Run`, which a `sampler` of
ours brings along; around another one they would read other data, and are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.utils.data import BatchSampler, DistributedSampler, Sampler

from indexplan import Cursor, IndexPlanError, Plan
from indexplan.errors import counted, invalid, shown
from indexplan.keywords import named
from indexplan_torch.counting import dealt_out, refuse_under
from indexplan_torch.drawn import Drawn, DrawnUnits, requests
from indexplan_torch.items import Form, Item, num_phases
from indexplan_torch.run import Run
from indexplan_torch.running import Given


class NoStateError(IndexPlanError, AttributeError):
    """Raised where a sampler is asked for a state, which `hasattr` sees as a missing attribute."""


class _RunSampler(DistributedSampler[Any]):
    """The interface that all samplers of a run offer users and trainers."""

    run: Run
    shuffle = False  # the plan has shuffled already
    seed = 0
    drop_last = False

    def __repr__(self) -> str:
        return self.run.in_words(self)

    @property
    def num_replicas(self) -> int:  # type: ignore[override]
        """The running world size, under DistributedSampler's name for it."""
        return self.run.running()[0].world_size or 1

    @property
    def rank(self) -> int:  # type: ignore[override]
        """The running rank."""
        return self.run.running()[1]

    @property
    def epoch(self) -> int:  # type: ignore[override]
        """The number of the coming pass, counted in sub-epochs over the whole run."""
        return self.run.number

    def set_epoch(self, epoch: int) -> None:
        """Set the next pass: sub-epoch `epoch % sub_epochs` of epoch `epoch // sub_epochs`."""
        refuse_under("composer.trainer.trainer", "refuse_counting_steps", self.run)
        refuse_under("accelerate.data_loader", "refuse_dealing_out", self.run)
        self.run.set_epoch(epoch)

    @property
    def cursor(self) -> Cursor:
        """Where the run stands, counted in batches that the loop received; equal on all ranks.

        Raises
        ------
        IndexPlanError
            If a pass has begun that a sampler hands out by itself, and no other was named since:
            it knows what was drawn of it, not what the loop has received.
        """
        return self.run.cursor()

    def __getattr__(self, name: str) -> Any:
        # Without this method torchdata asks our iterators alone, which know what each batch needs.
        if name == "state_dict":
            raise NoStateError(
                "a sampler",
                "must not be asked for a state, as it knows what was drawn, not what the loop has "
                "received",
                f"state_dict of {type(self).__name__}",
                "use the state_dict of PlanLoader or of torchdata's StatefulDataLoader",
            )
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from a state; world size and batch size may have changed."""
        self.run.load_state_dict(state)


class PlanView(_RunSampler):
    """What `PlanLoader.sampler` returns: a DistributedSampler on which trainers set the epoch.

    From its type, trainers know that the data is already split among the ranks.

    Examples
    --------
    >>> import indexplan as ip
    >>> from indexplan_torch import PlanLoader
    >>> loader = PlanLoader(range(10), ip.Plan(ip.Sequential(10), batch_size=4))
    >>> loader.sampler.set_epoch(3)  # as scripts and trainers do
    >>> loader.cursor.epoch
    3
    """

    def __init__(self, run: Run, *, of_loader: bool = False) -> None:
        self.run, self.of_loader = run, of_loader

    def set_epoch(self, epoch: int) -> None:
        """Set the next pass, by the number that a trainer gives it, or a script to a loader's."""
        refuse_under("accelerate.data_loader", "refuse_dealing_out", self.run)
        self.run.set_epoch_from_trainer(epoch, perhaps=self.of_loader)

    @property
    def generator(self) -> None:
        """Raise: `accelerator.prepare` reads this before it splits batches among the ranks."""
        raise dealt_out("a plan's sampler")

    def __len__(self) -> int:
        """Return how many units the rank reads in the coming sub-epoch, including padding."""
        refuse_under("transformers.trainer", "refuse_counting", self.run)
        plan, rank = self.run.running()
        if self.run.number in self.run.over:
            return 0
        sizes, again = plan.batch_sizes(*self.run.where, rank=rank), self.run.given.again
        dealt = self.run.steps(self.run.number).start % again
        return int(sizes.sum()) * again - dealt * int(sizes[:1].sum())

    def __iter__(self) -> Iterator[Any]:
        """Yield the rank's indices one by one, or its bins if the plan's order has bins."""
        refuse_under("accelerate.data_loader", "refuse_dealing_out", self.run)
        refuse_under("torchdata.nodes.adapters", "refuse_counting_draws")
        if self.run.number not in self.run.over:
            for batch in requests(self.run, self.run.number, Form()):
                yield from batch


@named
class PlanBatchSampler(BatchSampler, _RunSampler):
    """A batch sampler that yields this rank's batches: `DataLoader(dataset, batch_sampler=...)`.

    Use it with torchdata's StatefulDataLoader, or with a DataLoader that you configure yourself.
    `PlanLoader` is shorter; use it under trainers.

    Parameters
    ----------
    plan : Plan
        Without a world_size, or with the running one.
    rank, world_size : int, optional
        If you leave them out, `discover` finds them at first use.
    mesh : torch.distributed.device_mesh.DeviceMesh, optional
        A mesh, or its data-parallel dimension, instead of rank and world_size.
    nested : bool, default False
        Yield each batch as a list of inner batches, for a dataset that takes lists of indices.
    item : callable, optional
        The dataset gets item(index, about) instead of the index: `About` has the epoch, copy and so
        on of each read, and the phase's parameters. It also reaches persistent workers. If the
        plan's order cuts samples, index is a `Piece`, and the dataset must cut the sample itself.
    as_array : bool, default False
        Yield int64 arrays, for datasets with `__getitems__` that take them.
    keep_bins : bool, default True
        If the plan's order has bins, yield a list of bins, each a list of indices (wrap the
        dataset in `Bins`), or an array under `as_array`. If the order cuts samples, each index is a
        `Piece`, or a row of an array of shape (samples, 3). Pass False to get the samples of all
        bins in one list: use it with batch_size 1, for bins that are whole batches, like those of
        `ClassBatches`.
    partial : bool, default False
        Whether your loop leaves passes early on purpose. If not, starting a later pass after one
        that was left early is an error, because the rest of its samples would be lost.
    compare : bool, default True
        Whether ranks of a process group check that they all have the same plan when they start
        their first pass. Pass False for a loader that only some ranks read.
    again : int, default 1
        Repeat each step this many times in a row, for loops that train several times on what they
        generate from it: the loop's step k reads the plan's step k // again. It needs a plan with
        global_batch_size. Lengths and states count the loop's steps, so a run can resume between
        two repeats of a step. It must then have the same global batch, and a changed `again` must
        allow the same fraction of the repeats. `cursor` names the plan's step.

    Other Parameters
    ----------------
    batch_size, drop_last, sampler
        For Lightning, which rebuilds a PlanLoader's batch sampler to predict. Leave them out.

    Raises
    ------
    IndexPlanError
        If an argument breaks its rule; if a trainer rebuilds it around a sampler of its own; or
        (at first use, or earlier) if the plan's world_size is not the running one.

    Examples
    --------
    >>> import indexplan as ip
    >>> from indexplan_torch import PlanBatchSampler
    >>> plan = ip.Plan(ip.Sequential(12), batch_size=3)
    >>> list(PlanBatchSampler(plan, rank=1, world_size=2))
    [[3, 4, 5], [9, 10, 11]]
    >>> plan = ip.Plan(ip.Sequential(12), batch_size=(2, 3))  # two inner batches of three
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
        again: int = 1,
        sampler: Any = None,
    ) -> None:
        injected = sampler if isinstance(plan, Plan) else plan
        run = getattr(injected, "run", None)  # of our own, as Lightning makes it again to predict
        if run is None and isinstance(injected, Sampler):
            raise IndexPlanError(
                "a plan's batch sampler",
                "must not be made again around a trainer's own sampler",
                type(injected).__name__,
                "pass the trainer a PlanLoader; in place of Lightning's overfit_batches, one whose "
                "plan has few samples, as by ip.Subset(ip.Shuffle(16), range(16), len(dataset))",
            )
        if run is None:
            if not isinstance(plan, Plan) or batch_size is not None or drop_last is not False:
                raise IndexPlanError(
                    "PlanBatchSampler",
                    "must be given a plan, and no batch_size or drop_last",
                    f"{type(plan).__name__}, batch_size={shown(batch_size)}, drop_last="
                    f"{shown(drop_last)}",
                    "these belong to the plan: indexplan.Plan(..., batch_size=...)",
                )
            given = Given.of(
                plan,
                rank=rank,
                world_size=world_size,
                mesh=mesh,
                form=Form(nested, item, as_array, keep_bins),
                partial=partial,
                compare=compare,
                again=again,
            )
            run = Run(given)
        self.run = run
        self.sampler = PlanView(run)

    @property
    def batch_size(self) -> int:  # type: ignore[override]
        """The size of the largest batch in the coming sub-epoch, in units."""
        return self.run.batch_size

    def __len__(self) -> int:
        """Return the number of steps in the coming sub-epoch, including finished ones."""
        return self.run.length()

    def __iter__(self) -> Iterator[Any]:
        """Yield one batch for each step; nothing happens until the first is requested."""
        return Drawn(self.run)


@named
class PlanSampler(PlanView):
    """A sampler that yields this rank's indices one by one, for loaders that make the batches.

    Use it if your code needs `DataLoader(sampler=..., batch_size=...)`, with the plan's batch_size;
    otherwise use `PlanLoader`. The loader makes the plan's batches only if all are full and equally
    large, so other plans are refused. If the plan's order has bins, it yields bins one by one, each
    a list of indices.

    Parameters
    ----------
    plan : Plan
        With remainder "drop", "pad" or "carry", and a single batch_size; a nested one is
        flattened.
    rank, world_size, mesh, partial, compare
        As for `PlanBatchSampler`.

    Raises
    ------
    IndexPlanError
        If not all of the plan's batches are full and equally large, or an argument breaks its rule.

    Examples
    --------
    >>> import indexplan as ip
    >>> from indexplan_torch import PlanSampler
    >>> plan = ip.Plan(ip.Sequential(10), batch_size=2, remainder="drop")
    >>> list(PlanSampler(plan, rank=1, world_size=2))
    [2, 3, 6, 7]
    """

    made = False  # any in this process, so that one may have been replaced to overfit

    def __init__(
        self,
        plan: Plan,
        *,
        rank: int | None = None,
        world_size: int | None = None,
        mesh: Any = None,
        partial: bool = False,
        compare: bool = True,
    ) -> None:
        if not isinstance(plan, Plan):
            raise invalid(
                "plan",
                "an indexplan.Plan",
                plan,
                "pass indexplan.Plan(order, batch_size=..., remainder='pad')",
            )
        PlanSampler.made = True
        ranks: dict[str, Any] = {"rank": rank, "world_size": world_size, "mesh": mesh}
        super().__init__(Run(Given.of(plan, **ranks, partial=partial, compare=compare)))
        full = plan.remainder in ("drop", "pad", "carry")
        if not full or num_phases(plan) > 1 or plan.batch_size is None:
            raise IndexPlanError(
                "plan",
                "must have batches that are all full and equal, for PlanSampler",
                f"remainder={plan.remainder!r}, {counted(num_phases(plan), 'phase')}, "
                f"batch_size={plan.batch_size}",
                "use PlanLoader, or remainder='pad' and one batch_size",
            )

    def set_epoch(self, epoch: int) -> None:
        """Set the next pass: sub-epoch `epoch % sub_epochs` of epoch `epoch // sub_epochs`."""
        _RunSampler.set_epoch(self, epoch)  # of a user: a view's is of a trainer

    def __iter__(self) -> Iterator[Any]:
        """Yield the rank's indices, or bins, in the remaining steps, one by one."""
        return DrawnUnits(self.run)
