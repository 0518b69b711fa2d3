"""Ranks that srun starts: what the page of trainers says of them, by the variables srun sets."""

from __future__ import annotations

import os
import re
import warnings
from typing import Any

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
    by_srun()
    return read()


def told() -> dict[str, Any]:
    """The loader gets srun's numbers."""
    by_srun()
    return read(rank=int(os.environ["SLURM_PROCID"]), world_size=int(os.environ["SLURM_NTASKS"]))


def grouped() -> dict[str, Any]:
    """The page's lines make the process group."""
    by_srun()
    exec(lines_of_the_page(), {})  # noqa: S102 (our own page)
    seen = read()
    torch.distributed.destroy_process_group()
    return seen


def in_lightning() -> dict[str, Any]:
    """Lightning finds Slurm, and makes the group."""
    import lightning.pytorch as pl

    by_srun()
    seen: list[int] = []

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.line = torch.nn.Linear(1, 1)

        def training_step(self, batch: Any) -> Any:
            seen.extend(batch.tolist())
            return self.line(batch[:, None].float()).sum()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.0)

    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = pl.Trainer(
        max_epochs=1,
        devices=RANKS,
        accelerator="cpu",
        strategy="ddp",
        **quiet,  # type: ignore[arg-type]
    )
    trainer.fit(Module(), PlanLoader(torch.arange(103), PLAN))
    return {"read": seen}


def lines_of_the_page() -> str:
    """The lines of docs/trainers.md that read Slurm's variables."""
    section = (ROOT / "docs" / "trainers.md").read_text().partition("## Slurm")[2]
    (block,) = re.findall(r"```python\n(.*?)```", section.partition("\n## ")[0], re.DOTALL)
    return str(block)


def of_each_rank() -> list[list[int]]:
    """What the ranks have to read."""
    plan = PLAN.replace(world_size=RANKS)
    return [plan.indices(0, rank=rank).tolist() for rank in range(RANKS)]


def test_the_process_group_is_of_sruns_variables() -> None:
    """The page's lines are enough, and nobody is warned."""
    answers = run_ranks(f"{__name__}:grouped", RANKS)
    assert of_each_rank() == [answer["read"] for answer in answers]
    assert [[]] * RANKS == [answer["said"] for answer in answers]


def test_sruns_numbers_as_arguments() -> None:
    """Without a process group the loader takes them."""
    answers = run_ranks(f"{__name__}:told", RANKS)
    assert of_each_rank() == [answer["read"] for answer in answers]
    assert [[]] * RANKS == [answer["said"] for answer in answers]


def test_processes_of_srun_that_do_not_say_their_rank_warn() -> None:
    """Each reads all samples, as a run of its own would, and says so."""
    answers = run_ranks(f"{__name__}:alone", RANKS)
    assert [PLAN.replace(world_size=1).indices(0, rank=0).tolist()] * RANKS == [
        answer["read"] for answer in answers
    ]
    said = (
        "rank and world_size must be known where srun has started 3 processes, or each of them "
        "reads all samples; got neither; add torch.distributed.init_process_group(rank=, "
        "world_size=) of SLURM_PROCID and SLURM_NTASKS before the first pass, or pass rank=0 and "
        "world_size=1 if each process is a run of its own"
    )
    assert [[said]] * RANKS == [answer["said"] for answer in answers]


def test_lightning_finds_slurm() -> None:
    """A PlanLoader takes the ranks from the group that Lightning makes."""
    answers = run_ranks(f"{__name__}:in_lightning", RANKS)
    assert of_each_rank() == [answer["read"] for answer in answers]
