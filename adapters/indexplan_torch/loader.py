"""PlanLoader: a DataLoader that yields a plan's batches, in plain loops and under trainers."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np
import torch
from torch.utils.data import DataLoader

from indexplan import Cursor, IndexPlanError, Plan
from indexplan.errors import invalid, shown
from indexplan.keywords import PLACES, unknown
from indexplan_torch.arguments import check_by_index, check_length, is_bins, loaded, run_of
from indexplan_torch.counting import dealt_out, refuse_under
from indexplan_torch.cuts import check_received
from indexplan_torch.items import Item
from indexplan_torch.run import Run
from indexplan_torch.samplers import PlanBatchSampler, PlanView
from indexplan_torch.seeding import SeedWorker

if TYPE_CHECKING:
    from typing import Unpack

    from indexplan import Ledger

_THE_PLANS_OWN = {"batch_size": 1, "shuffle": None, "sampler": None, "drop_last": False}


class Options(TypedDict, total=False):
    """DataLoader's options, except those that belong to the plan."""

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


def check_options(kind: type, given: Mapping[str, Any]) -> None:
    """Refuse keywords that are neither ours nor DataLoader's, and say where they belong."""
    if given.keys() <= Options.__annotations__.keys():
        return
    theirs = {*signature(DataLoader.__init__).parameters} - {"dataset", "batch_sampler"}
    for name in given.keys() - theirs:
        ours = [
            each for each in signature(kind).parameters if each not in ("batch_sampler", "options")
        ]
        raise unknown(kind.__name__, name, given[name], [*ours, *Options.__annotations__])


def refuse_the_plans_own(given: Mapping[str, Any]) -> None:
    """Refuse what DataLoader takes and a plan says, and say how."""
    for name in _THE_PLANS_OWN.keys() & given.keys():
        raise invalid(name, "left out, as it belongs to the plan", given[name], PLACES[name])


