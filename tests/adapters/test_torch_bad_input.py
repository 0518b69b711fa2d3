"""Bad input to the torch adapters: one error each, which names the value, the rule and the cure."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import indexplan as ip
from indexplan_torch import PlanBatchSampler, PlanLoader
from tests.adapters.small import Identity, of_plan
from tests.trainers.ranks import ROOT

OPEN = ip.Plan(ip.Shuffle(10, seed=1), batch_size=2)
HALVES = OPEN.replace(sub_epochs=2)
STATE = PlanLoader(
    range(10), OPEN.resume(OPEN.replace(world_size=1).cursor(0, step=2))
).state_dict()


def resumed(plan: ip.Plan, state: Any) -> PlanLoader:
    """Return a loader that goes on from a state."""
    loader = PlanLoader(range(plan.order.num_samples), plan)
    loader.load_state_dict(state)
    return loader


def first(samples: Any) -> Any:
    """Return the first of some batches."""
    return next(iter(samples))


def test_refuses_a_cursor_of_other_sub_epochs() -> None:
    """Before any batch is read; tests/errors has all that is refused."""
    message = "a cursor's sub_epochs must be 2, the plan's; got 1; use plan.replace(sub_epochs=1)"
    with pytest.raises(ip.IndexPlanError, match=f"^{re.escape(message)}$"):
        resumed(HALVES, STATE)


def test_a_sampler_that_yields_batches_can_stand_alone() -> None:
    """With batch_size=None torch hands each batch to the dataset as it is, which is no mistake."""
    loader = DataLoader(Identity(10), sampler=PlanBatchSampler(OPEN), batch_size=None)
    assert of_plan(OPEN.replace(world_size=1), 0, rank=0) == list(loader)


@pytest.mark.parametrize(
    ("adapter", "missing", "extra"),
    [
        ("indexplan_torch", "torch", "torch"),
        ("indexplan_fetch", "fsspec", "remote"),
        ("indexplan_jax.grain", "grain", "grain"),
    ],
)
def test_without_torch_the_extra_is_named(
    tmp_path: Path, adapter: str, missing: str, extra: str
) -> None:
    """Where torch, fsspec or Grain truly is not there, importing an adapter says how to get it."""
    for package in ("numpy", "numpy.libs"):  # nothing else that is installed can be imported
        home = Path(np.__file__).parents[1] / package
        if home.exists():
            (tmp_path / package).symlink_to(home)
    paths = [str(ROOT), str(ROOT / "adapters"), str(tmp_path)]
    code = f"import sys; sys.path[:0] = {paths}; import indexplan, {adapter}"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], check=False, capture_output=True, text=True
    )
    assert 1 == done.returncode
    expected = f"ModuleNotFoundError: {adapter} needs {missing}, which is not installed; "
    cure = f"pip install '.[{extra}]' in your checkout of indexplan"  # which is on the path alone
    assert expected + cure == done.stderr.splitlines()[-1]
    code = f"from indexplan.errors import install; print(install({extra!r}))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert f"pip install 'indexplan[{extra}]'\n" == done.stdout


def test_too_few_units_for_the_ranks_can_be_padded() -> None:
    """What the error of an empty batch advises helps: a batch for every rank, repeats counted."""
    plan = OPEN.replace(batch_size=1, remainder="pad")
    read = [
        index
        for rank in range(3)
        for batch in DataLoader(
            range(10),  # type: ignore[arg-type]
            batch_sampler=PlanBatchSampler(plan, rank=rank, world_size=3),
        )
        for index in batch.tolist()
    ]
    assert 2 == plan.replace(world_size=3).account(0).num_padded
    assert (12, set(range(10))) == (len(read), set(read))


def test_batches_of_batches_are_seen_at_the_first() -> None:
    """A dataset by index takes no list; tensors do, and their batches have an axis too many."""
    for dataset in (range(10), list(range(10))):
        loader: Any = DataLoader(dataset, sampler=PlanBatchSampler(OPEN), batch_size=2)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="list"):
            first(loader)
    loader = DataLoader(torch.arange(10), sampler=PlanBatchSampler(OPEN), batch_size=2)  # type: ignore[arg-type]
    assert (2, 2) == first(loader).shape
