"""Accelerate's gradient accumulation, stopped inside an update and resumed on other ranks."""

from typing import Any

import pytest

import indexplan as ip
from tests.trainers.ranks import run_ranks
from tests.trainers.test_accelerate import ON_CPU

IMPORTED_BY_RANKS = ("accelerate",)

PLAN = ip.Plan(ip.Shuffle(103, seed=5), batch_size=5)
STOP = 3  # micro-batches of the first pass: one update, and half of another


def leg(folder: str, saving: bool) -> dict[str, Any]:
    """Train for STOP micro-batches and save, or go on from there to the end of the next pass."""
    import torch
    from accelerate import Accelerator

    from indexplan_torch import PlanLoader
    from indexplan_torch.accelerate import prepare

    accelerator = Accelerator(gradient_accumulation_steps=2)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    loader = PlanLoader(torch.arange(103.0), PLAN)
    model, optimizer, loader = prepare(accelerator, model, optimizer, loader)
    if not saving:
        accelerator.load_state(folder)
    seen: dict[str, Any] = {"batches": [], "synchronised": []}
    for epoch in range(2):
        loader.set_epoch(epoch)
        for batch in loader:
            with accelerator.accumulate(model):
                accelerator.backward(model(batch[:, None]).sum())
                optimizer.step()
                optimizer.zero_grad()
            seen["batches"].append(batch.int().tolist())
            seen["synchronised"].append(accelerator.sync_gradients)
            if saving and len(seen["batches"]) == STOP:
                accelerator.save_state(folder)
                return seen
    return seen


@pytest.mark.parametrize("world_size", [1, 3])
def test_other_ranks_synchronise_together(tmp_path: Any, world_size: int) -> None:
    """Ranks that join go on in the middle of the update, as the others do; nothing is left out."""
    function = "tests.trainers.test_accelerate_accumulation:leg"
    folder = str(tmp_path / "saved")
    first = run_ranks(function, 2, folder, True, timeout=120, **ON_CPU)
    then = run_ranks(function, world_size, folder, False, timeout=120, **ON_CPU)
    plan = PLAN.replace(world_size=2)
    rest = PLAN.replace(world_size=world_size).resume(plan.cursor(0, step=STOP))
    left = rest.steps(0).stop - STOP
    for rank, result in enumerate(then):
        expected = [b.tolist() for epoch in range(2) for b in rest.batches(epoch, rank=rank)]
        assert expected == result["batches"]
        assert then[0]["synchronised"] == result["synchronised"]
        assert [True, False, True, False] == result["synchronised"][:4]
    read = [index for each in first for batch in each["batches"] for index in batch]
    read += [index for each in then for batch in each["batches"][:left] for index in batch]
    assert list(range(103)) == sorted(read)
