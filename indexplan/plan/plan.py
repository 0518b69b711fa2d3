"""The plan: an order divided among ranks and steps, with the methods that you query it by."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from indexplan.canonical import canonical_json, parse_json_object
from indexplan.errors import integer, invalid
from indexplan.keywords import named
from indexplan.once import once
from indexplan.orders.base import Order
from indexplan.orders.columns import Column, Columns
from indexplan.partition.account import Account, account
from indexplan.partition.locate import Location
from indexplan.partition.phases import Phase, Size
from indexplan.partition.ranks import batch_sizes
from indexplan.partition.remainders import Remainder
from indexplan.partition.steps import Int64, Resume
from indexplan.plan import spec
from indexplan.plan.balance import Balance
from indexplan.plan.batch import Batch, draw_units, units_of
from indexplan.plan.cursor import Cursor, cursor_of
from indexplan.plan.draw import draw, take
from indexplan.plan.epochs import check_every_epoch_reads, different_epochs
from indexplan.plan.layout import Layout
from indexplan.plan.totals import step_total
from indexplan.seeds import check_epoch

if TYPE_CHECKING:
    from typing import Unpack


@named
@dataclass(frozen=True)
class Plan:
    """Which samples each rank reads at each step of each epoch.

    A plan divides an order among steps and ranks. Pass it to a loader, such as `PlanLoader`, or
    call `batch` yourself. It has no state: plans with equal fields are equal, and give the same
    answers on any machine. How long a method takes depends on what it returns, not on the dataset's
    size, the world size or the step. In all methods you can leave out `sub_epoch` if `sub_epochs`
    is 1, and a number out of range raises an `IndexPlanError` that names the range.

    Parameters
    ----------
    order : Order
        The sequence in which each epoch reads its units: samples, or bins of samples.
    world_size : int, optional
        Number of data-parallel ranks, 1 <= world_size < 2**31. If left out, it is open: a loader
        takes it from the process group, and everything that does not depend on it still works.
    batch_size : int, tuple of int or list of Phase
        Units per rank and step. A tuple nests: (5, 3) is 5 inner batches of 3, for gradient
        accumulation. A list of phases changes the size during the run.
    global_batch_size : int, tuple of int or list of Phase
        Units per step over all ranks, instead of `batch_size`: it stays the same for any
        world_size.
    sub_epochs : int, default 1
        Number of nearly equal parts to cut each epoch into, such as one for each checkpoint.
    remainder : {"spread", "drop", "pad", "carry"}, default "spread"
        What happens to units that do not fill a global batch. "spread": steps get smaller, and
        differ by at most one unit. "drop": no rank reads them; a plan of which an epoch would have
        no step is refused, unless a resume leaves little of it. "pad": the sub-epoch's
        first units fill up the last step. "carry": the next epoch's first units fill it up.
    balance : Balance, optional
        For samples of different lengths: divides the units of each step so that all ranks have
        nearly equal work.

    Raises
    ------
    IndexPlanError
        If a field breaks its rule; the message names the value, the rule and the cure.

    Examples
    --------
    >>> import indexplan as ip
    >>> plan = ip.Plan(ip.Shuffle(1_281_167), world_size=8, batch_size=256)
    >>> plan.steps(epoch=0).stop
    626
    >>> plan.batch(epoch=0, step=17, rank=2).shape
    (256,)
    """

    order: Order
    _: KW_ONLY
    world_size: int | None = None
    batch_size: Size | Sequence[Phase] | None = None
    global_batch_size: Size | Sequence[Phase] | None = None
    sub_epochs: int = 1
    remainder: Remainder = "spread"
    balance: Balance | None = None
    _resumed: Resume | None = None  # set by resume

    def __post_init__(self) -> None:
        vars(self).update(spec.normal(spec.given_of(self)))
        self._layout  # noqa: B018 (refuses fields that do not fit, and epochs without a step)

    @once
    def _layout(self) -> Layout:
        """The numbers that decide which rank reads which positions."""
        check_every_epoch_reads(self._divided)
        return self._divided

    @once
    def _divided(self) -> Layout:
        """The same, of a plan whose epochs may lack a step, as a resume may follow."""
        return spec.layout_of(spec.given_of(self))

    def __repr__(self) -> str:
        """Return the arguments that are not the defaults, and where the plan was resumed."""
        _, *others = fields(self)
        given = {each.name: getattr(self, each.name) for each in others if each.name[0] != "_"}
        default = {each.name: each.default for each in others}
        named = [f"{name}={value!r}" for name, value in given.items() if value != default[name]]
        text = f"Plan({', '.join([repr(self.order), *named])})"
        if (at := self._resumed) is None:
            return text
        return f"{text} resumed at epoch {at.epoch}, sub-epoch {at.sub_epoch}, step {at.step}"

    def steps(self, epoch: int, sub_epoch: int | None = None) -> range:
        """Return the unfinished steps of a sub-epoch, the same on all ranks.

        They start at 0, except in the sub-epoch in which the plan was resumed. There, steps keep
        their numbers, so `stop` is always the number of steps in the whole sub-epoch.

        Examples
        --------
        >>> import indexplan as ip
        >>> plan = ip.Plan(ip.Shuffle(1000), world_size=4, batch_size=16)
        >>> plan.steps(epoch=0)
        range(0, 16)
        >>> plan.resume(plan.cursor(epoch=2, step=7)).steps(epoch=2)
        range(7, 16)
        """
        steps = self._layout.steps(epoch, sub_epoch)
        return range(steps.first_step, steps.num_steps)

    def batch(self, epoch: int, sub_epoch: int | None = None, *, step: int, rank: int) -> Int64:
        """Return the indices that a rank reads in a step.

        Returns
        -------
        numpy.ndarray
            int64, shape (units,), or (samples,) where units are bins. Under "pad" the padded
            slots are the last ones.

        Examples
        --------
        >>> import indexplan as ip
        >>> ip.Plan(ip.Sequential(30), world_size=2, batch_size=4).batch(epoch=0, step=1, rank=1)
        array([12, 13, 14, 15])
        """
        return take(self.order, self._layout.batch_runs(epoch, sub_epoch, step, rank))

    def units(self, epoch: int, sub_epoch: int | None = None, *, step: int, rank: int) -> Batch:
        """Return a batch divided into its units: bins, parts of samples, inner batches.

        Returns
        -------
        indexplan.types.Batch
            `samples` is what `batch` returns, `offsets` is where each unit starts in it, and
            `spans` is which part of each sample is read, if the order cuts samples. `num_valid` is
            the number of units that are not padding, and `micro_batches` are the inner batches.

        Examples
        --------
        >>> import indexplan as ip
        >>> plan = ip.Plan(ip.DocumentWindows([5, 3, 9, 4], 10), world_size=2, batch_size=1)
        >>> batch = plan.units(epoch=0, step=0, rank=1)
        >>> batch.samples, batch.offsets, batch.spans.tolist()
        (array([2, 1, 3]), array([0, 3]), [[5, 9], [0, 3], [0, 4]])
        """
        return units_of(self._layout, epoch, sub_epoch, step, rank)

    def indices(
        self,
        epoch: int,
        sub_epoch: int | None = None,
        *,
        rank: int,
        start_step: int | None = None,
        stop_step: int | None = None,
    ) -> Int64:
        """Return all indices that a rank reads in several steps, by default in all unfinished ones.

        Parameters
        ----------
        start_step, stop_step : int, optional
            The steps [start_step, stop_step) of the sub-epoch.

        Returns
        -------
        numpy.ndarray
            int64, flat: the batches one after another.

        Examples
        --------
        >>> import indexplan as ip
        >>> plan = ip.Plan(ip.Sequential(30), world_size=3, batch_size=2)
        >>> plan.indices(epoch=0, rank=1, start_step=0, stop_step=3)
        array([ 2,  3,  8,  9, 14, 15])
        """
        layout = self._layout
        rank, steps = layout.rank(rank), layout.steps(epoch, sub_epoch)
        stretch = layout.stretch(steps, start_step, stop_step)
        return take(self.order, layout.runs(steps, rank, *stretch))

    def batch_sizes(
        self,
        epoch: int,
        sub_epoch: int | None = None,
        *,
        rank: int,
        start_step: int | None = None,
        stop_step: int | None = None,
    ) -> Int64:
        """Return the number of units in each of a rank's batches, padding included.

        Returns
        -------
        numpy.ndarray
            int64, shape (stop_step - start_step,).

        Examples
        --------
        >>> import indexplan as ip
        >>> ip.Plan(ip.Shuffle(11), world_size=2, batch_size=2).batch_sizes(epoch=0, rank=0)
        array([2, 2, 2])
        """
        layout = self._layout
        rank, steps = layout.rank(rank), layout.steps(epoch, sub_epoch)
        stretch = layout.stretch(steps, start_step, stop_step)
        return batch_sizes(steps, layout.world_size, rank, *stretch)

    @overload
    def batches(
        self,
        epoch: int,
        sub_epoch: int | None = None,
        *,
        rank: int,
        start_step: int | None = None,
        stop_step: int | None = None,
        units: Literal[False] = False,
    ) -> Iterator[Int64]: ...
    @overload
    def batches(
        self,
        epoch: int,
        sub_epoch: int | None = None,
        *,
        rank: int,
        start_step: int | None = None,
        stop_step: int | None = None,
        units: Literal[True],
    ) -> Iterator[Batch]: ...
    def batches(
        self,
        epoch: int,
        sub_epoch: int | None = None,
        *,
        rank: int,
        start_step: int | None = None,
        stop_step: int | None = None,
        units: bool = False,
    ) -> Iterator[Any]:
        """Return an iterator over a rank's batches: faster than `batch`, drawing many at once.

        Parameters
        ----------
        units : bool, default False
            Yield what `units` returns instead of what `batch` does.

        Yields
        ------
        numpy.ndarray or indexplan.types.Batch
            A batch for each step.

        Examples
        --------
        >>> import indexplan as ip
        >>> plan = ip.Plan(ip.Sequential(11), world_size=2, batch_size=2)
        >>> [batch.tolist() for batch in plan.batches(epoch=0, rank=1)]
        [[2, 3], [6, 7], [10]]
        """
        layout = self._layout
        rank, steps = layout.rank(rank), layout.steps(epoch, sub_epoch)
        drawing = draw_units if units else draw
        return drawing(layout, steps, rank, *layout.stretch(steps, start_step, stop_step))

    def step_size(self, epoch: int, sub_epoch: int | None = None, *, step: int) -> int:
        """Return how many units all ranks together read in a step, without padding.

        Use it to weight losses where batches differ in size.

        Examples
        --------
        >>> import indexplan as ip
        >>> plan = ip.Plan(ip.Shuffle(11), world_size=2, batch_size=2)
        >>> [plan.step_size(epoch=0, step=step) for step in range(3)]
        [4, 4, 3]
        """
        steps = self._layout.steps(epoch, sub_epoch)
        return steps.valid(*steps.interval(self._layout.step(steps, step)))

    def step_total(
        self, column: Any, epoch: int, sub_epoch: int | None = None, *, step: int
    ) -> int:
        """Return the sum of a column over all samples that all ranks read in a step.

        Where batches differ in tokens, divide a summed loss by it for a mean over tokens. Padding
        is left out; a sample that is read twice counts twice. It costs as much as drawing the
        step's global batch.

        Parameters
        ----------
        column : Column, array_like of int, shape (num_samples,), path or None
            An integer for each sample, such as its number of tokens. Each call copies a list, but
            not a Column or an array. None counts the samples in the step, or the parts of samples
            if the order cuts samples.

        Raises
        ------
        IndexPlanError
            If the column does not have an integer for each sample; if the sum does not fit an
            int64; or if the order cuts samples, because a sample's number cannot be divided among
            its parts. (Windows all have the same number of tokens: multiply `step_size` by it.)

        Examples
        --------
        >>> import indexplan as ip
        >>> order = ip.TokenBudget([3, 9, 4, 4, 8, 2], max_tokens=16, num_buckets=2)
        >>> plan = ip.Plan(order, world_size=2, batch_size=1)
        >>> [plan.step_total(order.lengths, epoch=0, step=step) for step in range(3)]
        [9, 12, 9]
        """
        return step_total(self._layout, column, epoch, sub_epoch, step)

    @overload
    def locate(self, index: int | np.integer[Any], epoch: int) -> Location[int]: ...
    @overload
    def locate(
        self, index: Sequence[int] | NDArray[np.integer[Any]], epoch: int
    ) -> Location[Int64]: ...
    def locate(self, index: ArrayLike, epoch: int) -> Location[Any]:
        """Return where a sample is first read in an epoch: the inverse of `batch`.

        Parameters
        ----------
        index : int, or array_like of int
            Samples, 0 <= index < num_samples.
        epoch : int
            The order's epoch. Under "carry" the step may belong to the epoch before.

        Returns
        -------
        Location
            Of ints, or of int64 arrays of the shape of `index`. All are -1 if no step of this plan
            reads the sample, because it is dropped or was read before the resume. Padded repeats
            are never returned.

        Examples
        --------
        >>> import indexplan as ip
        >>> plan = ip.Plan(ip.Shuffle(1000), world_size=4, batch_size=10)
        >>> where = plan.locate(123, epoch=2)
        >>> int(plan.batch(where.epoch, step=where.step, rank=where.rank)[where.slot])
        123
        """
        return self._layout.first_read(index, check_epoch(epoch))

    def locate_all(self, index: ArrayLike, epoch: int) -> tuple[Location[Int64], Int64]:
        """Return every place at which a sample is read in an epoch, for orders that repeat samples.

        Parameters
        ----------
        index : int, or array_like of int
            k samples, 0 <= index < num_samples.
        epoch : int
            The order's epoch. Under "carry" a step may belong to the epoch before.

        Returns
        -------
        places : Location
            Of int64 arrays, shape (reads,): the reads of the first sample in order of reading, then
            those of the second, and so on. Padded repeats are left out, and so are samples that are
            dropped or were read before a resume.
        offsets : numpy.ndarray
            int64, shape (k + 1,): [offsets[i], offsets[i + 1]) are the reads of sample i.

        Examples
        --------
        >>> import indexplan as ip
        >>> plan = ip.Plan(ip.Sequential(10), world_size=2, batch_size=2)
        >>> places, offsets = plan.locate_all([7, 2], epoch=0)
        >>> places.step, places.rank, offsets
        (array([2, 0]), array([0, 1]), array([0, 1, 2]))
        """
        return self._layout.all_reads(index, check_epoch(epoch))

    def account(self, epoch: int, sub_epoch: int | None = None) -> Account:
        """Count how many units of an epoch or sub-epoch are read, dropped or padded.

        Examples
        --------
        >>> import indexplan as ip
        >>> plan = ip.Plan(ip.Shuffle(1003), world_size=2, batch_size=50, remainder="drop")
        >>> plan.account(epoch=0).num_dropped
        3
        """
        epoch = check_epoch(epoch)
        self._layout.check_sized()
        chosen = range(self.sub_epochs)
        if sub_epoch is not None:
            cure = "leave it out for the whole epoch"
            sub_epoch = integer("sub_epoch", sub_epoch, 0, self.sub_epochs, cure)
            chosen = range(sub_epoch, sub_epoch + 1)
        return account(self._layout.partition, epoch, chosen)

    def cursor(self, epoch: int, sub_epoch: int | None = None, *, step: int) -> Cursor:
        """Return where a run stands after `step` finished steps of a sub-epoch; save it to resume.

        The end of a sub-epoch is the start of the next one. A sub-epoch without steps starts and
        ends at the same cursor, so a loop should count sub-epochs instead of comparing cursors.

        Parameters
        ----------
        step : int
            One of `steps`, or their `stop`.

        Examples
        --------
        >>> import indexplan as ip
        >>> plan = ip.Plan(ip.Shuffle(1000), world_size=8, batch_size=10)
        >>> cursor = plan.cursor(epoch=0, step=5)
        >>> cursor.position, plan.resume(cursor).steps(epoch=0).start
        (385, 5)
        """
        steps = self._layout.steps(epoch, sub_epoch)
        step = self._layout.edge(steps, "step", step)
        place = self._layout.partition.resume_after(steps, step)
        return cursor_of(self.order, place, self.sub_epochs)

    def cursor_at(self, place: int) -> Cursor:
        """Return where a run stands that has read all units before a stream place.

        For frameworks whose checkpoints count samples: that count is the place, regardless of the
        number of ranks and the batch size. It may be in the middle of a step.

        Parameters
        ----------
        place : int
            Units from the start of the run, including those before a resume. It must not be before
            the place at which this plan starts. If epochs differ in units, the cost grows with the
            number of epochs before the place.

        Returns
        -------
        Cursor
            `position` is that of the place, and `step` is the number of steps of this plan that
            start before it in its sub-epoch.

        Raises
        ------
        IndexPlanError
            If the place is before the start of the plan or past its end, or more than 2**20 epochs
            in where epochs differ in units. Also under "drop" and "pad", which never read some
            places, or read them twice.

        Examples
        --------
        >>> import indexplan as ip
        >>> plan = ip.Plan(ip.Shuffle(1000), world_size=8, batch_size=4, remainder="carry")
        >>> cursor = plan.cursor_at(2400)
        >>> cursor.epoch, cursor.step, cursor.position
        (2, 12, 400)
        >>> cursor == plan.cursor(epoch=2, step=12)
        True
        """
        place_of_run = self._layout.resume_at(place)
        return cursor_of(self.order, place_of_run, self.sub_epochs)

    @property
    def start(self) -> Cursor:
        """Where the plan starts: the cursor it was resumed from, or the very first unit.

        `plan.replace(...)` forgets a resume; `plan.replace(...).resume(plan.start)` keeps it.

        Examples
        --------
        >>> import indexplan as ip
        >>> plan = ip.Plan(ip.Shuffle(1000), world_size=8, batch_size=10)
        >>> plan = plan.resume(plan.cursor(epoch=0, step=5))
        >>> plan.replace(world_size=4).resume(plan.start).steps(epoch=0).start
        5
        """
        place = self._resumed or Resume(0, 0, 0, 0)
        return cursor_of(self.order, place, self.sub_epochs)

    def resume(self, cursor: Cursor) -> Plan:
        """Return this plan for the units that are left to read after a cursor.

        You can change the world size, batch size, schedule, remainder and balance after the cursor
        was saved, but not the order (except as `Order.continues` allows) or sub_epochs. The rest of
        the cursor's sub-epoch is divided by the same formulas, and its steps keep their numbers. An
        unchanged plan continues with exactly the steps of an uninterrupted run.

        Raises
        ------
        IndexPlanError
            If the cursor was saved under another order or other sub_epochs, or is past the end.

        Examples
        --------
        >>> import indexplan as ip
        >>> plan = ip.Plan(ip.Shuffle(1000), world_size=8, batch_size=10)
        >>> cursor = plan.cursor(epoch=0, step=5)
        >>> plan.replace(world_size=3).resume(cursor).account(epoch=0).num_read
        615
        """
        if not isinstance(cursor, Cursor):
            raise invalid(
                "cursor", "a Cursor", cursor, "load it with Cursor.from_json or from_dict"
            )
        place = cursor.checked(self.order, self.sub_epochs)
        plan = object.__new__(Plan)  # its fields are those of this one, which were checked
        vars(plan).update(spec.given_of(self), _resumed=place)
        partition = replace(self._divided.partition, resume=place)
        vars(plan).update(_divided=replace(self._divided, partition=partition))
        if any(place):  # from the very first unit, it may be resumed once more before it's asked
            layout_of(plan)  # refuses epochs without a step
        return plan

    def replace(self, **changes: Unpack[spec.Changes]) -> Plan:
        """Return this plan with some fields changed, starting at the very first unit.

        `batch_size` and `global_batch_size` replace each other.

        Raises
        ------
        IndexPlanError
            If a name is not a field, or a value breaks its rule. An epoch without a step under
            "drop" raises only when the new plan is first used, because `resume` may skip it.

        Examples
        --------
        >>> import indexplan as ip
        >>> plan = ip.Plan(ip.Shuffle(1000), world_size=8, batch_size=16)
        >>> plan.replace(world_size=12, global_batch_size=128).steps(epoch=0).stop
        8
        """
        if not changes:
            return self
        return _changed(spec.changed(spec.given_of(self), changes))

    def to_json(self) -> str:
        """Return the plan as canonical JSON text, from which the fingerprint is computed.

        `json.loads` of it has the fields by name, such as for the settings of an experiment.

        Examples
        --------
        >>> import indexplan as ip
        >>> len(ip.Plan(ip.Shuffle(10**12), world_size=4096, batch_size=256).to_json()) < 300
        True
        """
        return canonical_json(dict_of(self))

    @classmethod
    def from_json(
        cls, text: str | bytes, *, order: Order | None = None, columns: Columns = None
    ) -> Plan:
        """Return the plan that `to_json` wrote.

        Parameters
        ----------
        text : str or bytes
            What `to_json` returned.
        order : Order, optional
            The order to use, which must equal the one described.
        columns : folder or file, or iterable of columns, arrays, paths and folders, optional
            Where to find the columns, since the text holds only their sha256. In a folder, they are
            `<sha256>.npy`, as in the folder `columns` of a plan directory, or other `.npy` files,
            which are read until all columns are found.

        Raises
        ------
        IndexPlanError
            If the text is not JSON, a field is missing, unknown or breaks its rule, or a column is
            not found.

        Examples
        --------
        >>> import indexplan as ip
        >>> plan = ip.Plan(ip.Shuffle(1000), batch_size=(5, 3))
        >>> ip.Plan.from_json(plan.to_json()) == plan
        True
        """
        return plan_of(parse_json_object("a plan", text), order, columns)

    @property
    def fingerprint(self) -> str:
        """The sha256, in hexadecimal, of the plan's canonical JSON, which names its algorithms.

        Examples
        --------
        >>> import indexplan as ip
        >>> plan = ip.Plan(ip.Shuffle(13, seed=1), world_size=2, batch_size=2)
        >>> plan.fingerprint[:16]
        '648eb67880a0635d'
        """
        return hashlib.sha256(self.to_json().encode()).hexdigest()


def _changed(given: spec.Fields, *, of_run: bool = False) -> Plan:
    """Return a plan with these fields, which looks for epochs without a step when it is asked.

    That of a run, which reads some steps of it and others of other plans, may have such epochs.
    """
    plan = object.__new__(Plan)
    vars(plan).update(fitting := spec.normal(given))
    layout = spec.layout_of(fitting)  # which refuses fields that do not fit each other
    vars(plan).update({"_divided": layout, **({"_layout": layout} if of_run else {})})
    return plan


def dict_of(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON types, of which `to_json` is the text."""
    return spec.to_json_types(spec.given_of(plan))