class PlanLoader(DataLoader[Any]):
    """A DataLoader that yields this rank's batches of a plan, in a plain loop or under a trainer.

    Use it in place of a DataLoader with a DistributedSampler. It finds the rank and the number of
    ranks automatically. Its state counts the batches that your loop has received, not those that
    workers have prefetched. If you iterate again without `set_epoch`, it reads the next sub-epoch.

    Parameters
    ----------
    dataset : torch.utils.data.Dataset
        Map-style, with as many samples as the plan's order.
    plan : Plan
        Leave out its world_size, and the loader takes the running one. If you set it, it must equal
        the running one.
    rank, world_size, mesh, nested, item, as_array, keep_bins, partial, compare, again
        As for `PlanBatchSampler`.
    evaluation : bool, default False
        For data that is read once and not trained on, under a plan of remainder "spread": any
        number of samples, ranks and batch size. A rank gets no batch in a step of which it reads
        nothing, so ranks may have different numbers of batches, and `len` is this rank's own.
        Gather results after the last batch, not after each. A state is that of a whole pass.
    ledger : str, path-like, Ledger or False, optional
        The file in which the run records what it has read, or a `Ledger`, which can also check
        the dataset's identity. The first rank writes it: when a state is saved, at the end of a
        pass, and when the loop or the process ends. A state holds the hash of the ledger's last
        line. A run that loads the state continues from that line, and what was recorded after it
        becomes void. With a ledger, each pass must be read once and in sequence, and no other
        loader of the process may keep the same ledger. If you pass none, a state that was saved
        with a ledger is refused; False accepts it, and stops recording for good.
    **options
        Options of DataLoader: num_workers, collate_fn, persistent_workers and so on. The default
        `worker_init_fn` gives every rank and worker its own random stream.

    Other Parameters
    ----------------
    batch_sampler
        For trainers that rebuild loaders. Leave it out.

    Raises
    ------
    IndexPlanError
        If the dataset is not map-style, doesn't have as many samples as the plan's order, or
        concatenates datasets in a different sequence from the sources of the plan's mixture; if an
        option belongs to the plan (batch_size, shuffle, sampler, drop_last), in_order is not True,
        or an argument breaks its rule.

    Examples
    --------
    >>> import indexplan as ip
    >>> from indexplan_torch import PlanLoader
    >>> plan = ip.Plan(ip.Sequential(10), batch_size=4)
    >>> loader = PlanLoader(range(10), plan)
    >>> [batch.tolist() for batch in loader]
    [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9]]

    Stop after the first step and resume on two ranks. This is the first of them:

    >>> loader = PlanLoader(range(10), plan)
    >>> first = next(iter(loader))
    >>> resumed = PlanLoader(range(10), plan, rank=0, world_size=2)
    >>> resumed.load_state_dict(loader.state_dict())
    >>> [batch.tolist() for batch in resumed]  # the other rank reads 7, 8 and 9
    [[4, 5, 6]]

    With a ledger, you can look up later which steps of the run read a sample:

    >>> loader = PlanLoader(range(10), plan, ledger="run.ledger")
    >>> for epoch in range(2):
    ...     for batch in loader:
    ...         pass
    >>> ip.Ledger("run.ledger").reads(5)
    [Read(step=1, rank=0, epoch=0, void=False), Read(step=4, rank=0, epoch=1, void=False)]
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
        again: int = 1,
        evaluation: bool = False,
        ledger: str | os.PathLike[str] | Ledger | Literal[False] | None = None,
        batch_sampler: Any = None,
        **options: Unpack[Options],
    ) -> None:
        if isinstance(dataset, Plan) and not isinstance(plan, Plan):
            raise IndexPlanError(
                "dataset",
                "must come before the plan",
                f"PlanLoader(Plan, {type(plan).__name__})",
                "use PlanLoader(dataset, plan)",
            )
        given: dict[str, Any] = {**options}  # a trainer may pass more than the type allows
        check_options(PlanLoader, given)
        if batch_sampler is None:
            refuse_the_plans_own(given)
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
                again=again,
            )
        else:  # a trainer rebuilds the loader around its wrapper of our batch sampler
            given = {k: v for k, v in given.items() if k not in _THE_PLANS_OWN}
        run = run_of(batch_sampler)
        if run is None or run.given.plan != plan:
            cure = "leave it out; torch's DataLoader takes a batch sampler of your own"
            raise invalid("batch_sampler", "left out, as the plan makes it", batch_sampler, cure)
        self.run: Run = run
        if given.get("in_order", True) is not True:
            rule = "True, as a state counts batches, and cannot tell which of them a slow worker"
            raise invalid("in_order", f"{rule} still has", given["in_order"], "leave it out")
        _check_dataset(dataset, run)
        run.given = replace(run.given, counted=True, evaluation=run.given.evaluation or evaluation)
        if ledger is not None and not run.recorder:
            run.keep_ledger(ledger)
        self.plan = plan  # named like the parameter, so that a trainer can make the loader again
        given.setdefault("worker_init_fn", None)
        if given["worker_init_fn"] is None or isinstance(given["worker_init_fn"], SeedWorker):
            given["worker_init_fn"] = SeedWorker(self.run)
        super().__init__(dataset, batch_sampler=batch_sampler, **given)

    def __repr__(self) -> str:
        return self.run.in_words(self)

    @property
    def sampler(self) -> Any:
        """An instance of DistributedSampler, on which trainers call `set_epoch`."""
        return PlanView(self.run, of_loader=True)

    @sampler.setter
    def sampler(self, sampler: Any) -> None:
        """Ignore the sampler that DataLoader sets here when it has a batch sampler."""

    @property
    def batch_size(self) -> int:
        """The size of the largest batch in the coming sub-epoch, in units."""
        return self.run.batch_size

    @batch_size.setter
    def batch_size(self, size: Any) -> None:
        """Ignore the size that DataLoader sets here when it has a batch sampler."""

    @property
    def _is_accelerate_prepared(self) -> bool:
        """Raise: `accelerator.prepare` reads this before it splits batches among the ranks."""
        raise dealt_out("a PlanLoader")

    @property
    def __array__(self) -> Any:
        """Raise: a loader is no array. Keras reads this before anything else of a loader."""
        refuse_under("keras", "refuse_drawing_ahead")
        raise AttributeError(f"{type(self).__name__} has no attribute '__array__'")

    def __len__(self) -> int:
        """Return the number of steps in the coming sub-epoch, including finished ones."""
        return self.run.length()

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]  # torch's is a class
        """Yield the batches of the remaining steps; workers start when the first is requested.

        This is a generator, so a trainer may call `iter` before it sets the epoch.

        Raises
        ------
        IndexPlanError
            If the dataset has more or fewer samples than when the loader was made; if an earlier
            pass was left; or if the run can't continue in its ledger.
        """
        moved = True
        while moved:  # to another plan, or to where a state was saved in the pass
            moved = yield from self._pass()

    def _pass(self) -> Generator[Any, None, bool]:
        """Yield what is left of a pass; return whether the loop has moved to another plan in it."""
        check_length(self.dataset, self.run.plan.order, again=True)
        refuse_under("ray.train.torch.train_loop_utils", "refuse_fetching_ahead")
        begun = self.run.begin()
        if not begun.steps:
            return False  # starts no workers, and draws no seed that an uninterrupted run would not
        recorder = self.run.recorder
        random = torch.get_rng_state() if begun.step else None
        sharded = loaded("sharded", "sharded")
        dataset = None if sharded is None else sharded(self.dataset)
        if dataset is not None:
            dataset.expect_run(self.run, self.num_workers)
        batches = super().__iter__()
        if dataset is not None:
            dataset.follow_run(self.run)  # in a thread: after workers are forked
        if random is not None:  # torch drew a seed here, which the stopped run did not
            torch.set_rng_state(random)
        step = begun.steps.start  # this loader's own count: its wrapper may prefetch
        try:
            for batch in self._read(batches):
                if recorder:
                    recorder.refuse_followed()
                step += 1
                begun.step += 1
                check_received(begun, step)
                if dataset is not None:
                    dataset.heard()
                yield batch
                if not self.run.goes_on(begun):  # what workers have drawn ahead is dropped
                    return begun.number == self.run.number
        except GeneratorExit:  # the loop breaks; an error may be this rank's alone
            self.run.record(begun)
            raise
        if begun.finished:
            self.run.record(begun)
        check_received(begun, step, ended=True)
        if dataset is not None:
            dataset.heard()
        return False

    def _read(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Yield batches; explain the error if a dataset doesn't take the plan's bins (lists)."""
        try:
            yield from batches
        except TypeError as error:
            bins = self.plan.order.deals_bins and self.run.given.form.keep_bins
            said = str(error).rstrip().rpartition("\n")[2]  # of a worker's, without its traceback
            if not bins or is_bins(self.dataset) or "list" not in said:
                raise
            held, or_else = "indices", ", or pass keep_bins=False where a bin is a batch by itself"
            if self.plan.order.traits.cuts_samples:
                held, or_else = "Piece(sample, start, stop)", ""
            raise IndexPlanError(
                "dataset",
                f"must take a bin, a list of {held}, as the plan's order deals bins",
                f"{shown(said)} of {type(self.dataset).__name__}",
                f"wrap it in indexplan_torch.Bins{or_else}",
            ) from error

    def set_epoch(self, epoch: int) -> None:
        """Set the next pass: sub-epoch `epoch % sub_epochs` of epoch `epoch // sub_epochs`."""
        self.run.set_epoch(epoch)

    def move(self, plan: Plan) -> None:
        """From the next step on, read another plan, which continues where the loop stands.

        Use it to change a run's weights, batch size or schedule, or to leave samples out, at any
        step: in the middle of a loop, the loop reads the other plan's batches next, and what
        workers have prefetched is dropped. Call it on all ranks at the same step, with the same
        plan. A ledger records it. A trainer that has fixed how many steps a pass has, as Lightning
        and HF Trainer do when it begins, needs a plan with as many, or a move between two passes.

        Parameters
        ----------
        plan : Plan
            Of the same order, or of one that continues it (as `Order.continues` says), and with as
            many sub_epochs. If it was resumed past the place where the loop stands, the run skips
            what lies between; past the end of the pass, the loop ends, and the next one reads
            from there. An earlier start is not looked at.

        Raises
        ------
        IndexPlanError
            If the plan can't continue where the loop stands, has another world size than the
            running one, or can't continue a step between its repeats (see `again`); if an earlier
            pass was left early; or at the next step, if ranks have different plans, or moved at
            different steps.

        Examples
        --------
        >>> import indexplan as ip
        >>> from indexplan_torch import PlanLoader
        >>> plan = ip.Plan(ip.Sequential(10), batch_size=2)
        >>> loader = PlanLoader(range(10), plan)
        >>> for number, batch in enumerate(loader, 1):
        ...     print(batch.tolist())
        ...     if number == 2:
        ...         loader.move(plan.replace(batch_size=3))
        [0, 1]
        [2, 3]
        [4, 5, 6]
        [7, 8, 9]
        """
        given: Any = plan
        if not isinstance(given, Plan):
            cure = "pass one of the same order, such as plan.replace(batch_size=...)"
            raise invalid("plan", "an indexplan.Plan", plan, cure)
        check_length(self.dataset, plan.order, again=True)
        self.run.move(plan, jump=True)
        self.plan = plan

    @property
    def cursor(self) -> Cursor:
        """Where the run stands, counted in batches that the loop received; equal on all ranks."""
        return self.run.cursor()

    @property
    def step_size(self) -> int:
        """How many units all ranks together read in the last step received, without padding.

        Use it to weight losses: if each rank's loss is `world_size / step_size` times the sum over
        its units, then DDP's mean over ranks is the mean over the step's units.
        """
        cure = "use plan.step_size(epoch, sub_epoch, step=...) for any step"
        received = self.run.received("step_size", cure)
        return received.plan.step_size(*received.where, step=received.step)

    def step_total(self, column: Any = None) -> int:
        """Return the sum of a column over all ranks' samples in the last step received.

        Ranks' batches hold different numbers of tokens, so divide a loss over tokens by this sum:
        if each rank's loss is `world_size / step_total(tokens)` times the sum over its tokens, then
        DDP's mean over ranks is the mean over the step's tokens.

        Parameters
        ----------
        column : array_like of int, shape (num_samples,), optional
            A number for each sample of the dataset, such as its number of tokens. None counts
            samples.

        Raises
        ------
        IndexPlanError
            Before the loop has received a batch, or as `Plan.step_total` does.
        """
        cure = "use plan.step_total(column, epoch, sub_epoch, step=...) for any step"
        received = self.run.received("step_total", cure)
        return received.plan.step_total(column, *received.where, step=received.step)

    @property
    def groups(self) -> Any:
        """The group (source or class) of each sample in the last batch received.

        An int64 array of shape (samples,): indices into `plan.order.group_names`, or -1 for a
        sample in no group. Use it to log losses by source: `losses[loader.groups == 0]`. If the
        plan has bins, their samples are concatenated, as in `join`'s "seq_lens".

        Raises
        ------
        IndexPlanError
            Before the loop has received a batch, or if the plan's order has no groups.
        """
        received = self.run.received("groups", "use plan.order.group_of(batch) for any batch")
        where = {"step": received.step, "rank": received.rank}
        return received.plan.order.group_of(received.plan.batch(*received.where, **where))

    @property
    def shares(self) -> dict[str, float]:
        """The share of each group, by name, that the order aims at in the last step received.

        For a mixture these are the weights of that step's phase, as shares of the step's samples.
        For a mixture of bins they are shares of its bins (see `plan.order.shares_of`), so the
        shares of samples differ if one source has larger bins than another.

        Raises
        ------
        IndexPlanError
            As for `groups`.
        """
        cure = "use plan.order.group_shares(epoch, start, stop) for any positions"
        received = self.run.received("shares", cure)
        plan, order = received.plan, received.plan.order
        size = left = plan.step_size(*received.where, step=received.step)
        place = plan.cursor(*received.where, step=received.step)
        epoch, position = place.epoch, place.position
        counts = np.zeros(len(order.group_names))
        while left:  # a step may cross epochs
            units = min(left, order.num_units(epoch) - position)
            if units:
                counts += order.group_shares(epoch, position, position + units) * units
            epoch, position, left = epoch + 1, 0, left - units
        return dict(zip(order.group_names, (counts / size).tolist(), strict=True))

    def state_dict(self) -> dict[str, Any]:
        """Return where the run stands, by the batches the loop received; equal on all ranks.

        With a ledger, it is equal if all ranks save at the same steps; else keep the first rank's,
        which writes the ledger.
        """
        return self.run.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from a state; world size, batch size and number of workers may have changed.

        Inside a loop, the next step is the state's; a loop over another pass ends.
        """
        self.run.load_state_dict(state)


def handed_over(
    loader: PlanLoader, wrapped: Callable[[], Iterator[Any]], left: Callable[[], None] | None = None
) -> Iterator[Any]:
    """Yield the batches of a wrapper that prefetches, and count each when the loop gets it.

    By then the wrapper has fetched the next batch too, and the loader has counted that one. Where
    the loop moves to another plan, or loads a state, the wrapper drops that batch: it is asked for
    others, after `left` is called.
    """
    run, moved = loader.run, True
    while moved:
        moved, batches = False, wrapped()
        try:
            for num_received, batch in enumerate(batches, 1):
                begun = run.reading
                if begun is not None:
                    begun.step = begun.steps.start + num_received
                yield batch
                if begun is not None and not run.goes_on(begun):
                    moved = begun.number == run.number
                    break
        finally:
            run.record()
        if moved:
            batches.close()  # type: ignore[attr-defined]  # a generator's
            if left is not None:
                left()


def _check_dataset(dataset: Any, run: Run) -> None:
    """Refuse a dataset that is not read by index, or doesn't match the order's samples."""
    order = run.plan.order
    if is_bins(dataset):
        if not (order.deals_bins and run.given.form.keep_bins):
            got = f"{order.algorithm}, with keep_bins={run.given.form.keep_bins}"
            raise IndexPlanError(
                "a dataset of Bins",
                "needs a plan whose order deals bins, and keep_bins=True",
                got,
                "leave keep_bins out, or pass the dataset without Bins around it",
            )
        dataset = dataset.dataset
    check_by_index(dataset)
    start = run.plan.start
    check_length(dataset, order, again=(start.epoch, start.position) != (0, 0))
    if hasattr(dataset, "__len__"):
        from indexplan_torch.layout import check_sources

        check_sources(dataset, order)
