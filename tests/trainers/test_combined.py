"""Loaders of two lengths under CombinedLoader, on one rank and two, resumed after every step."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import indexplan as ip
from tests.trainers.ranks import run_ranks

IMPORTED_BY_RANKS = ("lightning.pytorch",)
SIZES = (52, 21)  # 6 and 3 steps of two ranks, 11 and 5 of one


def trained(folder: str, mode: str) -> dict[str, Any]:
    """Train for three epochs, and resume after each step; validate in sequence."""
    import lightning.pytorch as pl
    from lightning.pytorch.utilities import CombinedLoader

    from indexplan_torch import PlanLoader
    from indexplan_torch.lightning import RefreshStepCounts
    from tests.trainers.lightning_runs import prepare, trainer
    from tests.trainers.test_lightning_passes import InPairs

    prepare()

    class InSequence(InPairs):
        """A model that validates one loader after another."""

        def validation_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> None:
            super().validation_step(batch, batch_idx)

    def both(mode: str, **options: Any) -> Any:
        plans = [ip.Plan(ip.Shuffle(size, seed=size), batch_size=5) for size in SIZES]
        loaders = [PlanLoader(range(plan.order.num_samples), plan, **options) for plan in plans]
        return CombinedLoader(loaders, mode)

    if mode == "sequential":  # which Lightning takes for evaluations alone
        model = InSequence()
        trainer().validate(model, both(mode, evaluation=True), verbose=False)
        return {"validated": model.validated}
    partial = {"partial": mode == "min_size"}  # which cuts the longer
    saves = pl.callbacks.ModelCheckpoint(
        folder, filename="{step}", every_n_train_steps=1, save_top_k=-1
    )
    model = InPairs()
    callbacks = [RefreshStepCounts(), saves]
    trainer(max_epochs=3, callbacks=callbacks, enable_checkpointing=True).fit(
        model, both(mode, **partial)
    )
    read = {"0": model.trained}
    for step in range(1, len(model.trained)):
        again = InPairs()
        where = f"{folder}/step={step}.ckpt"
        trainer(max_epochs=3).fit(again, both(mode, **partial), ckpt_path=where)
        read[str(step)] = again.trained
    return read


@pytest.mark.parametrize("num_ranks", [1, 2])
@pytest.mark.parametrize("mode", ["min_size", "max_size", "max_size_cycle", "sequential"])
def test_ranks_read_and_resume(mode: str, num_ranks: int, tmp_path: Path) -> None:
    """A resumed run reads what the uninterrupted one does, and each sample as often as others."""
    ranks = run_ranks("tests.trainers.test_combined:trained", num_ranks, str(tmp_path), mode)
    if mode == "sequential":
        read = sorted(sum([sum(rank["validated"], []) for rank in ranks], []))
        assert sorted([*range(SIZES[0]), *range(SIZES[1])]) == read
        return
    longer, shorter = (-(-size // (5 * num_ranks)) for size in SIZES)
    steps = 3 * (shorter if mode == "min_size" else longer)
    for rank in ranks:
        whole = rank.pop("0")
        assert steps == len(whole)
        assert {str(step) for step in range(1, steps)} == set(rank)
        for step, rest in rank.items():
            assert whole[int(step) :] == rest, step
        rank["0"] = whole
    for which, size in enumerate(SIZES):
        if (mode, which) != ("min_size", 0):
            batches = [pair[which] for rank in ranks for pair in rank["0"] if pair[which]]
            counts = Counter(sum(batches, []))
            assert {*range(size)} == set(counts)
            assert max(counts.values()) - min(counts.values()) <= 1
