"""Which passes a prepared loader reads, in one process."""

from __future__ import annotations

import re
import warnings
from itertools import islice

import pytest
from accelerate import Accelerator

import indexplan as ip
from indexplan_torch import PlanLoader
from indexplan_torch.accelerate import PreparedLoader, prepare

PLAN = ip.Plan(ip.Shuffle(12, seed=1), batch_size=3)


def loader() -> PreparedLoader:
    """A prepared loader whose samples are their indices."""
    return prepare(Accelerator(cpu=True), PlanLoader(range(12), PLAN))


def test_a_pass_that_starts_again_warns() -> None:
    """Accelerate names each pass that begins; that is not the user's word for it."""
    prepared = loader()
    list(islice(prepared, 2))
    message = (
        "epoch 0, sub-epoch 0: the loop received 2 of 4 steps, and starts again from the first; "
        "name the pass that comes next with set_epoch, or pass partial=True if this is intended"
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$"):
        list(islice(prepared, 2))
    prepared = loader()
    for _ in range(2):
        prepared.set_epoch(0)
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            list(islice(prepared, 2))


def test_the_next_pass_may_be_named_before_a_loop_ends() -> None:
    """The loop reads on; no state is asked for that would lose its rest."""
    prepared = loader()
    batches = iter(prepared)
    got = [next(batches).tolist() for _ in range(2)]
    prepared.set_epoch(1)
    got += [batch.tolist() for batch in batches]
    whole = PLAN.replace(world_size=1)
    assert [b.tolist() for b in whole.batches(0, rank=0)] == got
    assert [b.tolist() for b in whole.batches(1, rank=0)] == [b.tolist() for b in prepared]
