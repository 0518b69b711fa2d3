"""A Lightning callback for plans whose passes differ in length; import it where you use it.

Lightning counts a training's steps per epoch once, before it loads a checkpoint's state.
"""

from __future__ import annotations

from typing import Any

try:
    from lightning.pytorch import Callback
except ImportError:  # the same class under the name of the other package
    from pytorch_lightning import Callback

from indexplan_torch.loader import PlanLoader


class RefreshStepCounts(Callback):
    """Counts the steps of each epoch anew: `Trainer(callbacks=[RefreshStepCounts()])`.

    Needed where passes differ in length: sub-epochs that are not all equal, phases that change
    the batch size, a resume under another world size. Without it Lightning cuts longer epochs, and
    skips validation in shorter ones. It also loads the state of a `PlanLoader` from checkpoints of
    an epoch's end, where Lightning leaves it out; remainder="carry" under another world size needs
    that. `limit_train_batches`, `val_check_interval` and `accumulate_grad_batches` hold as ever.
    """

    def __init__(self) -> None:
        self._unannounced = False

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002 (Lightning's)
        """Load what Lightning left out, and count the steps of the epoch that goes on."""
        loop = trainer.fit_loop
        if loop.restarted_on_epoch_end:
            # By max_steps Lightning would end a finished epoch again, and count it twice. By
            # max_epochs it does what this does.
            loop.epoch_progress.increment_completed()
            loop.reset_restart_stage()
            loop.epoch_loop.restarting = False
        _load(loop)
        _refresh(trainer)
        # After a checkpoint of an epoch's last batch, Lightning tells by the epoch's steps that it
        # is over, and may announce the next one to nobody.
        ended = loop.epoch_loop.batch_progress
        self._unannounced = loop.epoch_loop.restarting and ended.is_last_batch
        if self._unannounced:
            _tell(trainer, ended.current.ready)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
        """Count the steps of the epoch that starts."""
        self._unannounced = False
        _refresh(trainer)

    def on_train_batch_start(self, trainer: Any, *_: Any) -> None:
        """Count the steps of an epoch that was not announced."""
        if self._unannounced:
            self._unannounced = False
            _refresh(trainer)


def _load(loop: Any) -> None:
    """Load the plans' states that Lightning has kept back."""
    states = loop._combined_loader_states_to_load  # noqa: SLF001 (here and below: no public way)
    loaders = loop._combined_loader.flattened  # noqa: SLF001
    stateful = [loader for loader in loaders if hasattr(loader, "load_state_dict")]
    for loader, state in zip(stateful, states, strict=False):
        if isinstance(loader, PlanLoader):
            loader.load_state_dict(state)


def _refresh(trainer: Any) -> None:
    """Count as Lightning's `_FitLoop.setup_data` does, and put it where that does."""
    loop = trainer.fit_loop
    combined = loop._combined_loader  # noqa: SLF001
    lengths = [_limited(loader, trainer.limit_train_batches) for loader in combined.flattened]
    combined.limits = combined._iterator.limits = lengths  # noqa: SLF001
    loop._data_fetcher.length = len(combined)  # noqa: SLF001
    _tell(trainer, len(combined))


def _limited(loader: Any, limit: float) -> float:
    """Return the steps of a loader's epoch, at most a number or share of them; inf without len."""
    if not hasattr(loader, "__len__"):
        return limit if isinstance(limit, int) else float("inf")
    return min(len(loader), limit) if isinstance(limit, int) else int(len(loader) * limit)


def _tell(trainer: Any, num_steps: float) -> None:
    """Have the epoch end, and be validated, by this number of steps."""
    trainer.fit_loop.max_batches = num_steps
    interval = trainer.val_check_interval
    if isinstance(interval, float) and trainer.val_check_batch not in (None, float("inf")):
        trainer.val_check_batch = max(1, int(num_steps * interval))
