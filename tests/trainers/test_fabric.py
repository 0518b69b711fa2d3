"""Fabric's own launcher on two ranks; tests/through resumes it on others, as all trainers."""

import logging
import os
import warnings
from typing import Any

import indexplan as ip
from tests.trainers.ranks import run_ranks

IMPORTED_BY_RANKS = ("lightning.fabric",)

# passes of 6, 5, 5, 5 steps
PLAN = ip.Plan(
    ip.Shuffle(103, seed=7), batch_size=[ip.Phase(0, 3), ip.Phase((0, 1), 4)], sub_epochs=3
)
PASSES = 5


def launched() -> list[Any]:
    """Read in a function that Fabric launches, where it records what is set on samplers."""
    from lightning.fabric import Fabric
    from torch.utils.data import DataLoader

    from indexplan_torch import PlanBatchSampler, PlanLoader

    warnings.simplefilter("ignore")
    logging.getLogger("lightning.fabric").setLevel(logging.ERROR)
    os.environ.pop("RANK", None)  # which Fabric's own launcher does not set
    told: list[Any] = []

    def read(fabric: Any) -> None:
        loader = fabric.setup_dataloaders(PlanLoader(range(103), PLAN))
        for _ in range(PASSES):
            batches = [batch.tolist() for batch in loader]
            told.append([len(loader), batches])
        try:
            fabric.setup_dataloaders(DataLoader(range(103), batch_sampler=PlanBatchSampler(PLAN)))  # type: ignore[arg-type]
        except ip.IndexPlanError as error:
            told.append(error.what)

    fabric = Fabric(accelerator="cpu", devices=int(os.environ["WORLD_SIZE"]), strategy="ddp")
    fabric.launch(read)
    return told


def test_loaders_made_in_a_launched_function_read_the_plan() -> None:
    """Passes and lengths are the plan's; a batch sampler, which Fabric makes again, is refused."""
    plan = PLAN.replace(world_size=2)
    for rank, told in enumerate(run_ranks("tests.trainers.test_fabric:launched", 2)):
        where = [divmod(number, 3) for number in range(PASSES)]
        passes = [[b.tolist() for b in plan.batches(*each, rank=rank)] for each in where]
        assert [*([len(each), each] for each in passes), "a plan's batch sampler"] == told
