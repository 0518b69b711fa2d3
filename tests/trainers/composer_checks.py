"""Composer: its default Trainer over plans, two ranks; run by path, in an environment of its own.

Composer 0.32.1 asks for an older torch, so its packages are installed without their dependencies
into a folder that PYTHONPATH names; what it imports of torchvision needs no compiled operators.
"""

from importlib.metadata import version
from typing import Any

import pytest

import indexplan as ip
from indexplan_torch.versions import TESTED
from tests.trainers.ranks import run_ranks

pytestmark = pytest.mark.composer

IMPORTED_BY_RANKS = ("tests.runs.frameworks.composer_trainer", "torchmetrics", "torch._dynamo")

EPOCHS = 3
PLAN = ip.Plan(ip.Shuffle(97, seed=5), batch_size=5)
NUM_STEPS = 10
BINS = ip.Plan(
    ip.LengthGrouped([1 + i * 7 % 13 for i in range(97)], 8, num_buckets=3),
    batch_size=1,
    remainder="carry",
)
MIXED = PLAN.replace(
    order=ip.Mixture({"a": ip.Shuffle(60, seed=1), "b": ip.Shuffle(37, seed=2)}, {"a": 3, "b": 2})
)
MOVED_AT = 14  # of 10 steps a pass


def lighter(cursor: ip.Cursor) -> ip.Plan:
    """The mixed plan with other weights from a cursor on, and as many steps."""
    order: Any = MIXED.order
    return MIXED.replace(order=order.with_phase(cursor, {"a": 1, "b": 4}))


def model() -> Any:
    """Return a line that notes what it is trained on."""
    import torch
    from composer.models import ComposerModel

    class Model(ComposerModel):
        """The line."""

        def __init__(self) -> None:
            super().__init__()
            self.line = torch.nn.Linear(1, 1)
            self.batches: list[list[int]] = []

        def forward(self, batch: Any) -> Any:
            rows = batch["input_ids"] if isinstance(batch, dict) else batch
            self.batches.append(rows.int().flatten().tolist())
            return self.line(rows.reshape(-1, 1) / 97)

        def loss(self, outputs: Any, *args: Any, **kwargs: Any) -> Any:
            return outputs.mean()

    return Model()


def of_bins() -> dict[str, Any]:
    """Bins that are batches by themselves, and one that is a row, with the settings they take."""
    import torch
    from composer import Trainer

    from indexplan_torch import Bins, PlanLoader

    samples = torch.arange(97)
    rows = Bins(samples.reshape(97, 1))

    def fit(loader: Any, **options: Any) -> Any:
        trainer = Trainer(
            model=model(), train_dataloader=loader, max_duration=f"{EPOCHS}ep", **options
        )
        trainer.fit()
        trainer.close()
        return trainer.state.model.module.batches

    flat = PlanLoader(samples, BINS, keep_bins=False)
    return {
        "cut": fit(PlanLoader(samples, BINS, keep_bins=False)),
        "flat": fit(flat, device_train_microbatch_size=8),
        "rows": fit(PlanLoader(rows, BINS)),
    }


def test_the_version_is_the_one_of_the_table() -> None:
    """What runs here is what docs/trainers.md calls tested."""
    assert TESTED["mosaicml"][1] == version("mosaicml")


def test_bins_are_read_whole_or_cut() -> None:
    """A bin that is a batch is trained on in as many samples at a time as Composer is told."""
    plan = BINS.replace(world_size=2)
    for rank, seen in enumerate(run_ranks("tests.trainers.composer_checks:of_bins", 2)):
        fit = [b.tolist() for epoch in range(EPOCHS) for b in plan.batches(epoch, rank=rank)]
        assert (fit, fit) == (seen["flat"], seen["rows"])
        assert [[index] for batch in fit for index in batch] == seen["cut"]


