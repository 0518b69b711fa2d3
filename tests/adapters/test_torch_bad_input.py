"""Bad input to the torch adapters: one error each, which names the value, the rule and the cure."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import indexplan as ip
from indexplan.keywords import PLACES
from indexplan_torch import PlanBatchSampler, PlanLoader
from tests.adapters.small import Identity, of_plan
from tests.trainers.ranks import ROOT

OPEN = ip.Plan(ip.Shuffle(10, seed=1), batch_size=2)
HALVES = OPEN.replace(sub_epochs=2)
STATE = PlanLoader(
    range(10), OPEN.resume(OPEN.replace(world_size=1).cursor(0, step=2))
).state_dict()
CUT_STATE = {**STATE, "cursor": {k: v for k, v in STATE["cursor"].items() if k != "step"}}


def resumed(plan: ip.Plan, state: Any) -> PlanLoader:
    """Return a loader that goes on from a state."""
    loader = PlanLoader(range(plan.order.num_samples), plan)
    loader.load_state_dict(state)
    return loader


def set_epoch(*numbers: Any) -> None:
    """Set the pass of a new sampler."""
    sampler = PlanBatchSampler(HALVES)
    (sampler.set_epoch if len(numbers) == 1 else sampler.set_epoch_and_sub_epoch)(*numbers)


def before_the_resume() -> None:
    """Ask a loader for a pass before the one that it was resumed in."""
    saved = HALVES.resume(HALVES.replace(world_size=1).cursor(3, 1, step=1))
    loader = resumed(HALVES, PlanLoader(range(10), saved).state_dict())
    loader.set_epoch(2)
    next(iter(loader))


def first(samples: Any) -> Any:
    """Return the first of some batches."""
    return next(iter(samples))


EMPTY = (
    "each step must hold a unit for every rank; got steps of fewer than world_size={world_size} "
    "units in epoch {epoch}, sub-epoch {sub_epoch}, under remainder='{remainder}'; use "
    "remainder='pad', fewer ranks or a larger batch size; to evaluate, pass evaluation=True to "
    "PlanLoader, and gather after its last batch"
)

CASES: list[tuple[str, Callable[[], Any]]] = [
    # what belongs to the plan
    (
        f"shuffle must be left out, as it belongs to the plan; got True; {PLACES['shuffle']}",
        lambda: PlanLoader(range(10), OPEN, shuffle=True),
    ),
    (
        f"drop_last must be left out, as it belongs to the plan; got True; {PLACES['drop_last']}",
        lambda: PlanLoader(range(10), OPEN, drop_last=True),
    ),
    (
        "sampler must be left out, as it belongs to the plan; got range(0, 10); "
        + PLACES["sampler"],
        lambda: PlanLoader(range(10), OPEN, sampler=range(10)),
    ),
    # epochs
    ("sub_epoch must be an integer from 0; got -1; count from 0", lambda: set_epoch(0, -1)),
    (
        "epoch must be 3 or later, where the run was resumed, as earlier ones are finished; got 1; "
        "begin your loop with range(loader.cursor.epoch * 2, ...) once a state is loaded, which "
        "is range(6, ...) here",
        before_the_resume,
    ),
    # states
    (
        "a cursor must have the fields ['step']; got only ['epoch', 'order', 'position', "
        "'sub_epoch', 'sub_epochs']; restore what was written, or read it with the version of "
        "indexplan that wrote it",
        lambda: resumed(OPEN, CUT_STATE),
    ),
    (
        "a cursor's sub_epochs must be 2, the plan's; got 1; use plan.replace(sub_epochs=1)",
        lambda: resumed(HALVES, STATE),
    ),
    # empty batches
    (
        EMPTY.format(world_size=12, epoch=0, sub_epoch=0, remainder="spread"),
        lambda: first(PlanBatchSampler(OPEN, rank=0, world_size=12)),
    ),
    (
        EMPTY.format(world_size=3, epoch=0, sub_epoch=0, remainder="pad"),
        lambda: first(
            PlanLoader(
                range(10),
                OPEN.replace(global_batch_size=2, remainder="pad"),
                rank=0,
                world_size=3,
            )
        ),
    ),
]


@pytest.mark.parametrize(("message", "function"), CASES, ids=[case[0][:60] for case in CASES])
def test_refuses(message: str, function: Callable[[], Any]) -> None:
    """Each mistake ends in one error, before any batch is read."""
    with pytest.raises(ip.IndexPlanError, match=f"^{re.escape(message)}$"):
        function()


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
