"""Plans under Composer: a callback that keeps a PlanLoader's state in the trainer's checkpoints.

Composer resumes by drawing as many batches as it had trained on, and numbers each evaluation's pass
by the batches trained on so far.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from composer import Callback  # type: ignore[import-not-found,unused-ignore]
from composer.utils import reproducibility  # type: ignore[import-not-found,unused-ignore]

from indexplan import IndexPlanError
from indexplan_torch.arguments import run_of
from indexplan_torch.cuts import check_whole
from indexplan_torch.loader import PlanLoader


class KeepState(Callback):  # type: ignore[misc,unused-ignore]
    """Saves a PlanLoader's state in Composer's checkpoints: `Trainer(callbacks=[KeepState()])`.

    A resumed run continues where the loop stood, under any world size, batch size and number of
    workers, without drawing again what was read before. Passes that are longer or shorter than the
    first are read whole. Every evaluation reads the same epoch in the same order.
    """

    def __init__(self) -> None:
        self._loader: PlanLoader | None = None
        self._saved: dict[str, Any] | None = None
        self._random: Any = None
        self._limited: bool | None = None

    def state_dict(self) -> dict[str, Any]:
        """Return where the loop stands, and every rank's random state."""
        if self._loader is None:
            return {}
        # Composer has that in its checkpoint too, and puts it back while it skips batches
        random = reproducibility.get_rng_state()
        return {"loader": self._loader.state_dict(), "random": random}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Keep what `state_dict` returned, and load it when there is a loader."""
        self._saved = state or None

    def fit_start(self, state: Any, logger: Any) -> None:  # noqa: ARG002 (Composer's)
        """Load the loader's state, and tell Composer to skip nothing."""
        loader = state.train_dataloader
        if not isinstance(loader, PlanLoader):
            raise IndexPlanError(
                "train_dataloader",
                "must be a PlanLoader, for KeepState",
                type(loader).__name__,
                "use PlanLoader(dataset, plan)",
            )
        self._loader = loader
        saved, self._saved = self._saved, None
        if saved is None and int(state.timestamp.batch) and loader.run.reading is not None:
            saved = {"loader": loader.state_dict(), "random": None}  # `fit` once more
        if saved is not None:
            state.dataset_resumption["train"] = True
        if self._limited is None:  # by train_subset_num_batches
            self._limited = state.dataloader_len is None or state.dataloader_len < len(loader)
            if self._limited and state.dataloader_len is not None:
                run, limit = loader.run, int(state.dataloader_len)
                run.given = replace(run.given, limit=limit)
        if saved is not None:
            loader.load_state_dict(saved["loader"])
            self._begin(state)
            self._random = saved["random"] if int(state.timestamp.batch_in_epoch) else None

    def epoch_start(self, state: Any, logger: Any) -> None:  # noqa: ARG002
        """Make Composer read the pass to its end, even if it is longer than the first."""
        self._begin(state)

    def before_dataloader(self, state: Any, logger: Any) -> None:  # noqa: ARG002
        """Put back the random state of a pass that continues, just before its first batch."""
        if self._random is not None:
            reproducibility.load_rng_state(self._random)
            self._random = None

    def eval_start(self, state: Any, logger: Any) -> None:  # noqa: ARG002
        """Let the evaluation read what the last one read, whatever number Composer gives it."""
        run = run_of(state.dataloader)
        if run is None:
            return
        if run is run_of(state.train_dataloader):
            raise IndexPlanError(
                "eval_dataloader",
                "must be a loader of its own",
                "the training's, whose pass it would interrupt",
                "use another PlanLoader(dataset, plan)",
            )
        check_whole(run, "Composer")
        run.given = replace(run.given, pinned=True)

    def _begin(self, state: Any) -> None:
        assert self._loader is not None  # noqa: S101 (fit_start comes first)
        self._loader.set_epoch(int(state.timestamp.epoch))
        if not self._limited and len(self._loader):
            state.dataloader_len = len(self._loader)