def cut_short() -> dict[str, Any]:
    """Passes that Composer cuts, with and without KeepState, and as the warning's cure has it."""
    import warnings

    import torch
    from composer import Trainer

    from indexplan_torch import PlanLoader
    from indexplan_torch.composer import KeepState

    def fit(plan: ip.Plan, keep: bool, **options: Any) -> tuple[list[list[int]], list[str]]:
        loader = PlanLoader(torch.arange(97.0), plan)
        callbacks = [KeepState()] if keep else []
        trainer = Trainer(model=model(), train_dataloader=loader, callbacks=callbacks, **options)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                trainer.fit()
                said = []
            except ip.IndexPlanError as error:
                said = [str(error)]
        said += [str(each.message) for each in told if "sub-epoch" in str(each.message)]
        trainer.close()
        return trainer.state.model.module.batches, said

    short = PLAN.replace(order=ip.Epochs(PLAN.order, 50))
    return {
        f"{name}, {keep}": fit(plan, keep, **options)
        for keep in (True, False)
        for name, plan, options in (
            ("limited", PLAN, {"max_duration": "4ep", "train_subset_num_batches": 5}),
            ("cured", short, {"max_duration": "4ep"}),
            ("ends early", PLAN, {"max_duration": "25ba"}),
        )
    }


def moved() -> dict[str, Any]:
    """Move to other weights in a callback, in the middle of the second epoch; two ranks."""
    import torch
    from composer import Callback, Trainer

    from indexplan_torch import PlanLoader
    from indexplan_torch.composer import KeepState

    def fit(num_workers: int) -> list[list[int]]:
        loader = PlanLoader(torch.arange(97.0), MIXED, num_workers=num_workers)

        class Moves(Callback):
            def batch_end(self, state: Any, logger: Any) -> None:
                del logger
                if int(state.timestamp.batch) == MOVED_AT:
                    loader.move(lighter(loader.cursor))

        callbacks = [KeepState(), Moves()]
        trainer = Trainer(
            model=model(), train_dataloader=loader, max_duration="3ep", callbacks=callbacks
        )
        trainer.fit()
        trainer.close()
        batches: list[list[int]] = trainer.state.model.module.batches
        return batches

    return {str(num_workers): fit(num_workers) for num_workers in (0, 2)}


def test_weights_change_at_a_step() -> None:
    """The steps after a move are those of the other plan, resumed there."""
    one = MIXED.replace(world_size=2)
    cursor = one.cursor(1, step=MOVED_AT - NUM_STEPS)
    plans = [one, lighter(cursor).replace(world_size=2).resume(cursor)]
    seen = run_ranks("tests.trainers.composer_checks:moved", 2)
    for rank, told in enumerate(seen):
        wanted = [
            plans[step >= MOVED_AT]
            .batch(step // NUM_STEPS, step=step % NUM_STEPS, rank=rank)
            .tolist()
            for step in range(3 * NUM_STEPS)
        ]
        assert {"0": wanted, "2": wanted} == told


def test_a_limit_is_told_once_and_its_cure_loses_nothing() -> None:
    """The rule of every trainer: a limit is a warning, and an error where nobody says it is one."""
    plan, epochs = PLAN.replace(world_size=2), range(4)
    short = plan.replace(order=ip.Epochs(PLAN.order, 50))
    lost = "epoch 0, sub-epoch 0: the trainer's limit ends each pass after 5 of 10 steps, so 47 of "
    left = "a pass must be read whole before a later one begins; got 5 of 10 steps of epoch 0, "
    read: list[int] = []
    for rank, seen in enumerate(run_ranks("tests.trainers.composer_checks:cut_short", 2)):
        batches = [[b.tolist() for b in plan.batches(epoch, rank=rank)] for epoch in epochs]
        limited, said = seen["limited, True"]
        assert [batch for epoch in batches for batch in epoch[:5]] == limited
        assert [True] == [message.startswith(lost) for message in said]
        assert "use ip.Epochs(order, 50), whose epochs have so many and lose none" in said[0]
        limited, said = seen["limited, False"]
        assert batches[0][:5] == limited
        assert [True] == [message.startswith(left) for message in said]
        assert "use ip.Epochs(order, 50), whose epochs have so many and lose none" in said[0]
        assert "under Composer KeepState()" in said[0]
        cured = [b.tolist() for epoch in epochs for b in short.batches(epoch, rank=rank)]
        for keep in (True, False):
            assert [cured, []] == seen[f"cured, {keep}"]
            assert [sum(batches, [])[:25], []] == seen[f"ends early, {keep}"]
        read += [index for batch in cured for index in batch]
    assert set(range(97)) == set(read)
