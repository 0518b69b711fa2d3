"""Ranks that srun starts: what the page of trainers says of them, by the variables srun sets."""

from __future__ import annotations

import os
import re
import warnings
from typing import Any

import pytest
import torch

import indexplan as ip
from indexplan_torch import PlanLoader
from tests.trainers.ranks import ROOT, run_ranks

IMPORTED_BY_RANKS = ("lightning.pytorch",)

PLAN = ip.Plan(ip.Shuffle(103, seed=5), batch_size=5)
RANKS = 3


def by_srun() -> None:
    """Leave this rank the variables of srun, in the place of torchrun's."""
    told = {name: os.environ.pop(name, "") for name in ("RANK", "WORLD_SIZE")}
    for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK"):
        os.environ.pop(name, None)
    rank, world_size = told["RANK"], told["WORLD_SIZE"]
    of_node = {"SLURM_LOCALID": rank, "SLURM_NODEID": "0", "SLURM_NTASKS_PER_NODE": world_size}
    job = {"SLURM_JOB_ID": "12345", "SLURM_JOB_NAME": "train", "SLURM_NNODES": "1"}
    os.environ.update(of_node | job | {"SLURM_NODELIST": "127.0.0.1"})
    os.environ.update(SLURM_PROCID=rank, SLURM_NTASKS=world_size, SLURM_STEP_NUM_TASKS=world_size)


def read(**ranks: int) -> dict[str, Any]:
    """Read an epoch; return what was read, and all warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loader = PlanLoader(torch.arange(103), PLAN, **ranks)
        batches = [batch.tolist() for batch in loader]
    return {"read": sum(batches, []), "said": [str(each.message) for each in caught]}


def alone() -> dict[str, Any]:
    """Nobody says which rank this is."""
    return read()


def told() -> dict[str, Any]:
    """Without a process group the loader takes srun's numbers."""
    return read(rank=int(os.environ["SLURM_PROCID"]), world_size=int(os.environ["SLURM_NTASKS"]))


def grouped() -> dict[str, Any]:
    """The lines of docs/trainers.md that read Slurm's variables make the process group."""
    section = (ROOT / "docs" / "trainers.md").read_text().partition("## Slurm")[2]
    (block,) = re.findall(r"```python\n(.*?)```", section.partition("\n## ")[0], re.DOTALL)
    exec(block, {})  # noqa: S102 (our own page)
    seen = read()
    torch.distributed.destroy_process_group()
    return seen


def in_lightning() -> dict[str, Any]:
    """Lightning finds Slurm, and makes the group, from which a loader takes the ranks."""
    from tests.trainers.lightning_runs import Recorder, prepare, trainer

    prepare()
    model = Recorder()
    trainer(max_epochs=1, num_sanity_val_steps=0).fit(model, PlanLoader(torch.arange(103), PLAN))
    return {"read": sum(model.story, []), "said": []}


def run(by: str) -> dict[str, Any]:
    """Read an epoch in a rank that srun has started."""
    by_srun()
    seen: dict[str, Any] = globals()[by]()
    return seen


SAID = (
    "rank and world_size must be known where srun has started 3 processes, or each of them "
    "reads all samples; got neither; add torch.distributed.init_process_group(rank=, "
    "world_size=) of SLURM_PROCID and SLURM_NTASKS before the first pass, or pass rank=0 and "
    "world_size=1 if each process is a run of its own"
)


@pytest.mark.parametrize("by", ["grouped", "told", "in_lightning", "alone"])
def test_ranks_of_srun(by: str) -> None:
    """They read their own samples, or each all samples, as a run of its own would, and says so."""
    plan = PLAN.replace(world_size=1 if by == "alone" else RANKS)
    for rank, answer in enumerate(run_ranks(f"{__name__}:run", RANKS, by)):
        assert plan.indices(0, rank=0 if by == "alone" else rank).tolist() == answer["read"]
        assert ([SAID] if by == "alone" else []) == answer["said"]
