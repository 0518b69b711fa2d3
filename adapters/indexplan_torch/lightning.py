"""A Lightning callback for plans whose passes differ in length.

Lightning counts the steps per epoch once, before it loads a checkpoint's state. Its trainers add
this callback automatically, through an entry point of the installed package, and say so in the log.
So you only import it if you have to name it.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

if "lightning.pytorch" not in sys.modules and "pytorch_lightning" in sys.modules:
    from pytorch_lightning import Callback  # the same class under the name of the other package
else:
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback

from torch.utils._pytree import tree_leaves

from indexplan import IndexPlanError
from indexplan_torch.arguments import run_of
from indexplan_torch.cuts import check_whole
from indexplan_torch.loader import PlanLoader
from indexplan_torch.samplers import PlanSampler
from indexplan_torch.versions import private

_PACKAGE = "lightning" if Callback.__module__.startswith("lightning.") else "pytorch-lightning"


class RefreshStepCounts(Callback):
    """Counts the steps of every epoch, not only of the first; does nothing without plans.

    Trainers add it automatically if this package was installed with its entry points; otherwise
    pass `Trainer(callbacks=[RefreshStepCounts()])`. You need it if passes differ in length: with
    unequal sub-epochs, phases that change the batch size, or a resume on another world size.
    Without it, Lightning cuts longer epochs short and skips validation in shorter ones.

    It also loads a `PlanLoader`'s state from checkpoints of an epoch's end, which Lightning doesn't
    do, and which remainder="carry" needs on another world size. `limit_train_batches`,
    `val_check_interval` and `accumulate_grad_batches` work as usual; where a limit cuts more than
    one pass, a warning says how many samples are never read. Finally, it checks that each loader's
    rank is the strategy's.
    """

    def __init__(self) -> None:
        self._unannounced = False

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002 (Lightning's)
        """Load what Lightning left out, and count the steps of the epoch that continues."""
        loop = trainer.fit_loop
        _refuse_samplers(loop, overfit=bool(trainer.overfit_batches))
        _tell_runs(trainer, loop, trainer.limit_train_batches)
        if not _runs(loop):
            return
        if loop.restarted_on_epoch_end:
            # With max_steps Lightning would end a finished epoch again, and count it twice. With
            # max_epochs it does what this does.
            loop.epoch_progress.increment_completed()
            private(_PACKAGE, loop, "reset_restart_stage")()
            loop.epoch_loop.restarting = False
        _load(loop)
        _refresh(trainer)
        # After a checkpoint of an epoch's last batch, Lightning sees from the number of steps that
        # the epoch is over, and may start the next one without on_train_epoch_start.
        ended = loop.epoch_loop.batch_progress
        self._unannounced = (
            private(_PACKAGE, loop, "epoch_loop", "restarting") and ended.is_last_batch
        )
        if self._unannounced:
            _tell(trainer, ended.current.ready)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Count the steps of the epoch that starts."""
        self._unannounced = False
        _refresh(trainer)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Let loaders know after how many steps a limit cuts their passes."""
        fitting = trainer.state.fn == "fit"
        loop = trainer.fit_loop.epoch_loop.val_loop if fitting else trainer.validate_loop
        _tell_runs(trainer, loop, trainer.limit_val_batches, evaluates=True)

    def on_sanity_check_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Forget the passes that Lightning started to read before training."""
        for run in _runs(trainer.fit_loop.epoch_loop.val_loop):
            run.forget()

    def on_test_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Let loaders know after how many steps a limit cuts their passes."""
        _tell_runs(trainer, trainer.test_loop, trainer.limit_test_batches, evaluates=True)

    def on_predict_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Let loaders know after how many steps a limit cuts their passes."""
        _tell_runs(trainer, trainer.predict_loop, trainer.limit_predict_batches, evaluates=True)

    def on_train_batch_start(self, trainer: Any, *_: Any) -> None:
        """Count the steps of an epoch that began without `on_train_epoch_start`."""
        if self._unannounced:
            self._unannounced = False
            _refresh(trainer)


def callbacks() -> list[Any]:
    """Return what Lightning's trainers add automatically, and name in their log."""
    return [RefreshStepCounts()]


