"""A plan that is read from a plan directory trains as the plan that it was built from."""

from pathlib import Path
from typing import Any

import indexplan as ip
from tests.trainers.ranks import run_ranks

PLAN = ip.Plan(ip.Shuffle(1003, seed=3), batch_size=32)


def stream(path: str) -> dict[str, Any]:
    """Train a DDP model on a stored plan; return the batches, and the state in mid-pass 1."""
    import torch
    import torch.distributed
    from torch.nn.parallel import DistributedDataParallel

    from indexplan_torch import PlanLoader

    torch.distributed.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    loader = PlanLoader(torch.arange(1003.0), ip.load(path), num_workers=2)
    batches, saved = [], None
    for number in range(2):
        for step, batch in enumerate(loader):
            batches.append(batch.int().tolist())
            model(batch[:, None]).sum().backward()
            if (number, step) == (1, 1):
                saved = loader.state_dict()
    return {"batches": batches, "state": saved}


def test_ranks_read_the_stored_plan(tmp_path: Path) -> None:
    """Two ranks of two workers read the computed plan's batches from one plan directory.

    The second pass is of an epoch that is not stored, which is computed instead.
    """
    path = tmp_path / "a.plan"
    ip.save(PLAN, path, units_per_chunk=100)
    results = run_ranks("tests.trainers.test_stored_plans:stream", 2, str(path))
    plan = PLAN.replace(world_size=2)
    for rank, result in enumerate(results):
        expected = [batch.tolist() for epoch in (0, 1) for batch in plan.batches(epoch, rank=rank)]
        assert expected == result["batches"]
        assert plan.cursor(1, step=2) == ip.Cursor.from_dict(result["state"]["cursor"])
