"""What loaders, samplers and standings print of themselves: the plan, the rank, and the place."""

from __future__ import annotations

import pickle

import pytest

import indexplan as ip
from indexplan_torch import PlanBatchSampler, PlanLoader
from indexplan_torch.megatron import PlanIterator

PLAN = ip.Plan(ip.Shuffle(100, seed=3), batch_size=4, sub_epochs=2)
SAID = "Plan(Shuffle(num_samples=100, seed=3), batch_size=4, sub_epochs=2)"


def test_a_loader_where_it_stands() -> None:
    """It counts the batches that the loop has received, and names the next pass that is set."""
    loader = PlanLoader(range(100), PLAN)
    assert f"<PlanLoader of {SAID}: rank 0 of 1, at epoch 0, sub-epoch 0, step 0>" == repr(loader)
    batches = iter(loader)
    next(batches), next(batches)
    assert repr(loader).endswith(": rank 0 of 1, at epoch 0, sub-epoch 0, step 2>")
    assert repr(loader.sampler) == repr(loader).replace("PlanLoader", "PlanView")
    assert repr(loader.batch_sampler) == repr(loader).replace("PlanLoader", "PlanBatchSampler")
    assert 11 == len(list(batches))
    loader.set_epoch(3)
    assert repr(loader).endswith(", at epoch 1, sub-epoch 1, step 0>")


def test_a_loader_that_was_resumed() -> None:
    """A loader that has not begun stands where its plan, or its state, does."""
    plan = PLAN.replace(sub_epochs=1, world_size=3)
    resumed = plan.resume(plan.cursor(1, step=2))
    loader = PlanLoader(range(100), resumed, rank=1, world_size=3)
    assert repr(loader).endswith("step 2: rank 1 of 3, at epoch 1, step 2>")
    first = PlanLoader(range(100), plan, rank=1, world_size=3)
    first.load_state_dict(loader.state_dict())
    assert repr(first).endswith(": rank 1 of 3, at epoch 1, step 2>")


def test_a_repr_never_raises() -> None:
    """Where the rank cannot be known, it says so; PlanLoader raises that when it is read."""
    sampler = PlanBatchSampler(PLAN.replace(world_size=4))
    assert ": rank unknown, at epoch 0, sub-epoch 0, step 0>" in repr(sampler)
    with pytest.raises(ip.IndexPlanError, match="world_size"):
        next(iter(sampler))


def test_others() -> None:
    """So does what reads for Megatron."""
    iterator = PlanIterator(
        range(10), ip.Sequential(10), micro_batch_size=2, consumed_samples=4, rank=0, world_size=2
    )
    said = "Plan(Sequential(num_samples=10), world_size=2, batch_size=2, remainder='carry')"
    assert f"<PlanIterator of {said}: rank 0 of 2, 4 samples consumed>" == repr(iterator)


def test_repr_of_a_plan() -> None:
    """It names what is not the default, and print shows the same."""
    assert SAID == str(PLAN) == repr(PLAN)
    resumed = PLAN.replace(world_size=2).resume(PLAN.replace(world_size=2).cursor(0, 1, step=3))
    assert str(resumed).endswith("world_size=2, batch_size=4, sub_epochs=2) resumed at epoch 0, "
                                 "sub-epoch 1, step 3")  # fmt: skip
    assert PLAN == eval(SAID, vars(ip))  # noqa: S307 (our own)


def test_readings() -> None:
    """What `explain` returns is a tuple, prints a line each, in a notebook too."""
    plan = ip.Plan(ip.Sequential(11), world_size=2, batch_size=2, remainder="drop")
    readings = ip.explain(plan, 3, [0, 1])
    assert readings == tuple(readings) == pickle.loads(pickle.dumps(readings))  # noqa: S301 (ours)
    assert "epoch 0, position 3: step 0, rank 1, slot 1\nepoch 1" in str(readings)
    assert f"<pre>{readings}</pre>" == readings._repr_html_()  # type: ignore[attr-defined]
