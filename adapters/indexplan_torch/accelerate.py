"""Plans under Hugging Face Accelerate: prepare a PlanLoader, and leave its batches as they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from accelerate.data_loader import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
    BatchSamplerShard,
    DataLoaderDispatcher,
    DataLoaderShard,
)
from accelerate.state import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
    GradientState,
)
from accelerate.utils import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
    recursively_apply,
)
from torch.utils.data import default_collate

from indexplan import Plan
from indexplan_torch.callers import Caller, look
from indexplan_torch.counting import dealt_out
from indexplan_torch.cuts import check_together
from indexplan_torch.loader import PlanLoader, handed_over
from indexplan_torch.run import Run
from indexplan_torch.versions import lacking

SHARDING = Caller(
    package="accelerate",
    module="accelerate.data_loader",
    functions=("BatchSamplerShard._iter_with_no_split", "BatchSamplerShard._iter_with_split"),
    why="no gradient state knows of it in a DataLoader that was not prepared",
)
_MICRO_STEP = "micro_step"  # in a state: how many steps `accumulate` has counted


class PreparedLoader(DataLoaderShard):  # type: ignore[misc,unused-ignore]
    """A PlanLoader with what `accelerator.prepare` adds: device placement and gradient state.

    `accelerator.save_state` and `load_state` save and restore it. Like accelerate's own loaders, it
    prefetches one batch, but its state counts what the loop has received. The state also holds the
    place in a gradient accumulation. Accelerate saves that for each rank, so a rank that joins at a
    resume would synchronize gradients while others don't, and all would hang.

    Parameters
    ----------
    accelerator : accelerate.Accelerator
        Whose device and settings it takes.
    loader : PlanLoader
        Its batches stay as they are.
    """

    def __init__(self, accelerator: Any, loader: PlanLoader) -> None:
        super().__init__(
            loader.dataset,
            device=accelerator.device if accelerator.device_placement else None,
            rng_types=[name for name in accelerator.rng_types if name != "generator"],
            _non_blocking=accelerator.non_blocking,
        )
        self.base_dataloader = loader
        loader.run.given = replace(loader.run.given, prepared=True)
        self._accelerator = accelerator
        self._begins = False  # and DataLoaderShard is about to name the pass that begins
        self.use_stateful_dataloader = True  # so accelerate saves the state with its own
        self._is_accelerate_prepared = True  # so accelerate takes it as it is

    @property
    def iteration(self) -> int:
        """The number of the pass that would begin now; DataLoaderShard would count it itself."""
        return self.base_dataloader.run.coming

    @iteration.setter
    def iteration(self, _: int) -> None:
        """Ignore the count."""

    @property
    def batch_sampler(self) -> Any:
        """The loader's own, which other loaders around it may not draw from."""
        return self.base_dataloader.batch_sampler

    def begin(self) -> None:
        """Enter the gradient state, with the valid rows of the last step as the remainder."""
        super().begin()
        loader = self.base_dataloader
        loader.run.set_coming()
        self._begins = True
        if loader.run.number >= loader.run.over.start:  # else the run refuses to begin the pass
            check_together(loader.run, "Accelerate")
            self.remainder = _rows_of_last_step(loader)

    def __iter__(self) -> Iterator[Any]:
        """Yield the batches of the steps that are left, on the device."""
        return handed_over(self.base_dataloader, super().__iter__, self.end)

    def set_epoch(self, epoch: int) -> None:
        """Set the next pass: sub-epoch `epoch % sub_epochs` of epoch `epoch // sub_epochs`."""
        begins, self._begins = self._begins, False
        if not begins or epoch != self.iteration:
            self.base_dataloader.set_epoch(epoch)

    def move(self, plan: Plan) -> None:
        """From the next step on, read another plan: see `PlanLoader.move`."""
        self.base_dataloader.move(plan)

    def _update_state_dict(self) -> None:
        """Keep none with each batch: a state is what the loop has received when it is asked for."""

    def state_dict(self) -> dict[str, Any]:
        """Return where the run stands, in batches the loop has received; the same on all ranks."""
        return {**self.base_dataloader.state_dict(), _MICRO_STEP: self._accelerator.step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from a state; world size and batch size may have changed."""
        self.base_dataloader.load_state_dict(state)
        self._accelerator.step = state.get(_MICRO_STEP, self._accelerator.step)


def _rows_of_last_step(loader: PlanLoader) -> int:
    """Return the rows that gather_for_metrics keeps of a pass's last step: all but padding.

    0 keeps all of them; so does -1, which says that the loop itself has to drop the padding.
    """
    run, last = loader.run, len(loader) // loader.run.given.again - 1
    if last < 0:
        return -1
    plan, _ = run.running()
    if not plan.order.deals_bins:
        return plan.step_size(*run.where, step=last)
    if not plan.account(*run.where).num_padded:
        return 0
    if not run.given.form.keep_bins:  # rows are samples
        return plan.step_total(None, *run.where, step=last)
    if loader.collate_fn is default_collate and not run.given.form.nested:  # rows are bins
        return plan.step_size(*run.where, step=last)
    return -1


def prepare(accelerator: Any, *objects: Any) -> Any:
    """Prepare objects as `accelerator.prepare(*objects)` does, but keep PlanLoaders' batches.

    `accelerator.prepare` itself would split a PlanLoader's batches among the ranks again.

    Parameters
    ----------
    accelerator : accelerate.Accelerator
    *objects
        Models, optimizers, schedulers and loaders.

    Returns
    -------
    object or tuple
        What `accelerator.prepare` returns, in the order given; `PreparedLoader` for each
        PlanLoader.

    Examples
    --------
    >>> from accelerate import Accelerator
    >>> import indexplan as ip
    >>> from indexplan_torch import PlanLoader
    >>> loader = PlanLoader(range(6), ip.Plan(ip.Sequential(6), batch_size=3))
    >>> [batch.tolist() for batch in prepare(Accelerator(cpu=True), loader)]
    [[0, 1, 2], [3, 4, 5]]
    """
    taken = [
        # a prepared one says that it is of the class of the loader inside
        PreparedLoader(accelerator, each)
        if isinstance(each, PlanLoader) and not isinstance(each, PreparedLoader)
        else each
        for each in objects
    ]
    prepared = accelerator.prepare(*taken)
    results = prepared if isinstance(prepared, tuple) else (prepared,)
    for each, result in zip(taken, results, strict=True):
        if isinstance(each, PreparedLoader) and result is not each:
            raise lacking("accelerate", "a prepare that leaves prepared loaders as they are")
    return prepared


def refuse_dealing_out(run: Run) -> None:
    """Refuse to hand one rank's batches, of several, to a loader that deals them out to all ranks.

    Accelerate's gradient state has the loader that is read. Each rank's names the pass before any
    batch is drawn, so all ranks raise, and none waits for a batch that another would send.

    Parameters
    ----------
    run : Run
        Of the sampler whose pass is set or handed out.

    Raises
    ------
    IndexPlanError
        If it does.
    """
    inner = GradientState().active_dataloader
    dealt = isinstance(inner, DataLoaderDispatcher) and run.running()[0].world_size != 1
    while inner is not None and getattr(inner, "run", None) is not run:
        dealt = dealt or isinstance(inner, BatchSamplerShard)
        batches = getattr(inner, "batch_sampler", None)
        inner = getattr(inner, "sampler", None) if batches is None else batches
    if dealt and inner is not None:
        raise dealt_out("a plan's sampler")


def refuse_shards(run: Run) -> None:
    """Refuse to hand one rank's batches to a BatchSamplerShard that was made without `prepare`.

    Raises
    ------
    IndexPlanError
        If it is what draws the batches.
    """
    seen = look(SHARDING)
    if (
        seen is not None
        and seen.values["self"].num_processes != 1
        and run.running()[0].world_size != 1
    ):
        raise dealt_out("a plan's sampler", "BatchSamplerShard")


def gather(accelerator: Any, data: Any) -> Any:
    """Gather tensors whose number of rows may differ by rank, as in steps of remainder "spread".

    Parameters
    ----------
    accelerator : accelerate.Accelerator
    data : torch.Tensor, or nested lists, tuples and dicts of them
        Shape (rows, ...); a scalar is one row.

    Returns
    -------
    torch.Tensor, or nested as given
        The rows of all ranks, in the order of ranks: each once, none padded.

    Examples
    --------
    >>> import torch
    >>> from accelerate import Accelerator
    >>> gather(Accelerator(cpu=True), {"right": torch.tensor([1, 0, 1])})  # on one rank
    {'right': tensor([1, 0, 1])}
    """

    def rows(tensor: torch.Tensor) -> torch.Tensor:
        tensor = tensor[None] if tensor.ndim == 0 else tensor
        sizes = accelerator.gather(torch.tensor([len(tensor)], device=tensor.device)).tolist()
        padded = accelerator.pad_across_processes(tensor, dim=0)
        parts = accelerator.gather(padded).split(max(sizes))
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    return recursively_apply(rows, data, error_on_other_type=True)
