"""Plain torch: DistributedDataParallel over gloo, DataLoaders with and without workers."""

from typing import Any

import pytest

import indexplan as ip
from tests.trainers.ranks import run_ranks

PLAN = ip.Plan(ip.Shuffle(103, seed=3), batch_size=5, sub_epochs=3)
PLANS = {
    "plain": PLAN,
    "balanced": PLAN.replace(balance=ip.Balance([1 + i * i % 97 for i in range(103)])),
}


def stream(
    name: str, num_workers: int, state: dict[str, Any] | None, passes: int
) -> dict[str, Any]:
    """Train a DDP model over some passes; return the batches, and the state in mid-pass 1."""
    import torch
    import torch.distributed
    from torch.nn.parallel import DistributedDataParallel

    from indexplan_torch import PlanLoader

    torch.distributed.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    loader = PlanLoader(torch.arange(103.0), PLANS[name], num_workers=num_workers)
    if state is not None:
        loader.load_state_dict(state)
    batches, saved = [], None
    for number in range(passes):
        for step, batch in enumerate(loader):
            batches.append(batch.int().tolist())
            model(batch[:, None]).sum().backward()
            if (number, step) == (1, 1):
                saved = loader.state_dict()
    return {"batches": batches, "state": saved}


@pytest.mark.parametrize(("name", "num_workers"), [("plain", 0), ("plain", 2), ("balanced", 2)])
def test_ranks_read_the_plan(name: str, num_workers: int) -> None:
    """Two ranks read the plan's batches; three go on in mid-pass, each sample exactly once."""
    results = run_ranks("tests.trainers.test_plain_ddp:stream", 2, name, num_workers, None, 3)
    plan = PLANS[name].replace(world_size=2)
    for rank, result in enumerate(results):
        expected = [b.tolist() for s in range(3) for b in plan.batches(0, s, rank=rank)]
        assert expected == result["batches"]
    state = results[0]["state"]
    assert state == results[1]["state"]
    cursor = plan.cursor(0, 1, step=2)
    assert cursor == ip.Cursor.from_dict(state["cursor"])

    rest = run_ranks("tests.trainers.test_plain_ddp:stream", 3, name, num_workers, state, 2)
    resumed = PLANS[name].replace(world_size=3).resume(cursor)
    for rank, result in enumerate(rest):
        expected = [b.tolist() for s in (1, 2) for b in resumed.batches(0, s, rank=rank)]
        assert expected == result["batches"]
    before = [
        index
        for rank in range(2)
        for sub_epoch, stop in ((0, None), (1, 2))
        for index in plan.indices(0, sub_epoch, rank=rank, stop_step=stop).tolist()
    ]
    after = [index for result in rest for batch in result["batches"] for index in batch]
    assert list(range(103)) == sorted(before + after)