def _loaders(loop: Any) -> list[Any]:
    """Return the loaders of a loop, in Lightning's order."""
    combined = private(_PACKAGE, loop, "_combined_loader")
    return [] if combined is None else list(private(_PACKAGE, combined, "flattened"))


def _runs(loop: Any) -> list[Any]:
    """Return the runs of a loop's loaders that read a plan."""
    return [run for loader in _loaders(loop) if (run := run_of(loader)) is not None]


def _tell_runs(trainer: Any, loop: Any, limit: float, *, evaluates: bool = False) -> None:
    """Pass a limit to the runs, and check their ranks, and that an evaluation reads all."""
    given = trainer.distributed_sampler_kwargs or {}
    for run in _runs(loop):
        run.given = replace(run.given, limit=limit)
        if run.given.rank is None and given:
            plan, rank = run.running()
            if (rank, plan.world_size) != (given["rank"], given["num_replicas"]):
                raise IndexPlanError(
                    "rank and world_size",
                    f"must be the strategy's, {given['rank']} and {given['num_replicas']}",
                    f"{rank} and {plan.world_size}",
                    "pass rank= and world_size= to the loader",
                )
        if evaluates:
            check_whole(run, "Lightning")


def _refuse_samplers(loop: Any, *, overfit: bool) -> None:
    """Refuse to train on a loader that Lightning starts before it names the pass of a resume.

    To overfit, it puts a sampler of its own in the place of any: so the loaders are asked for once
    more where Lightning had them from, perhaps a hook of the user's, if the plan's may be gone.
    """
    loaders = _loaders(loop)
    if overfit and PlanSampler.made:
        loaders += tree_leaves(private(_PACKAGE, loop, "_data_source").dataloader())
    for loader in loaders:
        ours = run_of(loader) or run_of(getattr(loader, "sampler", None))
        if ours is not None and not hasattr(loader, "load_state_dict"):
            raise IndexPlanError(
                "a training's loader",
                "must have a state under Lightning, which starts it before it names the pass",
                f"{type(loader).__name__} around a plan's sampler",
                "use PlanLoader(dataset, plan)",
            )


def _load(loop: Any) -> None:
    """Load the plans' states that Lightning didn't load."""
    states = private(_PACKAGE, loop, "_combined_loader_states_to_load")
    loaders = _loaders(loop)
    stateful = [loader for loader in loaders if hasattr(loader, "load_state_dict")]
    for loader, state in zip(stateful, states, strict=False):
        if isinstance(loader, PlanLoader):
            loader.load_state_dict(state)


def _refresh(trainer: Any) -> None:
    """Count steps like Lightning's `_FitLoop.setup_data`, and store the count in the same place."""
    loop = trainer.fit_loop
    loaders = _loaders(loop)
    if not _runs(loop):
        return
    combined = loop._combined_loader  # noqa: SLF001 (which _loaders has found)
    lengths = [_limited(loader, trainer.limit_train_batches) for loader in loaders]
    iterator = private(_PACKAGE, combined, "_iterator")
    private(_PACKAGE, combined, "limits")
    private(_PACKAGE, iterator, "limits")
    combined.limits = iterator.limits = lengths
    fetcher = private(_PACKAGE, loop, "_data_fetcher")
    private(_PACKAGE, fetcher, "length")
    fetcher.length = len(combined)
    _tell(trainer, len(combined))


def _limited(loader: Any, limit: float) -> float:
    """Return the steps of a loader's epoch, cut by a limit; inf for a loader without len."""
    if not hasattr(loader, "__len__"):
        return limit if isinstance(limit, int) else float("inf")
    return min(len(loader), limit) if isinstance(limit, int) else int(len(loader) * limit)


def _tell(trainer: Any, num_steps: float) -> None:
    """Make Lightning end and validate the epoch after this number of steps."""
    trainer.fit_loop.max_batches = num_steps
    interval = trainer.val_check_interval
    if isinstance(interval, float) and trainer.val_check_batch not in (None, float("inf")):
        trainer.val_check_batch = max(1, int(num_steps * interval))