def plan_of(data: Mapping[str, Any], order: Order | None, columns: Columns) -> Plan:
    """Return the plan that `dict_of` described."""
    return Plan(**spec.from_json_types(data, order, columns))


def plan_of_run_from(data: Mapping[str, Any], columns: Columns) -> Plan:
    """Return the plan of a run that `dict_of` described, as `plan_of_run` does."""
    given = {"balance": None, **spec.from_json_types(data, None, columns)}
    return _changed(cast("spec.Fields", given), of_run=True)


def plan_of_run(plan: Plan) -> Plan:
    """Return a plan, not resumed, of which a run reads some steps, and other plans the rest.

    So it may have epochs without a step.
    """
    return _changed({**spec.given_of(plan), "_resumed": None}, of_run=True)


def layout_of(plan: Plan) -> Layout:
    """Return the numbers behind a plan: for reports, pictures and files, which ask of positions."""
    return plan._layout  # noqa: SLF001 (for the other rooms, as no user needs it)


def smallest_step(plan: Plan) -> int:
    """Return how many units the smallest step of a plan has, from its start on; 0 without steps.

    Padding counts. Where epochs differ in units, and the order does not name those at which they
    change, it is that of the first four.
    """
    one = plan.replace(world_size=1).resume(plan.start)
    accounts = map(one.account, different_epochs(layout_of(one)))
    return min((each.min_batch_size or 0 for each in accounts if each.num_steps), default=0)


def columns_of(plan: Plan) -> dict[str, Column]:
    """Return the columns of a plan's order and balance, by their sha256."""
    lengths = [] if plan.balance is None else [plan.balance.lengths]
    return {**plan.order.columns, **{each.identity["sha256"]: each for each in lengths}}


def check_plan(what: str, plan: Any) -> None:
    """Raise `IndexPlanError` unless it is a `Plan`."""
    if not isinstance(plan, Plan):
        raise invalid(what, "a Plan", plan, "pass indexplan.Plan(...) or indexplan.load(path)")
