"""What a rank does in the tests of torchtitan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch.distributed as dist

import indexplan as ip
from indexplan_torch.torchtitan import PlanDataLoader, TokenRows
from tests.runs.frameworks import torchtitan as run
from tests.runs.row import Leg


def _leg(leg: dict[str, Any]) -> Leg:
    paths = {name: leg[name] and Path(leg[name]) for name in ("checkpoint", "save")}
    ranks = {"rank": dist.get_rank(), "world_size": dist.get_world_size()}
    return Leg(**{**leg, **paths, **ranks})


def read(who: str, leg: dict[str, Any]) -> list[list[int]]:
    """Return the samples of each optimizer step, of ours or theirs."""
    dist.init_process_group("gloo")
    steps: list[list[int]] = getattr(run, who)(_leg(leg))
    dist.destroy_process_group()
    return steps


def finite(num_workers: int, leg: dict[str, Any]) -> list[list[int]]:
    """Return those of one epoch, of rows of whole documents."""
    dist.init_process_group("gloo")
    documents = [[number] * (run.SEQ_LEN + 1) for number in range(leg["samples"])]
    order = ip.Packed([run.SEQ_LEN] * len(documents), run.SEQ_LEN, seed=3)
    config = PlanDataLoader.Config(
        dataset=TokenRows(documents, run.SEQ_LEN),
        order=order,
        infinite=False,
        num_workers=num_workers,
    )
    steps = run.train(_leg(leg), config)
    dist.destroy_process_group()
    return steps
