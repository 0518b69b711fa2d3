"""OnDevice: a PlanLoader of tensors on a device, which computes their indices there too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from indexplan import IndexPlanError, Order, Plan, Sequential, Shuffle
from indexplan.errors import counted, shown, wrong
from indexplan.types import Stored
from indexplan_torch.arguments import flag
from indexplan_torch.items import Form
from indexplan_torch.loader import PlanLoader, check_options, refuse_the_plans_own
from indexplan_torch.networks import num_walks, numbers_of, shuffled
from indexplan_torch.run import Run
from indexplan_torch.running import Given
from indexplan_torch.samplers import PlanBatchSampler, PlanView

Int64 = NDArray[np.int64]
Tensors = Tensor | Sequence[Tensor] | Mapping[str, Tensor]

AHEAD = 2**18  # indices computed at a time, in whole steps: launches cost more than lanes


class OnDevice(PlanLoader):
    """A PlanLoader of tensors on a device, such as a GPU, which computes indices there too.

    Use it if your data fits into the device's memory. Each batch consists of every tensor's rows at
    the plan's indices, and those equal a `PlanLoader`'s exactly. Nothing is read on the host, which
    is designed never to wait for the device. States, passes and trainers work as with a
    `PlanLoader`, and each can resume from a state of the other.

    Parameters
    ----------
    plan : Plan
        Its order must be a `Shuffle` or `Sequential`, without `balance`.
    tensors : torch.Tensor, sequence or mapping of str to torch.Tensor
        A row for each sample, shape (num_samples, ...), all on one device. Batches have the same
        form: a tensor, a tuple or a dict.
    rank, world_size, mesh, partial, compare, again
        As for `PlanLoader`.
    compiled : bool, default False
        Whether torch.compile turns the arithmetic into one kernel, without a graph break. The
        first batches then take seconds, and later ones need fewer launches.

    Other Parameters
    ----------------
    batch_sampler
        For trainers that rebuild loaders. Leave it out.
    **options
        For the same trainers: options of DataLoader. There are no workers here.

    Raises
    ------
    IndexPlanError
        If the plan has a different order, or a balance; if there are no tensors, they are on
        different devices, or their number of rows isn't the order's number of samples; if an option
        is given; or if an argument breaks its rule.

    Examples
    --------
    >>> import indexplan as ip, torch
    >>> from indexplan_torch import OnDevice
    >>> plan = ip.Plan(ip.Shuffle(6, seed=1), batch_size=4)
    >>> inputs, labels = torch.arange(6.0), torch.arange(6) % 2  # on a GPU, where there is one
    >>> for batch_inputs, batch_labels in OnDevice(plan, (inputs, labels)):
    ...     print(batch_inputs.tolist(), batch_labels.tolist())
    [3.0, 0.0, 4.0] [1, 0, 0]
    [5.0, 2.0, 1.0] [1, 0, 1]
    """

    def __init__(
        self,
        plan: Plan,
        tensors: Tensors,
        *,
        rank: int | None = None,
        world_size: int | None = None,
        mesh: Any = None,
        partial: bool = False,
        compare: bool = True,
        again: int = 1,
        compiled: bool = False,
        batch_sampler: Any = None,
        **options: Any,
    ) -> None:
        _check_plan(plan)
        rows = Rows(tensors, plan.order.num_samples)
        if batch_sampler is None:
            check_options(OnDevice, options, ())
            refuse_the_plans_own(options)
            for name, value in options.items():
                cure = "use PlanLoader for samples that are read by workers"
                raise wrong(name, "left out, as nothing is read on the host", value, cure)
            form = Computed(device=rows.device, compiled=flag("compiled", compiled))
            ranks: dict[str, Any] = {"rank": rank, "world_size": world_size, "mesh": mesh}
            ours: dict[str, Any] = {"partial": partial, "compare": compare, "again": again}
            run = Run(Given.of(plan, **ranks, form=form, **ours))
            batch_sampler = PlanBatchSampler(PlanView(run))
        options |= {"dataset": rows, "collate_fn": _as_it_is}
        super().__init__(plan=plan, batch_sampler=batch_sampler, **options)
        self.tensors, self.compiled = tensors, compiled
        self.rank, self.world_size, self.mesh = rank, world_size, mesh
        self.partial, self.compare = partial, compare


def _check_plan(plan: Any) -> None:
    """Refuse anything but a plan whose indices can be computed on devices."""
    if not isinstance(plan, Plan):
        cure = "use OnDevice(plan, tensors)"
        raise IndexPlanError("plan", "must be an indexplan.Plan", type(plan).__name__, cure)
    computed(plan.order)
    if plan.balance is not None:
        rule = "must have no balance, which looks at lengths on the host"
        cure = "use PlanLoader, or plan.replace(balance=None)"
        raise IndexPlanError("a plan on a device", rule, "a Balance", cure)


def computed(order: Order) -> Order:
    """Return the order that is computed on a device: where it is stored, the one in its files.

    Raises
    ------
    IndexPlanError
        If it is neither of the two; a subclass of theirs may read something else.
    """
    source = (order.known[0] or order) if isinstance(order, Stored) else order
    if type(source) not in {Shuffle, Sequential}:
        raise IndexPlanError(
            "a plan on a device",
            "must be of the order Shuffle or Sequential",
            order.to_dict()["algorithm"],
            "use PlanLoader, or one of these, as all rows on a device are equally near",
        )
    return source


def _as_it_is(batch: Any) -> Any:
    return batch


class Rows(Dataset[Any]):
    """The rows of tensors, indexed by a tensor of indices on their device."""

    def __init__(self, tensors: Any, num_samples: int) -> None:
        self._tensors = tensors
        self._num_samples = num_samples
        named = _named(tensors)
        for name, each in named.items():
            if not isinstance(each, Tensor) or each.ndim == 0:
                cure = "pass a tensor, or a tuple or dict of tensors"
                raise wrong(name, "a tensor with a row for each sample", each, cure)
            if len(each) != num_samples:
                rule = (
                    f"must hold {counted(num_samples, 'row')}, one for each of the plan's samples"
                )
                cure = f"make the plan with an order of {counted(len(each), 'sample')}"
                raise IndexPlanError(name, rule, len(each), cure)
        devices = [each.device for each in named.values()]
        if len({*devices}) != 1:
            cure = "move them, as by tensor.to(device)" if devices else "pass at least one tensor"
            got = ", ".join(map(str, devices)) or "none"
            raise IndexPlanError("tensors", "must lie on one device", got, cure)
        self.device = devices[0]

    def __len__(self) -> int:
        """Return how many rows there are, even if a dict or list got longer tensors since."""
        lengths = map(len, _named(self._tensors).values())
        return next((each for each in lengths if each != self._num_samples), self._num_samples)

    def __getitem__(self, index: Any) -> Any:
        return _of_each(self._tensors, lambda tensor: tensor[index])

    def __getitems__(self, indices: Tensor) -> Any:
        """Return the rows of each tensor; an index out of range is an error."""
        return _of_each(self._tensors, lambda tensor: tensor.index_select(0, indices))


def _named(tensors: Any) -> dict[str, Any]:
    """Return tensors by the names that errors use for them."""
    if isinstance(tensors, Mapping):
        return {f"tensors[{shown(name)}]": each for name, each in tensors.items()}
    if isinstance(tensors, list | tuple):
        return {f"tensors[{i}]": each for i, each in enumerate(tensors)}
    return {"tensors": tensors}


def _of_each(tensors: Any, function: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(tensors, Tensor):
        return function(tensors)
    if isinstance(tensors, Mapping):
        return {name: function(each) for name, each in tensors.items()}
    return tuple(function(each) for each in tensors)


@dataclass(frozen=True, eq=False)
class _Asked(Order):
    """Notes the runs that a plan asks for, in the order of reading, and writes no sample."""

    num_samples: int
    runs: list[tuple[int, Int64, Int64]] = field(default_factory=list)

    algorithm = "asked"

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:  # noqa: ARG002
        """Note the epoch, and the positions of its runs."""
        self.runs.append((epoch, starts, stops))


@dataclass(frozen=True)
class Computed(Form):
    """Batches as tensors of indices, computed on a device, several steps at a time."""

    device: torch.device = field(kw_only=True)
    compiled: bool = field(kw_only=True)

    def requests(self, plan: Plan, epoch: int, sub_epoch: int, rank: int) -> Iterator[Tensor]:
        """Yield the indices of each batch in the remaining steps."""
        steps, asked = plan.steps(epoch, sub_epoch), _Asked(plan.order.num_samples)
        asking = replace(plan, order=asked)
        at_once = max(1, AHEAD // (plan.account(epoch, sub_epoch).max_batch_size or 1))
        epochs = _Epochs(computed(plan.order), self.device, self.compiled)
        for start in steps[::at_once]:
            some: _Some = {
                "rank": rank,
                "start_step": start,
                "stop_step": min(start + at_once, steps.stop),
            }
            asked.runs.clear()
            asking.indices(epoch, sub_epoch, **some)
            sizes = plan.batch_sizes(epoch, sub_epoch, **some)
            yield from torch.split(epochs.take(asked.runs), sizes.tolist())


class _Some(TypedDict):
    """Several steps of a rank."""

    rank: int
    start_step: int
    stop_step: int


class _Epochs:
    """The epochs of an order on a device; keeps the numbers of the last two."""

    def __init__(self, order: Order, device: torch.device, compiled: bool) -> None:
        self._order, self._device = order, device
        self._walks = num_walks(order.num_samples)
        self._shuffled = one_kernel() if compiled else shuffled
        self._numbers = lru_cache(maxsize=2)(self._numbers_of)

    def _numbers_of(self, epoch: int) -> Tensor:
        return torch.tensor(numbers_of(self._order, epoch)).to(self._device, non_blocking=True)

    def take(self, runs: list[tuple[int, Int64, Int64]]) -> Tensor:
        """Return the samples at runs of positions, each in its epoch."""
        parts = [
            (epoch, run) for epoch, *bounds in runs for run in _joined(*bounds) if run[0] < run[1]
        ]
        indices = []
        for epoch, group in groupby(parts, key=itemgetter(0)):
            lanes = self._lanes([run for _, run in group])
            if type(self._order) is Shuffle:
                lanes = self._shuffled(lanes, self._numbers(epoch), self._walks)
            indices.append(lanes)
        return torch.cat(indices)

    def _lanes(self, runs: list[tuple[int, int]]) -> Tensor:
        """Return the positions of runs, by as few launches for many as for two."""
        if len(runs) == 1:
            return torch.arange(*runs[0], device=self._device)
        starts, stops = np.array(runs, np.int64).T
        sizes = stops - starts
        before = np.cumsum(sizes) - sizes
        both = torch.from_numpy(np.stack([starts - before, sizes]))
        moved, repeats = both.to(self._device, non_blocking=True)
        total = int(sizes.sum())
        ahead = torch.repeat_interleave(moved, repeats, output_size=total)
        return ahead + torch.arange(total, device=self._device)


def _joined(starts: Int64, stops: Int64) -> list[tuple[int, int]]:
    """Return runs, those that follow each other as one: a launch for each costs more than lanes."""
    joined: list[tuple[int, int]] = []
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        if joined and joined[-1][1] == start:
            joined[-1] = joined[-1][0], stop
        else:
            joined.append((start, stop))
    return joined


@cache
def one_kernel() -> Callable[..., Tensor]:
    """Compile Shuffle's arithmetic into one kernel for each number of rounds and walks."""
    return torch.compile(shuffled, fullgraph=True)
